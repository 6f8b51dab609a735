"""Names for the array types that cross module borders."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
UintArray = NDArray[np.uint64]
Uint32Array = NDArray[np.uint32]
BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]
