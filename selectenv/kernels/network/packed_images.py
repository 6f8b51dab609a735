"""Images as rows of 64-bit words: pack them, hash them, and find them among known ones."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.rng import INCREMENT, mix
from selectenv.typing import BoolArray, Int32Array, IntArray, UintArray


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
