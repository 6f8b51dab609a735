"""Train the small network on images that share patches: forward pass, backward pass and Adam, in one thread.

The hidden layer is a sum over places,  h = b + sum_p W_p f_p,  f = relu(filters . patch). The images of a batch have
few distinct patches at each place, and many images have the usual one, with features u_p; see `Batch`. So W_p f is
computed once for each distinct patch, from the features that are not 0, and an image is corrected where it differs:

    h = (b + sum_p W_p u_p) + sum over its exceptions of W_p (f_p - u_p).

In the backward pass, the images with the same patch at a place are taken together. With e_r the sum of their gradients
of the hidden layer, for row r of the place,

    gradient of W_p = sum_r e_r f_r',  gradient of f_r = W_p' e_r,

and e_r of the usual patch is the sum over the whole batch less the other e_r. Only features that are not 0 count in
either pass. Features depend on the patch alone, so they are computed once for each distinct patch of the batch.
"""

from typing import Any, NamedTuple

import numpy as np

from selectenv.kernels.compiled import exact_part
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, SIDE, Layers
from selectenv.kernels.network.patches import CELLS, Batch
from selectenv.kernels.network.simd import (
    Vector,
    add,
    add_product,
    aligned_zeros,
    load16,
    load64,
    lowest_bit,
    positive_bits,
    prefetch,
    store16,
    store64,
    subtract,
    sum_of,
    transpose16,
    where_positive,
    zeros16,
    zeros64,
)
from selectenv.typing import Float32Array, IntArray

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Constants of Adam."""
HALF = HIDDEN // 2
PLACE_SIZE = FILTERS * HIDDEN
"""Weights of a place."""
BLOCK = 32
"""Rows of a place whose outer products are summed together; their gradients of the hidden layer fit into L1."""
ZERO, ONE_BIT = np.float32(0), np.uint64(1)
TINY = np.float32(1e-30)
"""Smaller averages are replaced by 0: they change no weight, and many machines are slow with subnormal numbers."""


class Pass(NamedTuple):
    """Activations of a network for one batch, kept for the backward pass, and room for both passes."""

    features: Float32Array
    """[distinct patches, filters] filter outputs of each patch."""
    feature_slope: Float32Array
    """[distinct patches, filters] their gradient."""
    hidden: Float32Array
    """[2 size + 1, hidden] the hidden layer of each image before the rectifier, which the backward pass replaces by its
    gradient; then the sums of this gradient over the images of the usual patch, and of each row with several images."""
    start: IntArray
    """[size + 1] where the gradient of each row of a place starts in `hidden`."""
    filters: Float32Array
    """[cells, filters] the filters, with zeros at `NO_CELL`; in the backward pass, their gradient."""
    block: Float32Array
    """[`BLOCK`, filters] the features of some rows, then their gradient."""
    turned: Float32Array
    """[filters, `BLOCK`] these features, transposed."""
    turned_slope: Float32Array
    """[filters, `BLOCK`] their gradient, transposed."""


class Adam(NamedTuple):
    """State of the optimiser for one network."""

    first: Float32Array
    """[parameters] running mean of the gradient."""
    second: Float32Array
    """[parameters] running mean of the squared gradient."""


def new_pass(size: int) -> Pass:
    """Return an empty `Pass` for batches of ``size`` images."""
    rows, places = size + 1, (SIDE - 2) ** 2
    return Pass(
        features=aligned_zeros(rows * places, FILTERS),
        feature_slope=aligned_zeros(rows * places, FILTERS),
        hidden=aligned_zeros(2 * size + 1, HIDDEN),
        start=np.zeros(rows, np.int64),
        filters=aligned_zeros(CELLS, FILTERS),
        block=aligned_zeros(BLOCK, FILTERS),
        turned=aligned_zeros(FILTERS, BLOCK),
        turned_slope=aligned_zeros(FILTERS, BLOCK),
    )


@exact_part
def forward(layers: Layers, batch: Batch, made: Pass) -> None:
    """Compute the hidden layer of a batch."""
    size, sums = len(batch.image), made.hidden
    _compute_features(layers, batch, made)
    _clear(sums, 0, size * HIDDEN)
    low, high = load64(layers.hidden_bias, 0), load64(layers.hidden_bias, HALF)
    for place in range(len(batch.row_bounds) - 1):
        first = batch.row_bounds[place]
        _prefetch_weights(layers, place + 1)
        usual_low, usual_high = _contribution(layers, batch, made, place, first)
        low, high = add(low, usual_low), add(high, usual_high)
        for row in range(first + 1, batch.row_bounds[place + 1]):
            own_low, own_high = _contribution(layers, batch, made, place, row)
            own_low, own_high = subtract(own_low, usual_low), subtract(own_high, usual_high)
            for k in range(batch.member_bounds[row], batch.member_bounds[row + 1]):
                _add_to(sums, batch.member[k], own_low, own_high)
    for i in range(size):
        _add_to(sums, i, low, high)


@exact_part
def _compute_features(layers: Layers, batch: Batch, made: Pass) -> None:
    """Compute the features of the distinct patches of a batch."""
    _copy(layers.filters, made.filters, layers.filters.size)
    bias = load16(layers.filter_bias, 0)
    for patch in range(batch.n_patches[0]):
        own = bias
        for at in range(batch.cell_bounds[patch], batch.cell_bounds[patch + 1]):
            for byte in range(4):
                cell = batch.cells[at] >> (8 * byte) & 0xFF
                own = add(own, load16(made.filters, cell * FILTERS))
        store16(made.features, patch * FILTERS, where_positive(own, own))


@exact_part
def _contribution(layers: Layers, batch: Batch, made: Pass, place: int, row: int) -> tuple[Vector, Vector]:
    """Return what the features of a row add to both halves of the hidden layer."""
    patch, low, high = batch.patch[row], zeros64(), zeros64()
    bits = positive_bits(load16(made.features, patch * FILTERS))
    while bits != 0:
        f = lowest_bit(bits)
        bits &= bits - ONE_BIT
        at = place * PLACE_SIZE + f * HIDDEN
        low = add_product(low, made.features[patch, f], load64(layers.hidden, at))
        high = add_product(high, made.features[patch, f], load64(layers.hidden, at + HALF))
    return low, high


@exact_part
def _prefetch_weights(layers: Layers, place: int) -> None:
    """Bring the weights of a place into the cache while another place is processed."""
    for at in range(place * PLACE_SIZE, (place + 1) * PLACE_SIZE, 16):
        prefetch(layers.hidden, at)


@exact_part
def _add_to(hidden: Float32Array, i: int, low: Vector, high: Vector) -> None:
    """Add both halves of a hidden layer to that of image ``i``."""
    at = i * HIDDEN
    store64(hidden, at, add(load64(hidden, at), low))
    store64(hidden, at + HALF, add(load64(hidden, at + HALF), high))


@exact_part
def _clear(array: Float32Array, start: int, end: int) -> None:
    """Set the elements ``start`` to ``end`` - 1 of an array to 0; their number is a multiple of 16."""
    for at in range(start, end, 16):
        store16(array, at, zeros16())


@exact_part
def _copy(source: Float32Array, into: Float32Array, size: int) -> None:
    """Copy the first elements of an array, as many as ``size``, a multiple of 16."""
    for at in range(0, size, 16):
        store16(into, at, load16(source, at))


@exact_part
def output(layers: Any, hidden: Float32Array, i: int, a: int) -> float:
    """Return output ``a`` of observation ``i`` of a batch with the given last hidden layer [size, hidden]."""
    sums = zeros16()
    for h in range(0, HIDDEN, 16):
        unit = load16(hidden, i * HIDDEN + h)
        sums = add_product(sums, where_positive(unit, unit), load16(layers.output, a * HIDDEN + h))
    total: float = layers.output_bias[a] + sum_of(sums)
    return total


@exact_part
def backward(layers: Layers, batch: Batch, made: Pass, output_gradient: Float32Array, gradient: Layers) -> None:
    """Compute the gradient of the loss with respect to the parameters; it overwrites the hidden layer.

    Args:
        layers: the network.
        batch: see `forward`; no image may be missing.
        made: the result of `forward`.
        output_gradient: [size, outputs] gradient of the loss with respect to the outputs.
        gradient: receives the result.
    """
    _output_gradient(layers, made, output_gradient, gradient)
    _clear(made.feature_slope, 0, batch.n_patches[0] * FILTERS)
    _clear(gradient.hidden, 0, gradient.hidden.size)
    for place in range(len(batch.row_bounds) - 1):
        first, end = batch.row_bounds[place], batch.row_bounds[place + 1]
        _prefetch_weights(layers, place + 1)
        _sum_slopes(batch, made, place, gradient)
        for row in range(first, end, BLOCK):
            _block_gradient(layers, batch, made, place, row, min(BLOCK, end - row), gradient)
    _filter_gradient(batch, made, gradient)


@exact_part
def _output_gradient(layers: Layers, made: Pass, output_gradient: Float32Array, gradient: Layers) -> None:
    """Compute the gradients of the output layer and of the hidden bias, and put that of each hidden layer into it."""
    size, n_outputs = output_gradient.shape
    gradient.output[:] = ZERO
    gradient.output_bias[:] = ZERO
    gradient.hidden_bias[:] = ZERO
    for i in range(size):
        for half in (0, HALF):
            hidden, slope = load64(made.hidden, i * HIDDEN + half), zeros64()
            for a in range(n_outputs):
                if output_gradient[i, a] != 0:
                    at = a * HIDDEN + half
                    slope = add_product(slope, output_gradient[i, a], load64(layers.output, at))
                    total = add_product(
                        load64(gradient.output, at), output_gradient[i, a], where_positive(hidden, hidden)
                    )
                    store64(gradient.output, at, total)
            slope = where_positive(hidden, slope)
            store64(gradient.hidden_bias, half, add(load64(gradient.hidden_bias, half), slope))
            store64(made.hidden, i * HIDDEN + half, slope)
        for a in range(n_outputs):
            gradient.output_bias[a] += output_gradient[i, a]


@exact_part
def _sum_slopes(batch: Batch, made: Pass, place: int, gradient: Layers) -> None:
    """Sum the gradients of the hidden layer over the images of each row of a place."""
    slopes, start, size = made.hidden, made.start, len(batch.image)
    first, single = batch.row_bounds[place], batch.first_single[place]
    rest_low, rest_high = load64(gradient.hidden_bias, 0), load64(gradient.hidden_bias, HALF)
    for row in range(first + 1, single):
        low = high = zeros64()
        for k in range(batch.member_bounds[row], batch.member_bounds[row + 1]):
            at = batch.member[k] * HIDDEN
            low, high = add(low, load64(slopes, at)), add(high, load64(slopes, at + HALF))
        rest_low, rest_high = subtract(rest_low, low), subtract(rest_high, high)
        start[row - first] = (size + row - first) * HIDDEN
        _set(slopes, start[row - first], low, high)
    for row in range(single, batch.row_bounds[place + 1]):
        at = batch.member[batch.member_bounds[row]] * HIDDEN
        rest_low, rest_high = subtract(rest_low, load64(slopes, at)), subtract(rest_high, load64(slopes, at + HALF))
        start[row - first] = at
    start[0] = size * HIDDEN
    _set(slopes, start[0], rest_low, rest_high)


@exact_part
def _set(array: Float32Array, at: int, low: Vector, high: Vector) -> None:
    """Write both halves of a hidden layer to an array, from element ``at`` on."""
    store64(array, at, low)
    store64(array, at + HALF, high)


@exact_part
def _block_gradient(
    layers: Layers, batch: Batch, made: Pass, place: int, row: int, count: int, gradient: Layers
) -> None:
    """Add the part of ``count`` rows of a place, at most `BLOCK`, to the gradients of the weights and the features."""
    skipped = row - batch.row_bounds[place]
    for r in range(count):
        store16(made.block, r * FILTERS, load16(made.features, batch.patch[row + r] * FILTERS))
    for r in range(0, BLOCK, 16):
        transpose16(made.block, r * FILTERS, FILTERS, made.turned, r, BLOCK)
    for f in range(FILTERS):
        _add_outer_products(layers, made, place, f, skipped, count, gradient)
    for r in range(0, BLOCK, 16):
        transpose16(made.turned_slope, r, BLOCK, made.block, r * FILTERS, FILTERS)
    for r in range(count):
        at = batch.patch[row + r] * FILTERS
        store16(made.feature_slope, at, add(load16(made.feature_slope, at), load16(made.block, r * FILTERS)))


@exact_part
def _add_outer_products(
    layers: Layers, made: Pass, place: int, f: int, skipped: int, count: int, gradient: Layers
) -> None:
    """Do the part of `_block_gradient` of filter ``f``, after ``skipped`` rows of the place.

    The gradient of features that are 0 is not written; `_filter_gradient` ignores it.
    """
    weights = place * PLACE_SIZE + f * HIDDEN
    low, high = load64(layers.hidden, weights), load64(layers.hidden, weights + HALF)
    total_low, total_high = load64(gradient.hidden, weights), load64(gradient.hidden, weights + HALF)
    bits = positive_bits(load16(made.turned, f * BLOCK))
    bits |= positive_bits(load16(made.turned, f * BLOCK + 16)) << np.uint64(16)
    bits &= (ONE_BIT << np.uint64(count)) - ONE_BIT
    while bits != 0:
        r = lowest_bit(bits)
        bits &= bits - ONE_BIT
        at = made.start[skipped + r]
        slope_low, slope_high = load64(made.hidden, at), load64(made.hidden, at + HALF)
        total_low = add_product(total_low, made.turned[f, r], slope_low)
        total_high = add_product(total_high, made.turned[f, r], slope_high)
        made.turned_slope[f, r] = sum_of(add_product(add_product(zeros64(), low, slope_low), high, slope_high))
    _set(gradient.hidden, weights, total_low, total_high)


@exact_part
def _filter_gradient(batch: Batch, made: Pass, gradient: Layers) -> None:
    """Compute the gradient of the filters from that of the features."""
    _clear(made.filters, 0, made.filters.size)
    bias = zeros16()
    for patch in range(batch.n_patches[0]):
        slope = where_positive(load16(made.features, patch * FILTERS), load16(made.feature_slope, patch * FILTERS))
        bias = add(bias, slope)
        for at in range(batch.cell_bounds[patch], batch.cell_bounds[patch + 1]):
            for byte in range(4):
                cell = (batch.cells[at] >> (8 * byte) & 0xFF) * FILTERS
                store16(made.filters, cell, add(load16(made.filters, cell), slope))
    _copy(made.filters, gradient.filters, gradient.filters.size)
    _clear(made.filters, 0, made.filters.size)
    store16(gradient.filter_bias, 0, bias)


@exact_part
def adam_step(flat: Float32Array, gradient: Float32Array, memory: Adam, rate: float, count: int) -> None:
    """Make the ``count``-th Adam step (from 1) on parameters [parameters]."""
    one, two = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
    step = np.float32(rate / (1 - BETA_1**count))
    scale, small = np.float32(1 / (1 - BETA_2**count)), np.float32(EPSILON)
    first, second = memory.first, memory.second
    for i in range(len(flat)):
        g = gradient[i]
        mean = first[i] + one * (g - first[i])
        square = second[i] + two * (g * g - second[i])
        first[i] = mean if abs(mean) > TINY else ZERO
        second[i] = square if square > TINY else ZERO
        flat[i] -= step * mean / (np.sqrt(square * scale) + small)


@exact_part
def follow(flat: Float32Array, source: Float32Array, step: float) -> None:
    """Move the parameters of a target network by the share ``step`` towards those of its source."""
    share = np.float32(step)
    for i in range(len(flat)):
        flat[i] += share * (source[i] - flat[i])
