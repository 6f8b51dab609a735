"""Train the small network on images that share patches: forward pass, backward pass and Adam, in one thread.

The hidden layer is a sum over places,  h = b + sum_p W_p f(patch at p),  f = relu(filters . patch). The images of a
batch have few distinct patches at each place, so W_p f is computed once for each of them and looked up in a table, see
`Batch`. The backward pass mirrors this: the gradient of h is summed over the images that share a row of the table, then
passed through W_p and the filters once per row. Compared with dense products over all images this computes the same
sums with 2 to 16 times fewer operations, depending on the game.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import kernel, summing_kernel
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, Layers
from selectenv.kernels.network.patches import TOGETHER, Batch, Patches, room
from selectenv.typing import Float32Array

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Constants of Adam."""


class Pass(NamedTuple):
    """Activations of a network for one batch, kept for the backward pass."""

    features: Float32Array
    """[rows, filters] filter outputs of each row of the table; in the backward pass, their gradient."""
    table: Float32Array
    """[rows, hidden] contribution of each row to the hidden layer; in the backward pass, its gradient."""
    hidden: Float32Array
    """[size, hidden] before the rectifier; in the backward pass, its gradient."""
    out: Float32Array
    """[size, outputs]"""


class Adam(NamedTuple):
    """State of the optimiser for one network."""

    first: Float32Array
    """[parameters] running mean of the gradient."""
    second: Float32Array
    """[parameters] running mean of the squared gradient."""


def new_pass(size: int, layers: Layers) -> Pass:
    """Return an empty `Pass` for batches of ``size`` images."""
    places = layers.hidden.shape[0] * layers.hidden.shape[1]
    n_filters, n_hidden, n_outputs = layers.hidden.shape[2], layers.hidden.shape[3], len(layers.output_bias)
    rows = room(size, places)
    return Pass(
        features=np.empty((rows, n_filters), np.float32),
        table=np.empty((rows, n_hidden), np.float32),
        hidden=np.empty((size, n_hidden), np.float32),
        out=np.empty((size, n_outputs), np.float32),
    )


@summing_kernel
def forward(layers: Layers, patches: Patches, batch: Batch, into: Pass) -> None:
    """Compute the outputs of a batch; those of missing images are 0."""
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
    """Add the gradient of the loss by the parameters to ``gradient``.

    Args:
        layers: the network.
        patches: see `forward`.
        batch: see `forward`; no image may be missing.
        made: the result of `forward`; overwritten with gradients.
        wanted: [size, outputs] gradient of the loss by the outputs.
        gradient: receives the sum.
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
            patch, change = batch.patch[row], made.features[row]  # holds the gradient of the filter outputs now
            if patch >= 0:
                gradient.filter_bias[:] += change
                for at in range(patches.first[patch], patches.first[patch + 1]):
                    cell = own_filters[patches.cells[at]]
                    for f in range(FILTERS):
                        cell[f] += change[f]


@summing_kernel
def _through_place(made: Pass, first: int, last: int, weights: Float32Array, own: Float32Array) -> None:
    """Pass the gradient of rows first..last-1, a multiple of four, through the weights [filters, hidden] of a place.

    Adds to ``own``, the gradient of the weights, and replaces the features of the rows by their gradient.
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
    """Make the ``count``-th Adam step (from 1) on parameters [parameters] and clear their gradient."""
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
def follow(flat: Float32Array, source: Float32Array, step: float) -> None:
    """Move the parameters of a target network by the share ``step`` towards those of its source."""
    part = np.float32(step)
    for i in range(len(flat)):
        flat[i] += part * (source[i] - flat[i])
