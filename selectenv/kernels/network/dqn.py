"""Deep Q-learning of the small network, one frame at a time: store the image, make an update, choose an action.

The loss of a transition is Huber's, of the error  Q(s, a) - (r + gamma max_b target(s', b)). The optimiser is centred
RMSprop: with running means m of the gradient g and v of its square,

    w <- w - rate g / (sqrt(v - m^2) + epsilon).
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import exact_part, kernel
from selectenv.kernels.network.backprop import TINY, ZERO, Adam, Pass, backward, forward, output
from selectenv.kernels.network.patches import (
    NO_CELL,
    ROW_BITS,
    Batch,
    Patches,
    append_cells,
    fill_batch,
    patch_words,
    table_spot,
)
from selectenv.kernels.network.updates import Network
from selectenv.kernels.rng import next_below, next_unit
from selectenv.typing import BoolArray, ByteArray, Float32Array, Int32Array, IntArray, Uint32Array, UintArray

PLACES = 64
MOST_WORDS = 32
"""Words of the cells of a patch, at most."""


class PatchTable(NamedTuple):
    """All patches met so far: a hash table with room for more; see `Patches` for their cells."""

    low: UintArray
    high: UintArray
    table: Int32Array
    first: IntArray
    cells: Uint32Array
    known: IntArray
    """[1] number of patches."""


class Replay(NamedTuple):
    """A ring of images with what followed each of them; image t is stored at t modulo the length of the ring."""

    number: Int32Array
    """[ring, places] the patches of each image."""
    action: Int32Array
    reward: Float32Array
    terminated: BoolArray


class DqnRule(NamedTuple):
    """Hyperparameters of deep Q-learning."""

    gamma: float
    rate: float
    decay: float
    """Decay of the running means."""
    epsilon: float
    """Added to the root."""


@kernel
def store_image(image: ByteArray, channels: int, slot: int, replay: Replay, known: PatchTable) -> None:
    """Number the patches of a packed image [bytes]; the table must have room for `PLACES` more."""
    here, cells = np.empty((PLACES, 2), np.uint64), np.empty(4 * MOST_WORDS, np.uint8)
    patch_words(image, 10, 10, channels, here)
    for place in range(PLACES):
        one, two = here[place]
        spot = table_spot(one, two, known.low, known.high, known.table)
        if known.table[spot] < 0:
            new = known.known[0]
            known.low[new], known.high[new] = one, two
            known.table[spot] = new
            cells[:] = NO_CELL
            words = max(1, -(-append_cells(one, two, cells, 0) // 4))
            for word in range(words):
                known.cells[known.first[new] + word] = cells.view(np.uint32)[word]
            known.first[new + 1] = known.first[new] + words
            known.known[0] += 1
        replay.number[slot, place] = known.table[spot]


@kernel
def choose_action(
    network: Network, patches: Patches, batch: Batch, made: Pass, slot: int, exploration: float, random: UintArray
) -> int:
    """Return a random action with probability ``exploration``, else the one with the largest value.

    Args:
        network: the online network.
        patches: the images of the ring.
        batch: room for one image.
        made: room for the activations of one image.
        slot: the current image.
        exploration: probability of a random action.
        random: state of the random stream.
    """
    n_actions = len(network.layers.output_bias)
    if next_unit(random) < exploration:
        return int(next_below(random, n_actions))
    batch.image[0] = slot
    find_usual(patches, batch)
    fill_batch(batch, patches)
    forward(network.layers, batch, made)
    best, action = -np.inf, 0
    for a in range(n_actions):
        value = output(network.layers, made.hidden, 0, a)
        if value > best:
            best, action = value, a
    return action


@exact_part
def find_usual(patches: Patches, batch: Batch) -> None:
    """Find the most frequent patch of a batch at each place; of several, the one that comes first.

    The result does not depend on how patches are numbered, so a resumed run may number them anew.
    """
    size, met, times = len(batch.image), np.empty(len(batch.image), np.int32), np.empty(len(batch.image), np.int32)
    for place in range(PLACES):
        distinct = 0
        batch.clock[0] += 1
        now = batch.clock[0] << ROW_BITS
        for i in range(size):
            patch = patches.number[batch.image[i], place]
            if batch.mark[patch, 0] < now:
                batch.mark[patch, 0] = now + distinct
                met[distinct], times[distinct] = patch, 0
                distinct += 1
            times[batch.mark[patch, 0] - now] += 1
        best = 0
        for k in range(1, distinct):
            if times[k] > times[best]:
                best = k
        patches.usual[place] = met[best]


@exact_part
def draw_distinct(low: int, high: int, random: UintArray, into: IntArray) -> None:
    """Draw distinct integers [size] uniformly from low..high-1, of which there must be enough."""
    for i in range(len(into)):
        repeated = True
        while repeated:
            into[i] = low + next_below(random, high - low)
            repeated = False
            for j in range(i):
                repeated |= into[j] == into[i]


@exact_part
def rmsprop_step(flat: Float32Array, gradient: Float32Array, memory: Adam, rule: DqnRule) -> None:
    """Make one step of centred RMSprop on parameters [parameters]; the memory holds m and v."""
    keep, part = np.float32(rule.decay), np.float32(1 - rule.decay)
    rate, epsilon = np.float32(rule.rate), np.float32(rule.epsilon)
    first, second = memory.first, memory.second
    for i in range(len(flat)):
        g = gradient[i]
        mean = keep * first[i] + part * g
        square = keep * second[i] + part * (g * g)
        first[i] = mean if abs(mean) > TINY else ZERO
        second[i] = square if square > TINY else ZERO
        flat[i] -= rate * g / (np.sqrt(max(square - mean * mean, ZERO)) + epsilon)


@kernel
def dqn_update(
    online: Network,
    target: Network,
    replay: Replay,
    patches: Patches,
    batch: Batch,
    made: Pass,
    transitions: tuple[int, int],
    random: UintArray,
    rule: DqnRule,
) -> float:
    """Make one update from transitions drawn from numbers transitions[0]..transitions[1] - 1; return the mean loss."""
    size, ring, n_actions = len(batch.image), len(replay.action), len(online.layers.output_bias)
    chosen, goal = np.empty(size, np.int64), np.empty(size, np.float32)
    draw_distinct(transitions[0], transitions[1], random, chosen)
    for i in range(size):
        batch.image[i] = (chosen[i] + 1) % ring
    find_usual(patches, batch)
    fill_batch(batch, patches)
    forward(target.layers, batch, made)
    for i in range(size):
        chosen[i] %= ring
        goal[i] = replay.reward[chosen[i]]
        if not replay.terminated[chosen[i]]:
            best = output(target.layers, made.hidden, i, 0)
            for a in range(1, n_actions):
                best = max(best, output(target.layers, made.hidden, i, a))
            goal[i] += np.float32(rule.gamma) * best
    for i in range(size):
        batch.image[i] = chosen[i]
    find_usual(patches, batch)
    fill_batch(batch, patches)
    forward(online.layers, batch, made)
    output_gradient, loss = np.zeros((size, n_actions), np.float32), 0.0
    for i in range(size):
        action = replay.action[chosen[i]]
        error = output(online.layers, made.hidden, i, action) - goal[i]
        small = min(abs(error), np.float32(1))
        loss += small * (abs(error) - np.float32(0.5) * small)
        output_gradient[i, action] = max(min(error, np.float32(1)), np.float32(-1)) / np.float32(size)
    backward(online.layers, batch, made, output_gradient, online.gradient)
    rmsprop_step(online.flat, online.flat_gradient, online.memory, rule)
    return loss / size
