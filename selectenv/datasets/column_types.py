"""The types of the columns of a dataset."""

from typing import TYPE_CHECKING

import numpy as np

from selectenv.checks import shown
from selectenv.errors import DatasetError

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset

COLUMNS = {
    **dict.fromkeys(("state", "action", "next_state"), np.dtype(np.int32)),
    **dict.fromkeys(("terminated", "truncated", "episode_start"), np.dtype(np.bool_)),
    "hidden_reward": np.dtype(np.float64),
}
"""Types of the columns, which have one entry per transition."""


def check_columns(dataset: "OfflineDataset") -> None:
    """Check the types of the columns, and make them contiguous."""
    for name, dtype in COLUMNS.items():
        column = getattr(dataset, name)
        if name == "hidden_reward" and column is None:
            continue
        if not isinstance(column, np.ndarray) or column.dtype != dtype or column.ndim != 1:
            raise DatasetError(
                f"{name} must be an array of {dtype} with one entry per transition, not {shown(column)}; "
                "`from_arrays` converts arrays of other types"
            )
        if not column.flags.c_contiguous:
            object.__setattr__(dataset, name, np.ascontiguousarray(column))
    if not isinstance(dataset.ids, np.ndarray) or dataset.ids.ndim != 1:
        raise DatasetError(f"ids must be an array with one entry per state, not {shown(dataset.ids)}")
