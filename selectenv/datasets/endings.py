"""Endings: where transitions led that entered no state of the dataset, such as "discharged" or "died"."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selectenv.datasets.log_columns import number_values
from selectenv.datasets.unique_transitions import UniqueTransitions
from selectenv.errors import DatasetError
from selectenv.typing import Int32Array

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset

STORED_CODE, STORED_NAMES, STORED_COLUMN = "ending", "ending_names", "ending_column_"
"""Keys among the stored arrays of a dataset."""


@dataclass(frozen=True, eq=False)
class Endings:
    """Where transitions ended, as far as the log says so. Only people see this: learners and features do not."""

    code: Int32Array
    """[size] index into ``names``; -1 where the log does not say it, and where a state of the dataset was entered."""
    names: NDArray[Any]
    """[endings] ids, made like those of states."""
    columns: tuple[NDArray[Any], ...] = ()
    """[endings] the value of each column of states, if these have several."""

    def check(self, dataset: "OfflineDataset") -> None:
        """Raise `DatasetError` unless the endings belong to the transitions of a dataset."""
        code, names = self.code, self.names
        if not isinstance(code, np.ndarray) or code.dtype != np.int32 or code.shape != (len(dataset),):
            raise DatasetError(f"endings.code must be an array of {len(dataset)} int32, one per transition")
        if not isinstance(names, np.ndarray) or names.dtype.kind not in "iuU" or names.ndim != 1:
            raise DatasetError("endings.names must be a one-dimensional array of integers or strings")
        if code.min() < -1 or code.max() >= len(names):
            raise DatasetError(f"endings.code must lie in -1..{len(names) - 1}")
        if ((code >= 0) & (dataset.next_state >= 0)).any():
            raise DatasetError("a transition that enters a state of the dataset has no ending: it must be -1")
        if any(column.shape != names.shape for column in self.columns):
            raise DatasetError("endings.columns must have one entry per ending")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored."""
        columns = {f"{STORED_COLUMN}{i}": values for i, values in enumerate(self.columns)}
        return {STORED_CODE: self.code, STORED_NAMES: self.names, **columns}


def take_endings(arrays: dict[str, Any]) -> Endings | None:
    """Remove the endings from the arrays of a file and return them; None if there are none."""
    if STORED_CODE not in arrays:
        return None
    columns = [name for name in arrays if name.startswith(STORED_COLUMN)]
    return Endings(
        arrays.pop(STORED_CODE),
        arrays.pop(STORED_NAMES),
        tuple(arrays.pop(f"{STORED_COLUMN}{i}") for i in range(len(columns))),
    )


def split_by_ending(unique: UniqueTransitions, endings: Endings) -> UniqueTransitions:
    """Return distinct transitions that also differ by their endings, in the order of ``unique``."""
    many = len(endings.names) + 1
    distinct, index = number_values(unique.index.astype(np.int64) * many + endings.code + 1)
    place, ending = np.divmod(distinct, many)
    return UniqueTransitions(
        index, unique.state[place], unique.action[place], unique.next_state[place], np.bincount(index), ending - 1
    )
