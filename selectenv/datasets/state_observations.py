"""Observations of states: one interface for images and vectors."""

from typing import Any, Protocol

from numpy.typing import NDArray

from selectenv.typing import Int32Array


class StateObservations(Protocol):
    """The observation of each state of a dataset, indexed by state number."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""

    def __len__(self) -> int:
        """Return the number of states."""

    def __getitem__(self, states: Any) -> NDArray[Any]:
        """Return the observations [count, *shape] of states [count]; a single number gives a single observation."""

    def find(self, ids: NDArray[Any], observations: NDArray[Any]) -> Int32Array:
        """Return the state numbers [count] of observations [count, *shape]; -1 where no state has this observation.

        Args:
            ids: [n] the ids of the dataset.
            observations: the observations to find.
        """

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored."""
