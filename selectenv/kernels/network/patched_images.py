"""Outputs of the small network for images of a dataset, whose patches are known: each distinct patch is computed once.

The result for an image does not depend on the other images, but it differs from that of `cnn.outputs` by rounding
errors, because the terms are added in another order.
"""

from dataclasses import dataclass

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.network.backprop import Pass, forward, new_pass, output
from selectenv.kernels.network.cnn import Layers
from selectenv.kernels.network.patches import Batch, Patches, fill_batch, new_batch
from selectenv.kernels.threads import slices
from selectenv.typing import BoolArray, Float32Array, IntArray

TOGETHER = 256
"""Images of one pass: the more of them, the more patches they share."""
IMAGE_COST = 1 << 11
"""Cost of one image, in the operations of `SLICE_COST`."""


@dataclass(frozen=True, eq=False)
class PatchedImages:
    """Some images of a dataset."""

    patches: Patches
    """The patches of all images."""
    chosen: IntArray
    """[images] these images by number."""

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.chosen)

    def __getitem__(self, which: BoolArray) -> "PatchedImages":
        """Return the images for which ``which`` [images] is true."""
        return PatchedImages(self.patches, self.chosen[which])

    def outputs(self, layers: Layers) -> Float32Array:
        """Return the outputs [images, outputs] of a network."""
        out = np.empty((len(self.chosen), len(layers.output_bias)), np.float32)
        batch, made = new_batch(TOGETHER, self.patches), new_pass(TOGETHER)
        for start, end in slices(-(-len(out) // TOGETHER), TOGETHER * IMAGE_COST):
            part = slice(start * TOGETHER, end * TOGETHER)
            forward_chosen(layers, self.patches, self.chosen[part], batch, made, out[part])
        return out


@kernel
def forward_chosen(
    layers: Layers, patches: Patches, chosen: IntArray, batch: Batch, made: Pass, out: Float32Array
) -> None:
    """Write the outputs of the chosen images into ``out``; see `PatchedImages.outputs`."""
    size = len(batch.image)
    for first in range(0, len(chosen), size):
        count = min(size, len(chosen) - first)
        batch.image[:] = -1
        for i in range(count):
            batch.image[i] = chosen[first + i]
        fill_batch(batch, patches)
        forward(layers, batch, made)
        for i in range(count):
            for a in range(out.shape[1]):
                out[first + i, a] = output(layers, made.hidden, i, a)
