"""Datasets as data frames."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_name
from selectenv.datasets.arrow_columns import require
from selectenv.datasets.log_columns import sorted_column
from selectenv.typing import Int32Array

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset

LIBRARIES = ("pandas", "polars")
OWN_COLUMNS = ("episode", "step", "action", "terminated", "truncated", "reward")


def to_frame(dataset: "OfflineDataset", library: str) -> Any:
    """Return a data frame with one row per transition; see `OfflineDataset.to_frame`.

    Raises:
        MissingExtraError: the library or PyArrow is not installed.
    """
    check_name("library", library, LIBRARIES)
    arrow, wanted = require("pyarrow"), require(library)
    start = np.flatnonzero(dataset.episode_start)
    episode = np.maximum(np.cumsum(dataset.episode_start, dtype=np.int32) - 1, 0)
    step = np.arange(len(dataset), dtype=np.int32) - np.append(start, 0)[episode].astype(np.int32)
    columns: dict[str, Any] = {"episode": episode, "step": step}
    states = dataset.state_columns or {"state": dataset.ids}
    if dataset.vectors is not None:
        states = dict(zip(dataset.vectors.columns, dataset.vectors.values.T, strict=True))
    states = {f"state_{name}" if name in OWN_COLUMNS else name: values for name, values in states.items()}
    columns |= {name: _categories(dataset.state, values) for name, values in states.items()}
    names = dataset.action_names
    columns["action"] = dataset.action if names is None else _categories(dataset.action, names)
    columns |= {
        f"next_{name}": _categories(*_entered(dataset, i, values)) for i, (name, values) in enumerate(states.items())
    }
    columns |= {"terminated": dataset.terminated, "truncated": dataset.truncated}
    if dataset.hidden_reward is not None:
        columns["reward"] = dataset.hidden_reward
    table = arrow.table(columns)
    if library == "polars":
        return wanted.from_arrow(table)
    # Only the columns of states have 64-bit integers; as floats with NaN, large ids would be rounded.
    return table.to_pandas(types_mapper={arrow.int64(): wanted.Int64Dtype(), arrow.uint64(): wanted.UInt64Dtype()}.get)


def _entered(dataset: "OfflineDataset", column: int, values: NDArray[Any]) -> tuple[Int32Array, NDArray[Any]]:
    """Return the codes [size] and the values of a column of the next state; an ending counts as a next state."""
    if dataset.endings is None or dataset.groups is not None:  # endings are not groups
        return dataset.next_state, values
    code, parts = dataset.endings.code, dataset.endings.columns or (dataset.endings.names,)
    found = np.where(code >= 0, code + np.int32(len(values)), dataset.next_state)
    return found, np.concatenate([values, parts[column]])


def _categories(code: Int32Array, values: NDArray[Any]) -> Any:
    """Return a column as an Arrow array: text as categories, numbers as they are; the code -1 means missing."""
    arrow = require("pyarrow")
    if values.dtype.kind == "f":
        return arrow.array(values[code], mask=code < 0)
    column = sorted_column("", code, values)
    index = arrow.array(column.code, mask=column.code < 0)
    if values.dtype.kind == "U":
        return arrow.DictionaryArray.from_arrays(index, arrow.array(column.values.tolist(), arrow.string()))
    return arrow.array(column.values).take(index)
