"""Train the small network on images that share patches: forward pass, backward pass and Adam, in one thread.

The hidden layer is a sum over places,  h = b + sum_p W_p f_p,  f = relu(filters . patch). The images of a batch have
few distinct patches at each place, and many images have the usual one, with features u_p; see `Batch`. So W_p f is
computed once for each distinct patch, from the features that are not 0, and an image is corrected where it differs:

    h = (b + sum_p W_p u_p) + sum over its exceptions of W_p (f_p - u_p).

The backward pass has the same form. With e_i the gradient of the hidden layer of image i, and E = sum_i e_i,

    gradient of W_p = E u_p' + sum over the exceptions at p of e_i (f_p - u_p)'.

Only active units have a gradient, a few of the 128 in a trained network: e_i is kept as a list of these.
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
    store16,
    store64,
    subtract,
    sum_of,
    transpose16,
    where_positive,
    zeros16,
    zeros64,
)
from selectenv.typing import Float32Array, Int32Array

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Constants of Adam."""
HALF = HIDDEN // 2
TOGETHER = 4
"""Active filters of a patch, or hidden units of an image, that are processed together; zeros fill up the last ones."""
ZERO, ONE_BIT = np.float32(0), np.uint64(1)
FILTER_BITS = np.uint64((1 << FILTERS) - 1)
PADDING_BITS = np.uint64(((1 << TOGETHER - 1) - 1) << FILTERS)
"""Stand for filters with the output 0."""
TINY = np.float32(1e-30)
"""Smaller averages are replaced by 0: they change no weight, and many machines are slow with subnormal numbers."""


class Pass(NamedTuple):
    """Activations of a network for one batch, kept for the backward pass, and room for both passes."""

    features: Float32Array
    """[rows, filters] filter outputs of each row."""
    hidden: Float32Array
    """[size, hidden] before the rectifier; then zeros, and what the rows of a place add to it beyond the first one."""
    filters: Float32Array
    """[cells, filters] the filters, with zeros at `NO_CELL`; in the backward pass, their gradient."""
    current: Float32Array
    """[filters + `TOGETHER`] the filter outputs of one row, then zeros."""
    active: Int32Array
    """[size + 1, hidden] the hidden units with a gradient, by number; last come all units, for the whole batch."""
    slope: Float32Array
    """[size + 1, hidden] the gradient of each of these units; last comes the sum over the batch."""
    n_active: Int32Array
    """[size + 1] the number of these units."""
    weights: Float32Array
    """[hidden, filters] the weights of a place."""
    weight_slope: Float32Array
    """[hidden, filters] their gradient."""
    feature_slope: Float32Array
    """[rows of a place, filters] the gradient of the filter outputs."""


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
        hidden=aligned_zeros(2 * size + 1, HIDDEN),
        filters=aligned_zeros(CELLS, FILTERS),
        current=aligned_zeros(FILTERS + TOGETHER),
        active=np.tile(np.arange(HIDDEN, dtype=np.int32), (size + 1, 1)),
        slope=aligned_zeros(size + 1, HIDDEN),
        n_active=np.full(size + 1, HIDDEN, np.int32),
        weights=aligned_zeros(HIDDEN, FILTERS),
        weight_slope=aligned_zeros(HIDDEN, FILTERS),
        feature_slope=aligned_zeros(rows, FILTERS),
    )


@exact_part
def forward(layers: Layers, batch: Batch, made: Pass) -> None:
    """Compute the hidden layer of a batch."""
    size, sums = len(batch.image), made.hidden
    for at in range(0, layers.filters.size, FILTERS):
        store16(made.filters, at, load16(layers.filters, at))
    _clear(sums, (size + 1) * HIDDEN)
    low, high = load64(layers.hidden_bias, 0), load64(layers.hidden_bias, HALF)
    for place in range(len(batch.row_bounds) - 1):
        first = batch.row_bounds[place]
        usual_low, usual_high = _contribution(layers, batch, made, place, first)
        low, high = add(low, usual_low), add(high, usual_high)
        for row in range(first + 1, batch.row_bounds[place + 1]):
            own_low, own_high = _contribution(layers, batch, made, place, row)
            only = batch.only[row]
            before = (only if only >= 0 else size) * HIDDEN
            after = (only if only >= 0 else size + row - first) * HIDDEN
            store64(sums, after, add(load64(sums, before), subtract(own_low, usual_low)))
            store64(sums, after + HALF, add(load64(sums, before + HALF), subtract(own_high, usual_high)))
        for j in range(batch.shared_bounds[place], batch.shared_bounds[place + 1]):
            k = batch.shared[j]
            at = (size + batch.row[k] - first) * HIDDEN
            _add_to(sums, batch.position[k], load64(sums, at), load64(sums, at + HALF))
    for i in range(size):
        _add_to(sums, i, low, high)


@exact_part
def _contribution(layers: Layers, batch: Batch, made: Pass, place: int, row: int) -> tuple[Vector, Vector]:
    """Compute the features of a row, and return what they add to both halves of the hidden layer."""
    own = load16(layers.filter_bias, 0)
    for at in range(batch.cell_bounds[row], batch.cell_bounds[row + 1]):
        for byte in range(4):
            cell = batch.cells[at] >> (8 * byte) & 0xFF
            own = add(own, load16(made.filters, cell * FILTERS))
    own = where_positive(own, own)
    store16(made.features, row * FILTERS, own)
    store16(made.current, 0, own)
    low = high = zeros64()
    bits = positive_bits(own) | PADDING_BITS
    while bits & FILTER_BITS != 0:
        for _ in range(TOGETHER):
            f = lowest_bit(bits)
            bits &= bits - ONE_BIT
            at = (place * FILTERS + f % FILTERS) * HIDDEN
            low = add_product(low, made.current[f], load64(layers.hidden, at))
            high = add_product(high, made.current[f], load64(layers.hidden, at + HALF))
    return low, high


@exact_part
def _add_to(hidden: Float32Array, i: int, low: Vector, high: Vector) -> None:
    """Add both halves of a hidden layer to that of image ``i``."""
    at = i * HIDDEN
    store64(hidden, at, add(load64(hidden, at), low))
    store64(hidden, at + HALF, add(load64(hidden, at + HALF), high))


@exact_part
def _clear(array: Float32Array, size: int) -> None:
    """Set the first elements of an array to 0, as many as ``size``, a multiple of 16."""
    for at in range(0, size, 16):
        store16(array, at, zeros16())


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
    """Compute the gradient of the loss with respect to the parameters.

    Args:
        layers: the network.
        batch: see `forward`; no image may be missing.
        made: the result of `forward`.
        output_gradient: [size, outputs] gradient of the loss with respect to the outputs.
        gradient: receives the result.
    """
    size = len(output_gradient)
    _output_gradient(layers, made, output_gradient, gradient)
    gradient.hidden_bias[:] = made.slope[size]
    _clear(made.filters, made.filters.size)
    bias = zeros16()
    for place in range(len(batch.row_bounds) - 1):
        first, start = batch.row_bounds[place], place * FILTERS * HIDDEN
        for h in range(0, HIDDEN, FILTERS):
            transpose16(layers.hidden, start + h, HIDDEN, made.weights, h * FILTERS, FILTERS)
        _place_gradient(batch, made, place, size)
        for h in range(0, HIDDEN, FILTERS):
            transpose16(made.weight_slope, h * FILTERS, FILTERS, gradient.hidden, start + h, HIDDEN)
        for row in range(first, batch.row_bounds[place + 1]):
            slope = load16(made.feature_slope, (row - first) * FILTERS)
            slope = where_positive(load16(made.features, row * FILTERS), slope)
            bias = add(bias, slope)
            for at in range(batch.cell_bounds[row], batch.cell_bounds[row + 1]):
                for byte in range(4):
                    cell = (batch.cells[at] >> (8 * byte) & 0xFF) * FILTERS
                    store16(made.filters, cell, add(load16(made.filters, cell), slope))
    for at in range(0, gradient.filters.size, FILTERS):
        store16(gradient.filters, at, load16(made.filters, at))
    _clear(made.filters, made.filters.size)
    store16(gradient.filter_bias, 0, bias)


@exact_part
def _output_gradient(layers: Layers, made: Pass, output_gradient: Float32Array, gradient: Layers) -> None:
    """Compute the gradient of the output layer, and that of the active units of the hidden layer."""
    size, n_outputs = output_gradient.shape
    gradient.output[:] = ZERO
    gradient.output_bias[:] = ZERO
    made.slope[size] = ZERO
    whole = size * HIDDEN
    for i in range(size):
        count = 0
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
            store64(made.slope, whole + half, add(load64(made.slope, whole + half), slope))
            store64(made.hidden, whole + half, slope)
            bits = positive_bits(hidden)
            while bits != 0:
                h = half + lowest_bit(bits)
                bits &= bits - ONE_BIT
                made.active[i, count], made.slope[i, count] = h, made.hidden[size, h]
                count += 1
        while count % TOGETHER:
            made.active[i, count], made.slope[i, count] = 0, ZERO
            count += 1
        made.n_active[i] = count
        for a in range(n_outputs):
            gradient.output_bias[a] += output_gradient[i, a]


@exact_part
def _place_gradient(batch: Batch, made: Pass, place: int, size: int) -> None:
    """Compute the gradients of the weights and of the features of a place."""
    first = batch.row_bounds[place]
    _clear(made.weight_slope, made.weight_slope.size)
    _clear(made.feature_slope, (batch.row_bounds[place + 1] - first) * FILTERS)
    usual = load16(made.features, first * FILTERS)
    rest = _add_outer_product(made, size, usual)
    for k in range(batch.exception_bounds[place], batch.exception_bounds[place + 1]):
        row = batch.row[k]
        back = _add_outer_product(made, batch.position[k], subtract(load16(made.features, row * FILTERS), usual))
        at = (row - first) * FILTERS
        store16(made.feature_slope, at, add(load16(made.feature_slope, at), back))
        rest = subtract(rest, back)
    store16(made.feature_slope, 0, rest)


@exact_part
def _add_outer_product(made: Pass, i: int, features: Vector) -> Vector:
    """Add the product of the gradient of image ``i`` with features to that of the weights.

    Returns:
        The product of the gradient with the weights: the gradient of the features.
    """
    b0 = b1 = b2 = b3 = zeros16()
    for j in range(0, made.n_active[i], TOGETHER):
        b0 = _add_unit(made, i, j, features, b0)
        b1 = _add_unit(made, i, j + 1, features, b1)
        b2 = _add_unit(made, i, j + 2, features, b2)
        b3 = _add_unit(made, i, j + 3, features, b3)
    return add(add(b0, b1), add(b2, b3))


@exact_part
def _add_unit(made: Pass, i: int, j: int, features: Vector, back: Vector) -> Vector:
    """Do the part of `_add_outer_product` of one hidden unit; return the sum with ``back``."""
    at, slope = made.active[i, j] * FILTERS, made.slope[i, j]
    store16(made.weight_slope, at, add_product(load16(made.weight_slope, at), slope, features))
    return add_product(back, slope, load16(made.weights, at))


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
