"""Nearest centres: which of a few points each vector is closest to."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.typing import Float32Array, FloatArray, Int32Array


@kernel
def nearest_centres(vectors: Float32Array, mean: FloatArray, scale: FloatArray, centres: FloatArray) -> Int32Array:
    """Return the number [count] of the nearest centre of each vector; the first one of those that tie.

    Every vector is treated on its own and sums have one order, so the result depends neither on the number of threads
    nor on which vectors are asked for together.

    Args:
        vectors: [count, d]
        mean: [d] subtracted from vectors.
        scale: [d] then divides them.
        centres: [k, d]
    """
    count, d = vectors.shape
    found = np.empty(count, np.int32)
    point = np.empty(d)
    for i in range(count):
        for j in range(d):
            point[j] = (vectors[i, j] - mean[j]) / scale[j]
        best, nearest = np.inf, 0
        for k in range(len(centres)):
            distance = 0.0
            for j in range(d):
                step = point[j] - centres[k, j]
                distance += step * step
            if distance < best:
                best, nearest = distance, k
        found[i] = nearest
    return found
