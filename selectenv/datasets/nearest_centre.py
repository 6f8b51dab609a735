"""Regions around centres: where an observation falls if groups are clusters."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from selectenv.datasets.groups import STORED_CENTRES
from selectenv.datasets.vector_observations import Vectors, check_vectors
from selectenv.kernels.nearest import nearest_centres
from selectenv.typing import FloatArray, Int32Array


@dataclass(frozen=True, eq=False)
class NearestCentre:
    """Regions around centres in standardised columns: an observation falls into that of the nearest centre."""

    columns: tuple[str, ...]
    """[d] names of the columns."""
    mean: FloatArray
    """[d] subtracted from observations."""
    scale: FloatArray
    """[d] then divides them."""
    centres: FloatArray
    """[k, d]"""

    @classmethod
    def among(cls, vectors: Vectors, centres: FloatArray) -> "NearestCentre":
        """Return the regions around the centres of vectors, whose mean and scale standardise observations."""
        return cls(vectors.columns, vectors.mean, vectors.scale, centres)

    def find(self, observations: NDArray[Any]) -> Int32Array:
        """Return the numbers [count] of the nearest centres of observations [count, d]."""
        return nearest_centres(check_vectors(observations, self.columns), self.mean, self.scale, self.centres)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored."""
        return {STORED_CENTRES: self.centres}
