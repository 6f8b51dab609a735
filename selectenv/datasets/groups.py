"""Groups of states as what a label covers: the states of a grouped dataset, and what they consist of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from selectenv.typing import Int32Array

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset

STORED_IDS, STORED_CELLS, STORED_CENTRES = "group_ids", "group_of_state", "group_centres"
"""Keys among the stored arrays of a dataset."""


class Regions(Protocol):
    """Maps observations to the cells that they fall into."""

    def find(self, observations: NDArray[Any]) -> Int32Array:
        """Return the numbers [count] of the cells that observations [count, d] fall into."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored."""


@dataclass(frozen=True, eq=False)
class Groups:
    """What the states of a grouped dataset consist of.

    Three partitions meet here: the states before grouping (`base`), the groups that labels cover (the states of the
    grouped dataset), and the cells, which are the states of tables. Cells are the groups themselves, unless groups are
    whole episodes: no observation falls into an episode, so tables then have cells of their own.
    """

    base: "OfflineDataset"
    """The same transitions in the same order over the states before grouping, without rewards; networks learn here."""
    cell: Int32Array
    """[states of base] the cell of each state."""
    regions: Regions | None = None
    """Where observations fall; None if the base has no vectors."""
    cells: "OfflineDataset | None" = None
    """The same transitions over the cells, without rewards; None if the groups are the cells."""

    @property
    def unit(self) -> str:
        """What one label covers: "group" or "episode"."""
        return "group" if self.cells is None else "episode"

    def locate(self, observations: NDArray[Any]) -> Int32Array:
        """Return the numbers [count] of the cells that observations [count, ...] fall into, -1 where there is none."""
        if self.regions is not None:
            return self.regions.find(observations)
        found = self.base.locate(observations)
        return np.where(found >= 0, self.cell[found], np.int32(-1))

    def arrays(self, ids: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored; ``ids`` are those of the groups."""
        more = {} if self.regions is None else self.regions.arrays()
        return {STORED_IDS: ids, STORED_CELLS: self.cell, **more}
