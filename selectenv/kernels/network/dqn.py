"""Deep Q-learning of the small network, one frame at a time: store the image, make an update, choose an action.

The loss of a transition is Huber's, of the error  Q(s, a) - (r + gamma max_b target(s', b)). The optimiser is centred
RMSprop: with running means m of the gradient g and v of its square,

    w <- w - rate g / (sqrt(v - m^2) + epsilon).

A weight whose gradient is 0 stays as it is and its running means only decay, so the decay of a row of weights waits
until the row has a gradient again.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import summing_kernel, summing_part
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, Layers
from selectenv.kernels.network.patches import append_cells, patch_words, table_spot
from selectenv.kernels.network.shared_patches import (
    PLACES,
    Cells,
    SharedBatch,
    SharedPass,
    add_product,
    fill_shared,
    filter_gradients,
    filter_outputs,
    output_gradients,
    place_gradient,
    shared_forward,
)
from selectenv.kernels.rng import next_below, next_unit
from selectenv.typing import BoolArray, ByteArray, Float32Array, Int32Array, IntArray, UintArray


class PatchTable(NamedTuple):
    """All patches met so far: a hash table with room for more, see `patches`."""

    low: UintArray
    high: UintArray
    table: Int32Array
    first: IntArray
    cells: ByteArray
    known: IntArray
    """[1] number of patches."""


class Replay(NamedTuple):
    """A ring of images with what followed each of them; image t is stored at t modulo the length of the ring."""

    number: Int32Array
    """[ring, places] the patches of each image."""
    action: Int32Array
    reward: Float32Array
    terminated: BoolArray


class CentredRmsProp(NamedTuple):
    """State of the optimiser: running means of the gradient and of its square, in the layout of the weights."""

    mean: Layers
    square: Layers
    updated: IntArray
    """[places * filters] number of the last update in which a row of hidden weights had a gradient."""


class DqnRule(NamedTuple):
    """Hyperparameters of deep Q-learning."""

    gamma: float
    rate: float
    decay: float
    epsilon: float


@summing_kernel
def store_image(image: ByteArray, channels: int, slot: int, replay: Replay, known: PatchTable) -> None:
    """Number the patches of a packed image [bytes]; the table must have room for `PLACES` more."""
    here = np.empty((PLACES, 2), np.uint64)
    patch_words(image, 10, 10, channels, here)
    for place in range(PLACES):
        one, two = here[place]
        spot = table_spot(one, two, known.low, known.high, known.table)
        if known.table[spot] < 0:
            new = known.known[0]
            known.low[new], known.high[new] = one, two
            known.table[spot] = new
            known.first[new + 1] = append_cells(one, two, known.cells, known.first[new])
            known.known[0] += 1
        replay.number[slot, place] = known.table[spot]


@summing_kernel
def greedy_action(layers: Layers, cells: Cells, image: Int32Array) -> int:
    """Return the action with the largest value for an image given by its patches [places]."""
    weights, filters = layers.hidden.reshape(-1, FILTERS, HIDDEN), layers.filters.reshape(-1, FILTERS)
    hidden, feature = layers.hidden_bias.copy().reshape(1, HIDDEN), np.empty((1, FILTERS), np.float32)
    for place in range(PLACES):
        filter_outputs(filters, layers.filter_bias, cells.first, cells.cells, image[place], feature, 0)
        add_product(hidden, 0, feature, 0, weights, place)
    best, action = np.float32(-np.inf), 0
    for a in range(len(layers.output_bias)):
        value = np.float32(0)
        for h in range(HIDDEN):
            value += max(hidden[0, h], np.float32(0)) * layers.output[a, h]
        value += layers.output_bias[a]
        if value > best:
            best, action = value, a
    return action


@summing_kernel
def choose_action(layers: Layers, cells: Cells, image: Int32Array, exploration: float, random: UintArray) -> int:
    """Return a random action with probability ``exploration``, else the greedy one."""
    if next_unit(random) < exploration:
        return int(next_below(random, len(layers.output_bias)))
    return greedy_action(layers, cells, image)


@summing_part
def draw_distinct(low: int, high: int, random: UintArray, into: IntArray) -> None:
    """Draw distinct integers [size] uniformly from low..high-1, of which there must be enough."""
    for i in range(len(into)):
        repeated = True
        while repeated:
            into[i] = low + next_below(random, high - low)
            repeated = False
            for j in range(i):
                repeated |= into[j] == into[i]


@summing_part
def rmsprop_row(
    weights: Float32Array, gradient: Float32Array, mean: Float32Array, square: Float32Array, late: float, rule: DqnRule
) -> None:
    """Update a row of weights; ``late`` is what the running means have yet to decay by."""
    keep, part = np.float32(rule.decay), np.float32(1 - rule.decay)
    kept, rate, epsilon = np.float32(late), np.float32(rule.rate), np.float32(rule.epsilon)
    for h in range(len(gradient)):
        g = gradient[h]
        m = keep * (kept * mean[h]) + part * g
        v = keep * (kept * square[h]) + part * (g * g)
        mean[h], square[h] = m, v
        weights[h] -= rate * g / (np.sqrt(max(v - m * m, np.float32(0))) + epsilon)


@summing_part
def rmsprop_backward(
    layers: Layers,
    gradient: Layers,
    memory: CentredRmsProp,
    cells: Cells,
    batch: SharedBatch,
    made: SharedPass,
    wanted: Float32Array,
    change: Float32Array,
    count: int,
    rule: DqnRule,
) -> None:
    """Pass gradients back and update the weights of each place as soon as its gradient is complete.

    Args:
        layers: the network.
        gradient: its gradient, all 0; used for all parts except the hidden weights, and cleared again.
        memory: state of the optimiser.
        cells: the known patches.
        batch: the images.
        made: the result of `shared_forward`; overwritten.
        wanted: [size, outputs] gradient of the loss by the outputs.
        change: [rows, filters] scratch space.
        count: number of this update, from 1.
        rule: hyperparameters.
    """
    output_gradients(layers, made, wanted, gradient)
    summed, own = gradient.hidden_bias.copy(), np.empty((FILTERS, HIDDEN), np.float32)
    weights = layers.hidden.reshape(-1, FILTERS, HIDDEN)
    mean, square = memory.mean.hidden.reshape(-1, FILTERS, HIDDEN), memory.square.hidden.reshape(-1, FILTERS, HIDDEN)
    active = np.empty(FILTERS, np.bool_)
    for place in range(PLACES):
        first = batch.bounds[place]
        place_gradient(weights, batch, made, place, summed, own, change)
        for f in range(FILTERS):
            active[f] = made.features[first, f] != 0
        for row in range(first + 1, batch.bounds[place + 1]):
            for f in range(FILTERS):
                active[f] |= made.difference[row, f] != 0
        filter_gradients(cells, batch, made, place, change, gradient)
        for f in range(FILTERS):
            if active[f]:
                waited = count - 1 - memory.updated[place * FILTERS + f]
                memory.updated[place * FILTERS + f] = count
                late = rule.decay**waited if waited < 1_000 else 0.0
                rmsprop_row(weights[place, f], own[f], mean[place, f], square[place, f], late, rule)
    flat = (layers.filters.reshape(-1), gradient.filters.reshape(-1))
    rmsprop_row(*flat, memory.mean.filters.reshape(-1), memory.square.filters.reshape(-1), 1.0, rule)
    rmsprop_row(layers.filter_bias, gradient.filter_bias, memory.mean.filter_bias, memory.square.filter_bias, 1.0, rule)
    rmsprop_row(layers.hidden_bias, gradient.hidden_bias, memory.mean.hidden_bias, memory.square.hidden_bias, 1.0, rule)
    flat = (layers.output.reshape(-1), gradient.output.reshape(-1))
    rmsprop_row(*flat, memory.mean.output.reshape(-1), memory.square.output.reshape(-1), 1.0, rule)
    rmsprop_row(layers.output_bias, gradient.output_bias, memory.mean.output_bias, memory.square.output_bias, 1.0, rule)
    gradient.filters[:] = np.float32(0)
    gradient.filter_bias[:] = np.float32(0)
    gradient.hidden_bias[:] = np.float32(0)
    gradient.output[:] = np.float32(0)
    gradient.output_bias[:] = np.float32(0)


@summing_kernel
def dqn_update(
    layers: Layers,
    target: Layers,
    gradient: Layers,
    memory: CentredRmsProp,
    replay: Replay,
    cells: Cells,
    batches: tuple[SharedBatch, SharedBatch],
    made: SharedPass,
    change: Float32Array,
    transitions: tuple[int, int],
    random: UintArray,
    count: int,
    rule: DqnRule,
) -> float:
    """Make one update from transitions drawn from numbers transitions[0]..transitions[1] - 1; return the mean loss."""
    size, ring = len(made.out), len(replay.action)
    now, later = batches
    chosen, following = np.empty(size, np.int64), np.empty(size, np.int64)
    draw_distinct(transitions[0], transitions[1], random, chosen)
    for i in range(size):
        following[i] = (chosen[i] + 1) % ring
        chosen[i] %= ring
    fill_shared(later, replay.number, following)
    shared_forward(target, cells, later, made)
    goal = np.empty(size, np.float32)
    for i in range(size):
        goal[i] = replay.reward[chosen[i]]
        if not replay.terminated[chosen[i]]:
            goal[i] += np.float32(rule.gamma) * made.out[i].max()
    fill_shared(now, replay.number, chosen)
    shared_forward(layers, cells, now, made)
    wanted, loss = np.zeros(made.out.shape, np.float32), 0.0
    for i in range(size):
        action = replay.action[chosen[i]]
        error = made.out[i, action] - goal[i]
        small = min(abs(error), np.float32(1))
        loss += small * (abs(error) - np.float32(0.5) * small)
        wanted[i, action] = max(min(error, np.float32(1)), np.float32(-1)) / np.float32(size)
    rmsprop_backward(layers, gradient, memory, cells, now, made, wanted, change, count, rule)
    return loss / size
