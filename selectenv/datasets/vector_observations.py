"""Vector states: one row of numbers per state."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selectenv.checks import as_array, shown
from selectenv.errors import DatasetError, ObservationError
from selectenv.typing import Float32Array, FloatArray, Int32Array, IntArray

STORED_VALUES, STORED_NAMES = "vectors", "vector_columns"
"""Keys among the stored arrays of a dataset."""
CONSTANT = 1e-6
"""Columns whose standard deviation is at most this share of their mean count as constant: float32 resolves no more."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vector of each state of a dataset, indexed by state number."""

    values: Float32Array
    """[n, d]"""
    columns: tuple[str, ...] = ()
    """[d] names of the columns; "x0", "x1", ... by default."""

    def __post_init__(self) -> None:
        """Reject arrays that are not vectors, and numbers that are not finite."""
        values = self.values
        if not isinstance(values, np.ndarray) or values.dtype != np.float32 or values.ndim != 2 or not values.shape[1]:
            raise DatasetError(f"vectors must be an array of float32 with shape [states, columns], not {shown(values)}")
        width = values.shape[1]
        names = tuple(map(str, self.columns)) or tuple(f"x{i}" for i in range(width))
        if len(names) != width or len(set(names)) != width:
            raise DatasetError(f"vectors of {width} columns need {width} different names, not {shown(names)}")
        object.__setattr__(self, "columns", names)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0].tolist()
            raise DatasetError(
                f"vectors must be finite numbers: column {names[column]!r} of state number {row} is "
                f"{values[row, column]:g}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one vector: (d,)."""
        return self.values.shape[1:]

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self.values)

    def __getitem__(self, states: Any) -> Float32Array:
        """Return the vectors [count, d] of states by number; a single number gives a single vector [d]."""
        return np.asarray(self.values[states])

    @cached_property
    def mean(self) -> FloatArray:
        """[d] mean of each column over the states."""
        return np.asarray(self.values.mean(axis=0, dtype=np.float64))

    @cached_property
    def scale(self) -> FloatArray:
        """[d] standard deviation of each column over the states; 1 for columns that never change but for rounding."""
        deviation = self.values.std(axis=0, dtype=np.float64)
        return np.where(deviation > CONSTANT * np.abs(self.mean), deviation, 1.0)

    def check(self, observations: ArrayLike) -> Float32Array:
        """Return observations [count, d] as float32.

        Raises:
            ObservationError: they have another shape, or are not finite numbers.
        """
        return check_vectors(observations, self.columns)

    def find(self, ids: NDArray[Any], observations: NDArray[Any]) -> Int32Array:
        """Return the state numbers [count] of vectors [count, d]; -1 where no state has exactly this vector."""
        rows, order = self._sorted_rows
        wanted = as_bytes(self.check(observations))
        place = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
        return np.where(rows[place] == wanted, order[place], -1).astype(np.int32)

    @cached_property
    def _sorted_rows(self) -> tuple[NDArray[np.void], IntArray]:
        rows = as_bytes(self.values)
        order = np.argsort(rows)
        return rows[order], order

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored."""
        return {STORED_VALUES: self.values, STORED_NAMES: np.array(self.columns)}


def take_vectors(arrays: dict[str, Any]) -> Vectors:
    """Remove the vectors from the arrays of a file and return them."""
    return Vectors(arrays.pop(STORED_VALUES), tuple(arrays.pop(STORED_NAMES).tolist()))


def check_vectors(observations: ArrayLike, columns: Sequence[str]) -> Float32Array:
    """Return observations [count, d] as float32, after checking that they are vectors with d named columns.

    Raises:
        ObservationError: they have another shape, or are not finite numbers.
    """
    found = as_array("observations", observations, ObservationError)
    if found.shape == (len(columns),):
        raise ObservationError(
            f"observations must have the shape [count, {len(columns)}], not [{len(columns)}]: put a single vector into "
            "a list"
        )
    if found.ndim != 2 or found.shape[1] != len(columns) or found.dtype.kind not in "fiub":
        raise ObservationError(
            f"an observation must be a vector of {len(columns)} numbers ({', '.join(columns)}), not "
            f"{found.dtype}{list(found.shape[1:])}"
        )
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(found, np.float32)
    if not np.isfinite(vectors).all():
        raise ObservationError(
            f"an observation must consist of finite numbers that fit into 32 bits, not {shown(found)}"
        )
    return vectors


def as_bytes(vectors: Float32Array) -> NDArray[np.void]:
    """Return vectors [n, d] as n byte strings; -0.0 becomes 0.0, so that equal vectors are equal strings."""
    plain = np.ascontiguousarray(vectors) + np.float32(0)
    return np.asarray(plain.view(f"V{plain.shape[1] * plain.itemsize}")[:, 0])
