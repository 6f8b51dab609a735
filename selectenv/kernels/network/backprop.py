"""Training the small network on pictures that share their patches: forwards, backwards, Adam; one thread.

The hidden layer is a sum over places,  h = b + sum_p W_p f(patch at p),  f = relu(filters . patch). In a batch a place
shows few distinct patches, so W_p f is computed once for each of them and looked up: a table of rows, see `Batch`. The
gradient goes the same way back: what reaches h is summed over the pictures that share a row, then passed through W_p
and the filters once a row. Against dense products over all pictures this does the same sums with 2 to 16 times fewer
operations, depending on the game.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import kernel, summing_kernel
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, Layers
from selectenv.kernels.network.patches import TOGETHER, Batch, Patches, room
from selectenv.typing import Float32Array

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam."""


class Pass(NamedTuple):
    """What a network makes of a batch, kept for the way back."""

    features: Float32Array
    """[rows, filters] of each row of the table; on the way back, the gradient that reaches them."""
    table: Float32Array
    """[rows, hidden] what it adds to the hidden layer; on the way back, the gradient that reaches it."""
    hidden: Float32Array
    """[size, hidden] before the threshold."""
    out: Float32Array
    """[size, outputs]"""


class Adam(NamedTuple):
    """The optimiser's memory of one network."""

    first: Float32Array
    """[parameters] running mean of the gradient."""
    second: Float32Array
    """[parameters] of its square."""


def new_pass(size: int, layers: Layers) -> Pass:
    """Return room for a batch of so many pictures."""
    places = layers.hidden.shape[0] * layers.hidden.shape[1]
    n_filters, n_hidden, n_outputs = layers.hidden.shape[2], layers.hidden.shape[3], len(layers.output_bias)
    rows = room(size, places)
    return Pass(
        np.empty((rows, n_filters), np.float32), np.empty((rows, n_hidden), np.float32),
        np.empty((size, n_hidden), np.float32), np.empty((size, n_outputs), np.float32),
    )  # fmt: skip


@summing_kernel
def forward(layers: Layers, patches: Patches, batch: Batch, into: Pass) -> None:
    """Compute the outputs of a batch; where there is no picture they are 0."""
    weights = layers.hidden.reshape(-1, FILTERS, HIDDEN)
    filters = layers.filters.reshape(-1, FILTERS)
    places = weights.shape[0]
    for place in range(places):
        here = weights[place]
        for row in range(batch.bounds[place], batch.bounds[place + 1]):
            patch, feature, entry = batch.patch[row], into.features[row], into.table[row]
            if patch < 0:
                feature[:] = np.float32(0)
                continue
            feature[:] = layers.filter_bias
            for at in range(patches.first[patch], patches.first[patch + 1]):
                cell = filters[patches.cells[at]]
                for f in range(FILTERS):
                    feature[f] += cell[f]
            for f in range(FILTERS):
                feature[f] = max(feature[f], np.float32(0))
            for h in range(HIDDEN):
                total = np.float32(0)
                for f in range(FILTERS):
                    total += feature[f] * here[f, h]
                entry[h] = total
    for i in range(len(into.out)):
        if batch.row[i, 0] < 0:
            into.out[i] = np.float32(0)
            continue
        hidden, rows, table = into.hidden[i], batch.row[i], into.table
        hidden[:] = layers.hidden_bias
        for p in range(0, places, 8):
            r0, r1, r2, r3 = table[rows[p]], table[rows[p + 1]], table[rows[p + 2]], table[rows[p + 3]]
            r4, r5, r6, r7 = table[rows[p + 4]], table[rows[p + 5]], table[rows[p + 6]], table[rows[p + 7]]
            for h in range(HIDDEN):
                hidden[h] += ((r0[h] + r1[h]) + (r2[h] + r3[h])) + ((r4[h] + r5[h]) + (r6[h] + r7[h]))
        for a in range(into.out.shape[1]):
            weight = layers.output[a]
            total = layers.output_bias[a]
            for h in range(HIDDEN):
                total += max(hidden[h], np.float32(0)) * weight[h]
            into.out[i, a] = total


@summing_kernel
def backward(
    layers: Layers, patches: Patches, batch: Batch, made: Pass, wanted: Float32Array, gradient: Layers
) -> None:
    """Add to ``gradient`` what ``wanted`` [size, outputs], the gradient of the loss by the outputs, asks for.

    Uses up ``made``: its hidden layer and table then hold the gradients that reach them. Every picture must be there.
    """
    hidden, table = made.hidden, made.table
    back = np.empty(HIDDEN, np.float32)
    for i in range(len(wanted)):
        reached = hidden[i]
        back[:] = np.float32(0)
        for a in range(wanted.shape[1]):
            share, weight, own = wanted[i, a], layers.output[a], gradient.output[a]
            if share != 0:
                gradient.output_bias[a] += share
                for h in range(HIDDEN):
                    own[h] += share * max(reached[h], np.float32(0))
                    back[h] += share * weight[h]
        for h in range(HIDDEN):
            reached[h] = back[h] if reached[h] > 0 else np.float32(0)
            gradient.hidden_bias[h] += reached[h]
    weights, own_weights = layers.hidden.reshape(-1, FILTERS, HIDDEN), gradient.hidden.reshape(-1, FILTERS, HIDDEN)
    own_filters = gradient.filters.reshape(-1, FILTERS)
    table[: batch.bounds[-1]] = np.float32(0)
    for place in range(len(weights)):
        for i in range(len(wanted)):
            entry, reached = table[batch.row[i, place]], hidden[i]
            for h in range(HIDDEN):
                entry[h] += reached[h]
        _through_place(made, batch.bounds[place], batch.bounds[place + 1], weights[place], own_weights[place])
        for row in range(batch.bounds[place], batch.bounds[place + 1]):
            patch, change = batch.patch[row], made.features[row]  # what reaches the filters stands there now
            if patch >= 0:
                gradient.filter_bias[:] += change
                for at in range(patches.first[patch], patches.first[patch + 1]):
                    cell = own_filters[patches.cells[at]]
                    for f in range(FILTERS):
                        cell[f] += change[f]


@summing_kernel
def _through_place(made: Pass, first: int, last: int, weights: Float32Array, own: Float32Array) -> None:
    """Pass what reaches rows first..last-1, a multiple of four, through the weights [filters, hidden] of their place.

    Adds to the weights' own gradient, and leaves in the rows' features the gradient that reaches the filters.
    """
    features = made.features
    for r in range(first, last, TOGETHER):
        e0, e1, e2, e3 = made.table[r], made.table[r + 1], made.table[r + 2], made.table[r + 3]
        for f in range(FILTERS):
            x0, x1, x2, x3 = features[r, f], features[r + 1, f], features[r + 2, f], features[r + 3, f]
            t0 = t1 = t2 = t3 = np.float32(0)
            weight, mine = weights[f], own[f]
            for h in range(HIDDEN):
                mine[h] += (x0 * e0[h] + x1 * e1[h]) + (x2 * e2[h] + x3 * e3[h])
                t0 += e0[h] * weight[h]
                t1 += e1[h] * weight[h]
                t2 += e2[h] * weight[h]
                t3 += e3[h] * weight[h]
            features[r, f] = t0 if x0 > 0 else np.float32(0)
            features[r + 1, f] = t1 if x1 > 0 else np.float32(0)
            features[r + 2, f] = t2 if x2 > 0 else np.float32(0)
            features[r + 3, f] = t3 if x3 > 0 else np.float32(0)


@kernel
def adam_step(flat: Float32Array, gradient: Float32Array, memory: Adam, rate: float, count: int) -> None:
    """Move parameters [parameters] against their gradient, the ``count``-th time, and clear the gradient."""
    one, two = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
    step = np.float32(rate / (1 - BETA_1**count))
    scale, small = np.float32(1 / (1 - BETA_2**count)), np.float32(EPSILON)
    first, second = memory.first, memory.second
    for i in range(len(flat)):
        g = gradient[i]
        first[i] += one * (g - first[i])
        second[i] += two * (g * g - second[i])
        flat[i] -= step * first[i] / (np.sqrt(second[i] * scale) + small)
        gradient[i] = np.float32(0)


@kernel
def follow(flat: Float32Array, leader: Float32Array, step: float) -> None:
    """Move a target network towards its leader."""
    part = np.float32(step)
    for i in range(len(flat)):
        flat[i] += part * (leader[i] - flat[i])
