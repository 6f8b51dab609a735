"""Networks with two hidden layers on vectors: forward pass, backward pass, and outputs for policies.

    h = relu(x W + b),  k = relu(h U + c),  y = k O' + d,  with x the vector in standardised columns.

With e the gradient of the loss with respect to the outputs, the backward pass is

    f = (e O) * 1[k > 0],  g = (f U') * 1[h > 0],  O: e' k,  U: h' f,  W: x' g,

and biases get the sums of e, f and g over the batch. All matrix products are sums over rows of 128 floats, of which a
tile of 4 x 64 is kept in registers. Each number is summed in a fixed order that does not depend on the rest of the
batch.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import exact_part, kernel
from selectenv.kernels.network.backprop import output
from selectenv.kernels.network.cnn import HIDDEN
from selectenv.kernels.network.simd import (
    add,
    add_product,
    aligned_zeros,
    load64,
    store64,
    transpose16,
    where_positive,
    zeros64,
)
from selectenv.kernels.threads import slices
from selectenv.typing import Float32Array, FloatArray, Int32Array

TILE, SPAN = 4, 64
"""Rows and columns of a tile of a matrix product."""
PLAYED_AT_ONCE = 64
"""Vectors of one forward pass of `outputs`."""
ZERO = np.float32(0)


class VectorLayers(NamedTuple):
    """The weights of a network; columns of vectors are padded to a multiple of `TILE`."""

    first: Float32Array
    """[padded columns, hidden]"""
    first_bias: Float32Array
    """[hidden]"""
    second: Float32Array
    """[hidden, hidden]"""
    second_bias: Float32Array
    """[hidden]"""
    output: Float32Array
    """[outputs, hidden]"""
    output_bias: Float32Array
    """[outputs]"""


class VectorTable(NamedTuple):
    """Vectors, and how their columns are standardised."""

    values: Float32Array
    """[vectors, columns]"""
    mean: FloatArray
    """[columns]"""
    scale: FloatArray
    """[columns] divides the differences from the mean."""


class VectorBatch(NamedTuple):
    """The vectors of one pass; reused from pass to pass."""

    number: Int32Array
    """[size] the vectors by number; -1 for a missing one, which counts as the mean."""
    inputs: Float32Array
    """[padded size, padded columns] standardised; rows and columns beyond the vectors are 0."""


class VectorPass(NamedTuple):
    """Activations of a network for one batch, kept for the backward pass, and room for it."""

    lower: Float32Array
    """[padded size, hidden] the first hidden layer, after the rectifier."""
    hidden: Float32Array
    """[padded size, hidden] the second hidden layer, before the rectifier."""
    lower_slope: Float32Array
    """[padded size, hidden] gradient with respect to the first hidden layer."""
    slope: Float32Array
    """[padded size, hidden] gradient with respect to the second hidden layer."""
    turned: Float32Array
    """[hidden, hidden] the transposed weights of the second hidden layer."""


def padded(count: int) -> int:
    """Return the next multiple of `TILE`."""
    return -(-count // TILE) * TILE


def vector_table(values: Float32Array, mean: FloatArray, scale: FloatArray) -> VectorTable:
    """Return a table of vectors [vectors, columns]; all tables have the same type, so loops are compiled once."""
    rows = np.ascontiguousarray(values).view()
    rows.flags.writeable = False
    return VectorTable(rows, mean, scale)


def vector_shapes(columns: int, n_outputs: int) -> tuple[tuple[int, ...], ...]:
    """Return the shape of each part of the network, in the order of `VectorLayers`."""
    return (padded(columns), HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (n_outputs, HIDDEN), (n_outputs,)


def new_vector_batch(size: int, columns: int) -> VectorBatch:
    """Return an empty `VectorBatch`."""
    return VectorBatch(np.full(size, -1, np.int32), aligned_zeros(padded(size), padded(columns)))


def new_vector_pass(size: int) -> VectorPass:
    """Return an empty `VectorPass` for batches of ``size`` vectors."""
    lower, hidden, lower_slope, slope = (aligned_zeros(padded(size), HIDDEN) for _ in range(4))
    return VectorPass(lower, hidden, lower_slope, slope, aligned_zeros(HIDDEN, HIDDEN))


@exact_part
def fill_vector_batch(batch: VectorBatch, table: VectorTable) -> None:
    """Copy the vectors of a batch from the table, with standardised columns."""
    for i in range(len(batch.number)):
        number = batch.number[i]
        for j in range(table.values.shape[1]):
            value = (table.values[number, j] - table.mean[j]) / table.scale[j] if number >= 0 else 0.0
            batch.inputs[i, j] = np.float32(value)


@exact_part
def _add_product(
    left: Float32Array, row_step: int, inner_step: int, inner: int, right: Float32Array, total: Float32Array
) -> None:
    """Add a matrix product to ``total`` [rows, hidden]; the number of rows is a multiple of `TILE`.

    Args:
        left: the left matrix [rows, inner], or its transpose.
        row_step: elements from one row of the left matrix to the next.
        inner_step: elements from one column of the left matrix to the next.
        inner: number of columns of the left matrix.
        right: [inner, hidden]
        total: receives the result.
    """
    flat = left.reshape(-1)
    for column in range(0, HIDDEN, SPAN):
        for row in range(0, len(total), TILE):
            at, source = row * HIDDEN + column, row * row_step
            t0, t1 = load64(total, at), load64(total, at + HIDDEN)
            t2, t3 = load64(total, at + 2 * HIDDEN), load64(total, at + 3 * HIDDEN)
            for k in range(inner):
                values, here = load64(right, k * HIDDEN + column), source + k * inner_step
                t0 = add_product(t0, flat[here], values)
                t1 = add_product(t1, flat[here + row_step], values)
                t2 = add_product(t2, flat[here + 2 * row_step], values)
                t3 = add_product(t3, flat[here + 3 * row_step], values)
            store64(total, at, t0)
            store64(total, at + HIDDEN, t1)
            store64(total, at + 2 * HIDDEN, t2)
            store64(total, at + 3 * HIDDEN, t3)


@exact_part
def forward_vectors(layers: VectorLayers, batch: VectorBatch, made: VectorPass) -> None:
    """Compute both hidden layers of a batch."""
    lower, hidden = made.lower, made.hidden
    lower[:], hidden[:] = layers.first_bias, layers.second_bias
    columns = batch.inputs.shape[1]
    _add_product(batch.inputs, columns, 1, columns, layers.first, lower)
    for at in range(0, lower.size, SPAN):
        units = load64(lower, at)
        store64(lower, at, where_positive(units, units))
    _add_product(lower, HIDDEN, 1, HIDDEN, layers.second, hidden)


@exact_part
def backward_vectors(
    layers: VectorLayers, batch: VectorBatch, made: VectorPass, output_gradient: Float32Array, gradient: VectorLayers
) -> None:
    """Compute the gradient of the loss with respect to the parameters.

    Args:
        layers: the network.
        batch: see `forward_vectors`.
        made: the result of `forward_vectors`.
        output_gradient: [size, outputs] gradient of the loss with respect to the outputs.
        gradient: receives the result.
    """
    size, columns = len(output_gradient), batch.inputs.shape[1]
    gradient.first[:], gradient.second[:], gradient.output[:] = ZERO, ZERO, ZERO
    gradient.first_bias[:], gradient.second_bias[:], gradient.output_bias[:] = ZERO, ZERO, ZERO
    _output_slopes(layers, made, output_gradient, gradient)
    _add_product(made.lower, 1, HIDDEN, size, made.slope, gradient.second)
    for row in range(0, HIDDEN, 16):
        for column in range(0, HIDDEN, 16):
            transpose16(layers.second, row * HIDDEN + column, HIDDEN, made.turned, column * HIDDEN + row, HIDDEN)
    made.lower_slope[:] = ZERO
    _add_product(made.slope, HIDDEN, 1, HIDDEN, made.turned, made.lower_slope)
    for at in range(0, size * HIDDEN, SPAN):
        slope = where_positive(load64(made.lower, at), load64(made.lower_slope, at))
        store64(made.lower_slope, at, slope)
        bias = at % HIDDEN
        store64(gradient.first_bias, bias, add(load64(gradient.first_bias, bias), slope))
    _add_product(batch.inputs, 1, columns, size, made.lower_slope, gradient.first)


@exact_part
def _output_slopes(
    layers: VectorLayers, made: VectorPass, output_gradient: Float32Array, gradient: VectorLayers
) -> None:
    """Compute the gradients of the output layer and of the second bias, and that of the second hidden layer's units."""
    size, n_outputs = output_gradient.shape
    for i in range(size):
        for half in range(0, HIDDEN, SPAN):
            at, slope = i * HIDDEN + half, zeros64()
            hidden = load64(made.hidden, at)
            for a in range(n_outputs):
                if output_gradient[i, a] != 0:
                    weights = a * HIDDEN + half
                    slope = add_product(slope, output_gradient[i, a], load64(layers.output, weights))
                    total = add_product(
                        load64(gradient.output, weights), output_gradient[i, a], where_positive(hidden, hidden)
                    )
                    store64(gradient.output, weights, total)
            slope = where_positive(hidden, slope)
            store64(made.slope, at, slope)
            store64(gradient.second_bias, half, add(load64(gradient.second_bias, half), slope))
        for a in range(n_outputs):
            gradient.output_bias[a] += output_gradient[i, a]


@kernel
def _forward_table(
    layers: VectorLayers, table: VectorTable, batch: VectorBatch, made: VectorPass, out: Float32Array
) -> None:
    """Write the outputs for all vectors of a table into ``out``; see `vector_outputs`."""
    size = len(batch.number)
    for first in range(0, len(out), size):
        for i in range(size):
            batch.number[i] = first + i if first + i < len(out) else -1
        fill_vector_batch(batch, table)
        forward_vectors(layers, batch, made)
        for i in range(min(size, len(out) - first)):
            for a in range(out.shape[1]):
                out[first + i, a] = output(layers, made.hidden, i, a)


def vector_outputs(layers: VectorLayers, table: VectorTable) -> Float32Array:
    """Return the outputs [vectors, outputs] of a network."""
    count, columns = table.values.shape
    out = np.empty((count, len(layers.output_bias)), np.float32)
    size = min(PLAYED_AT_ONCE, padded(count))
    batch, made = new_vector_batch(size, columns), new_vector_pass(size)
    for first, last in slices(count, layers.second.size + layers.first.size):
        _forward_table(layers, table._replace(values=table.values[first:last]), batch, made, out[first:last])
    return out
