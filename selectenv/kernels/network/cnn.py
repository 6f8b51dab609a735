"""Forward pass of the small convolutional network of the MinAtar worlds, which skips unset cells and inactive units.

Images are processed one at a time, in a fixed order of operations: a result does not depend on the rest of the batch.
"""

from typing import NamedTuple, Protocol

import numpy as np

from selectenv.errors import ObservationError
from selectenv.kernels.compiled import kernel
from selectenv.kernels.network.simd import (
    add,
    add_product,
    load16,
    load64,
    lowest_bit,
    positive_bits,
    store16,
    store64,
)
from selectenv.kernels.threads import slices
from selectenv.typing import BoolArray, Float32Array


class KnownImages(Protocol):
    """Images whose patches are known, so that the outputs of a network are computed in another way."""

    def outputs(self, layers: "Layers") -> Float32Array:
        """Return the outputs [images, outputs] of a network."""


class Layers(NamedTuple):
    """The weights, in the layout of the loops below."""

    filters: Float32Array
    """[channels, 3, 3, filters]"""
    filter_bias: Float32Array
    """[filters]"""
    hidden: Float32Array
    """[rows, columns, filters, hidden] of the filtered image."""
    hidden_bias: Float32Array
    """[hidden]"""
    output: Float32Array
    """[outputs, hidden]"""
    output_bias: Float32Array
    """[outputs]"""

    def outputs(self, images: BoolArray | KnownImages) -> Float32Array:
        """Return the outputs [batch, outputs] for images [batch, rows, columns, channels].

        Raises:
            ObservationError: the images have another shape.
        """
        if not isinstance(images, np.ndarray):
            return images.outputs(self)
        shape = SIDE, SIDE, len(self.filters)
        if images.shape[1:] != shape or images.dtype != np.bool_:
            raise ObservationError(
                f"an observation must be a boolean image of shape {shape}, not {images.dtype}{list(images.shape[1:])}"
            )
        return outputs(self, images)


SIDE, FILTERS, HIDDEN = 10, 16, 128


def shapes(channels: int, n_outputs: int) -> tuple[tuple[int, ...], ...]:
    """Return the shape of each part of the network, in the order of `Layers`."""
    inner = SIDE - 2
    filters, hidden = (channels, 3, 3, FILTERS), (inner, inner, FILTERS, HIDDEN)
    return filters, (FILTERS,), hidden, (HIDDEN,), (n_outputs, HIDDEN), (n_outputs,)


def split(flat: Float32Array, channels: int, n_outputs: int) -> Layers:
    """Return the parts of a network as views of its parameters [parameters]."""
    parts, used = [], 0
    for shape in shapes(channels, n_outputs):
        size = int(np.prod(shape))
        parts.append(flat[used : used + size].reshape(shape))
        used += size
    return Layers(*parts)


@kernel
def forward_images(layers: Layers, images: BoolArray, out: Float32Array) -> None:
    """Write the outputs of images into ``out``; see `outputs`."""
    batch, rows, columns, channels = images.shape
    filtered = np.empty((rows - 2, columns - 2, FILTERS), np.float32)
    hidden = np.empty(HIDDEN, np.float32)
    values = np.empty(FILTERS, np.float32)
    for i in range(batch):
        filtered[:] = layers.filter_bias
        for r in range(rows):
            for c in range(columns):
                for k in range(channels):
                    if images[i, r, c, k]:
                        for dr in range(max(0, r - rows + 3), min(3, r + 1)):
                            for dc in range(max(0, c - columns + 3), min(3, c + 1)):
                                at = ((r - dr) * (columns - 2) + c - dc) * FILTERS
                                weight = load16(layers.filters, ((k * 3 + dr) * 3 + dc) * FILTERS)
                                store16(filtered, at, add(load16(filtered, at), weight))
        low, high = load64(layers.hidden_bias, 0), load64(layers.hidden_bias, HIDDEN // 2)
        for at in range(0, filtered.size, FILTERS):
            own = load16(filtered, at)
            store16(values, 0, own)
            bits = positive_bits(own)
            while bits != 0:
                f = lowest_bit(bits)
                bits &= bits - np.uint64(1)
                low = add_product(low, values[f], load64(layers.hidden, (at + f) * HIDDEN))
                high = add_product(high, values[f], load64(layers.hidden, (at + f) * HIDDEN + HIDDEN // 2))
        store64(hidden, 0, low)
        store64(hidden, HIDDEN // 2, high)
        out[i] = layers.output_bias
        for h in range(HIDDEN):
            if hidden[h] > 0:
                for a in range(out.shape[1]):
                    out[i, a] += hidden[h] * layers.output[a, h]


def outputs(layers: Layers, images: BoolArray) -> Float32Array:
    """Return the outputs [batch, outputs] for images [batch, rows, columns, channels]."""
    out = np.empty((len(images), len(layers.output_bias)), np.float32)
    for first, last in slices(len(images), layers.hidden.size):
        forward_images(layers, images[first:last], out[first:last])
    return out
