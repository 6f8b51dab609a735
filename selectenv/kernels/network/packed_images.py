"""Images as rows of 64-bit words: pack them, hash them, and find them among known ones."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.rng import INCREMENT, TO_UNIT, mix
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray, UintArray


def pack(images: BoolArray) -> UintArray:
    """Return images [..., rows, columns, channels] as rows of words [count, words], one bit per cell."""
    flat = images.reshape(len(images), -1)
    bits = np.packbits(flat, axis=1)
    words = np.zeros((len(flat), -(-bits.shape[1] // 8) * 8), np.uint8)
    words[:, : bits.shape[1]] = bits
    return words.view(np.uint64)


def unpack(words: UintArray, shape: tuple[int, ...]) -> BoolArray:
    """Return rows of words [count, words] as images [count, *shape]."""
    cells = int(np.prod(shape))
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=cells)
    return bits.view(np.bool_).reshape(len(words), *shape)


@kernel
def hash_rows(words: UintArray, salt: np.uint64) -> IntArray:
    """Return a hash of each row [rows, words]: 63 bits, so that it is not negative as a signed integer."""
    out = np.empty(len(words), np.int64)
    for i in range(len(words)):
        state = salt
        for word in words[i]:
            state = mix((state ^ word) + INCREMENT)
        out[i] = np.int64(state >> np.uint64(1))
    return out


@kernel
def find_rows(words: UintArray, salt: np.uint64, ids: IntArray, known: UintArray) -> Int32Array:
    """Return the index of each row [rows, words] among the known ones, which are sorted by hash; -1 if not found."""
    hashes = hash_rows(words, salt)
    places = np.searchsorted(ids, hashes)
    out = np.full(len(words), -1, np.int32)
    for i in range(len(words)):
        place = places[i]
        if place < len(ids) and ids[place] == hashes[i]:
            same = True
            for k in range(words.shape[1]):
                same &= words[i, k] == known[place, k]
            if same:
                out[i] = place
    return out


@kernel
def first_mismatch(words: UintArray, number: Int32Array, known: UintArray) -> int:
    """Return the first row that differs from the known row with its number; -1 if there is none."""
    for i in range(len(words)):
        for k in range(words.shape[1]):
            if words[i, k] != known[number[i], k]:
                return i
    return -1


@kernel
def draw_actions(policies: FloatArray, which: IntArray, number: Int32Array, keys: UintArray, step: int) -> IntArray:
    """Draw one action per game; actions in unknown states are uniformly random.

    Args:
        policies: [policies, n, actions] action probabilities.
        which: [games] the policy of each game.
        number: [games] the state of each game, -1 if unknown.
        keys: [games] random key of each game; the draw is a function of the key and ``step``.
        step: step of the episode.
    """
    n_actions = policies.shape[2]
    out = np.empty(len(which), np.int64)
    for i in range(len(which)):
        unit = np.float64(mix(keys[i] + np.uint64(step) * INCREMENT) >> np.uint64(11)) * TO_UNIT
        action = n_actions - 1
        if number[i] < 0:
            action = min(action, np.int64(unit * n_actions))
        else:
            shares = policies[which[i], number[i]]
            while action > 0 and shares[action] <= 0.0:  # rounding must not choose an action of probability 0
                action -= 1
            below = 0.0
            for a in range(action):
                below += shares[a]
                if unit < below:
                    action = a
                    break
        out[i] = action
    return out
