"""Forward and backward passes over a small batch of images whose patches are expressed as differences.

At each place the most frequent patch of the batch is the *base*. With f_p the filter outputs of the base at place p and
d_r = f(patch of row r) - f_p for every other distinct patch, the hidden layer of image i is

    h_i = b + sum_p W_p f_p + sum over the places where image i differs from the base of W_p d_r.

The first two terms are computed once per batch. In a batch of 32 images of Breakout only a quarter of the places differ
from the base. The gradients follow the same split: with e_i the gradient by h_i, S = sum_i e_i and E_r the sum of e_i
over the images that share row r,

    dW_p = f_p S' + sum_r d_r E_r',   df_r = W_p E_r,   df_p = W_p S - sum_r W_p E_r.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import summing_part
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, Layers
from selectenv.typing import ByteArray, Float32Array, Int32Array, IntArray

PLACES = 64
TOGETHER = 4
"""Rows that are computed together; the number of rows of each place is a multiple of it."""


class Cells(NamedTuple):
    """The cells that are set in each known patch."""

    first: IntArray
    """[patches + 1] range of cells of each patch."""
    cells: ByteArray
    """Numbers of the set cells, like filters [channels, 3, 3]."""


class SharedBatch(NamedTuple):
    """The images of one update as rows of distinct patches and differences from the base; reused between updates."""

    patch: Int32Array
    """[rows] the patch of each row; the first row of a place is its base; -1 for padding."""
    bounds: IntArray
    """[places + 1] the rows of a place are bounds[place]..bounds[place + 1] - 1."""
    image: Int32Array
    """[entries] the images that differ from the base, place by place."""
    row: Int32Array
    """[entries] the row of the image there."""
    entries: IntArray
    """[places + 1] the entries of a place are entries[place]..entries[place + 1] - 1."""
    sharing: Int32Array
    """[rows] how many images share the row at its place."""
    seen: IntArray
    """[patches] value of `clock` when the patch was last met."""
    slot: Int32Array
    """[patches] the row of the patch at that time."""
    clock: IntArray
    """[1] number of places filled so far, over all batches."""


class SharedPass(NamedTuple):
    """Activations of a network for one batch, kept for the backward pass."""

    features: Float32Array
    """[rows, filters] filter outputs of each row."""
    difference: Float32Array
    """[rows, filters] the same minus those of the base of the place."""
    table: Float32Array
    """[rows, hidden] contribution of each row to the hidden layer; in the backward pass, its gradient."""
    hidden: Float32Array
    """[size, hidden] before the rectifier; in the backward pass, its gradient."""
    out: Float32Array
    """[size, outputs]"""


def new_shared_batch(size: int, patches: int) -> SharedBatch:
    """Return an empty batch of ``size`` images with patches numbered below ``patches``."""
    rows = _room(size)
    return SharedBatch(
        patch=np.empty(rows, np.int32),
        bounds=np.zeros(PLACES + 1, np.int64),
        image=np.empty(size * PLACES, np.int32),
        row=np.empty(size * PLACES, np.int32),
        entries=np.zeros(PLACES + 1, np.int64),
        sharing=np.empty(rows, np.int32),
        seen=np.full(patches, -1, np.int64),
        slot=np.empty(patches, np.int32),
        clock=np.zeros(1, np.int64),
    )


def new_shared_pass(size: int, n_outputs: int) -> SharedPass:
    """Return an empty pass for batches of ``size`` images."""
    rows = _room(size)
    return SharedPass(
        features=np.empty((rows, FILTERS), np.float32),
        difference=np.zeros((rows, FILTERS), np.float32),
        table=np.empty((rows, HIDDEN), np.float32),
        hidden=np.empty((size, HIDDEN), np.float32),
        out=np.empty((size, n_outputs), np.float32),
    )


def _room(size: int) -> int:
    """Return the largest number of rows of a batch of ``size`` images."""
    return -(-size // TOGETHER) * TOGETHER * PLACES


@summing_part
def fill_shared(batch: SharedBatch, number: Int32Array, chosen: IntArray) -> None:
    """Fill a batch with the images ``chosen`` [size] of ``number`` [images, places].

    The rows of a place are ordered by first occurrence, except that the base comes first, so nothing depends on how
    patches are numbered.
    """
    rows, entries = 0, 0
    for place in range(PLACES):
        batch.bounds[place], batch.entries[place] = rows, entries
        batch.clock[0] += 1
        now, first = batch.clock[0], rows
        for i in range(len(chosen)):
            patch = number[chosen[i], place]
            if batch.seen[patch] != now:
                batch.seen[patch] = now
                batch.slot[patch] = rows
                batch.patch[rows] = patch
                batch.sharing[rows] = 0
                rows += 1
            batch.sharing[batch.slot[patch]] += 1
        base = first
        for row in range(first, rows):
            if batch.sharing[row] > batch.sharing[base]:
                base = row
        if base != first:
            one, other = batch.patch[first], batch.patch[base]
            batch.patch[first], batch.patch[base] = other, one
            batch.slot[other], batch.slot[one] = first, base
        for i in range(len(chosen)):
            row = batch.slot[number[chosen[i], place]]
            if row != first:
                batch.image[entries], batch.row[entries] = i, row
                entries += 1
        while (rows - first) % TOGETHER:
            batch.patch[rows] = -1
            rows += 1
    batch.bounds[PLACES], batch.entries[PLACES] = rows, entries


@summing_part
def filter_outputs(
    filters: Float32Array,
    bias: Float32Array,
    first: IntArray,
    cells: ByteArray,
    patch: int,
    into: Float32Array,
    row: int,
) -> None:
    """Write the rectified outputs of filters [cells, filters] for a patch to ``into[row]``."""
    for f in range(FILTERS):
        into[row, f] = bias[f]
    for at in range(first[patch], first[patch + 1]):
        cell = cells[at]
        for f in range(FILTERS):
            into[row, f] += filters[cell, f]
    for f in range(FILTERS):
        into[row, f] = max(into[row, f], np.float32(0))


@summing_part
def add_product(
    total: Float32Array, to: int, feature: Float32Array, row: int, weights: Float32Array, place: int
) -> None:
    """Add the product of ``feature[row]`` and ``weights[place]`` [filters, hidden] to ``total[to]``.

    The sum over filters is spelled out so that the loop over hidden units is the one that is vectorised.
    """
    x0, x1, x2, x3 = feature[row, 0], feature[row, 1], feature[row, 2], feature[row, 3]
    x4, x5, x6, x7 = feature[row, 4], feature[row, 5], feature[row, 6], feature[row, 7]
    y0, y1, y2, y3 = feature[row, 8], feature[row, 9], feature[row, 10], feature[row, 11]
    y4, y5, y6, y7 = feature[row, 12], feature[row, 13], feature[row, 14], feature[row, 15]
    for h in range(HIDDEN):
        total[to, h] += (
            (
                (x0 * weights[place, 0, h] + x1 * weights[place, 1, h])
                + (x2 * weights[place, 2, h] + x3 * weights[place, 3, h])
            )
            + (
                (x4 * weights[place, 4, h] + x5 * weights[place, 5, h])
                + (x6 * weights[place, 6, h] + x7 * weights[place, 7, h])
            )
        ) + (
            (
                (y0 * weights[place, 8, h] + y1 * weights[place, 9, h])
                + (y2 * weights[place, 10, h] + y3 * weights[place, 11, h])
            )
            + (
                (y4 * weights[place, 12, h] + y5 * weights[place, 13, h])
                + (y6 * weights[place, 14, h] + y7 * weights[place, 15, h])
            )
        )


@summing_part
def shared_forward(layers: Layers, known: Cells, batch: SharedBatch, into: SharedPass) -> None:
    """Compute the outputs of a batch."""
    weights, filters, bias = (
        layers.hidden.reshape(-1, FILTERS, HIDDEN),
        layers.filters.reshape(-1, FILTERS),
        layers.filter_bias,
    )
    first, cells = known.first, known.cells
    patch, bounds, entries, image, row_of = batch.patch, batch.bounds, batch.entries, batch.image, batch.row
    features, difference, table, hidden, out = into.features, into.difference, into.table, into.hidden, into.out
    base = np.empty((1, HIDDEN), np.float32)
    base[0] = layers.hidden_bias
    hidden[:] = np.float32(0)
    for place in range(PLACES):
        top = bounds[place]
        filter_outputs(filters, bias, first, cells, patch[top], features, top)
        add_product(base, 0, features, top, weights, place)
        for row in range(top + 1, bounds[place + 1]):
            if patch[row] < 0:
                break
            filter_outputs(filters, bias, first, cells, patch[row], features, row)
            for f in range(FILTERS):
                difference[row, f] = features[row, f] - features[top, f]
            for h in range(HIDDEN):
                table[row, h] = np.float32(0)
            add_product(table, row, difference, row, weights, place)
        for at in range(entries[place], entries[place + 1]):
            i, row = image[at], row_of[at]
            for h in range(HIDDEN):
                hidden[i, h] += table[row, h]
    output, output_bias = layers.output, layers.output_bias
    for i in range(len(out)):
        for h in range(HIDDEN):
            hidden[i, h] += base[0, h]
        for a in range(out.shape[1]):
            value = np.float32(0)
            for h in range(HIDDEN):
                value += max(hidden[i, h], np.float32(0)) * output[a, h]
            out[i, a] = value + output_bias[a]


@summing_part
def output_gradients(layers: Layers, made: SharedPass, wanted: Float32Array, gradient: Layers) -> None:
    """Add the gradients of the output layer, and replace the hidden activations by their gradient.

    Args:
        layers: the network.
        made: the result of `shared_forward`.
        wanted: [size, outputs] gradient of the loss by the outputs.
        gradient: receives the gradients of the output layer and of the hidden bias.
    """
    back, hidden, output = np.empty(HIDDEN, np.float32), made.hidden, layers.output
    own, own_bias, hidden_bias = gradient.output, gradient.output_bias, gradient.hidden_bias
    for i in range(len(wanted)):
        back[:] = np.float32(0)
        for a in range(wanted.shape[1]):
            share = wanted[i, a]
            if share != 0:
                own_bias[a] += share
                for h in range(HIDDEN):
                    own[a, h] += share * max(hidden[i, h], np.float32(0))
                    back[h] += share * output[a, h]
        for h in range(HIDDEN):
            hidden[i, h] = back[h] if hidden[i, h] > 0 else np.float32(0)
            hidden_bias[h] += hidden[i, h]


@summing_part
def place_gradient(
    weights: Float32Array,
    batch: SharedBatch,
    made: SharedPass,
    place: int,
    summed: Float32Array,
    own: Float32Array,
    change: Float32Array,
) -> None:
    """Write the gradient by the weights of one place, and the gradients by the filter outputs of its rows.

    Args:
        weights: [places, filters, hidden]
        batch: the images.
        made: activations, with the gradient by the hidden layer in `hidden`.
        place: the place.
        summed: [hidden] the gradient by the hidden layer, summed over images.
        own: [filters, hidden] receives the gradient by the weights.
        change: [rows, filters] receives the gradients by the filter outputs of the rows of this place.
    """
    first, last = batch.bounds[place], batch.bounds[place + 1]
    patch, image, row_of = batch.patch, batch.image, batch.row
    features, difference, table, hidden = made.features, made.difference, made.table, made.hidden
    for row in range(first, last):
        for h in range(HIDDEN):
            table[row, h] = np.float32(0)
        if row == first or patch[row] < 0:
            for f in range(FILTERS):
                difference[row, f] = np.float32(0)
    for at in range(batch.entries[place], batch.entries[place + 1]):
        i, row = image[at], row_of[at]
        for h in range(HIDDEN):
            table[row, h] += hidden[i, h]
    for f in range(FILTERS):
        total, value = np.float32(0), features[first, f]
        for h in range(HIDDEN):
            own[f, h] = value * summed[h]
            total += weights[place, f, h] * summed[h]
        change[first, f] = total
    for r in range(first, last, TOGETHER):
        for f in range(FILTERS):
            x0, x1, x2, x3 = difference[r, f], difference[r + 1, f], difference[r + 2, f], difference[r + 3, f]
            t0 = t1 = t2 = t3 = np.float32(0)
            for h in range(HIDDEN):
                weight = weights[place, f, h]
                own[f, h] += (x0 * table[r, h] + x1 * table[r + 1, h]) + (x2 * table[r + 2, h] + x3 * table[r + 3, h])
                t0 += table[r, h] * weight
                t1 += table[r + 1, h] * weight
                t2 += table[r + 2, h] * weight
                t3 += table[r + 3, h] * weight
            if r > first:
                change[r, f] = t0
            change[r + 1, f], change[r + 2, f], change[r + 3, f] = t1, t2, t3
            change[first, f] -= (t0 + t1) + (t2 + t3)  # the table of the base is 0


@summing_part
def filter_gradients(
    known: Cells, batch: SharedBatch, made: SharedPass, place: int, change: Float32Array, gradient: Layers
) -> None:
    """Pass the gradients by the filter outputs of the rows of a place through the rectifier to the filters."""
    own, own_bias = gradient.filters.reshape(-1, FILTERS), gradient.filter_bias
    first, cells, features, patches = known.first, known.cells, made.features, batch.patch
    for row in range(batch.bounds[place], batch.bounds[place + 1]):
        patch = patches[row]
        if patch < 0:
            break
        for f in range(FILTERS):
            change[row, f] = change[row, f] if features[row, f] > 0 else np.float32(0)
            own_bias[f] += change[row, f]
        for at in range(first[patch], first[patch + 1]):
            cell = cells[at]
            for f in range(FILTERS):
                own[cell, f] += change[row, f]
