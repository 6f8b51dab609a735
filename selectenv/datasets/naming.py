"""The names of actions, the columns of states and the summary of a dataset, for human readers."""

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_instance, shown
from selectenv.errors import DatasetError

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset

STORED_NAMES = "state_column_names"
STORED_COLUMN = "state_column_"
"""Keys of the columns of states among the stored arrays of a dataset."""

LISTED = 6
"""Largest number of names that a summary or an error message lists."""
MOST_SEARCHED, LONGEST_SEARCHED = 2_000, 200
"""Numbers of ids, and of characters of an id, up to which the closest id is searched for."""


def check_action_names(names: Any, n_actions: int) -> None:
    """Raise `DatasetError` unless ``names`` are one distinct integer or string per action."""
    if not isinstance(names, np.ndarray) or names.dtype.kind not in "iuU" or names.shape != (n_actions,):
        raise DatasetError(f"action_names must be an array of {n_actions} integers or strings, not {shown(names)}")
    if len(np.unique(names)) != n_actions:
        raise DatasetError("action_names must not have duplicates")


def check_state_columns(columns: Any, n_states: int) -> None:
    """Raise `DatasetError` unless ``columns`` has one integer or string per state in every column."""
    check_instance("state_columns", columns, Mapping)  # type: ignore[type-abstract]
    for name, values in columns.items():
        if not isinstance(name, str):
            raise DatasetError(f"state_columns must be named by strings, not {shown(name)}")
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuU" or values.shape != (n_states,):
            raise DatasetError(
                f"state_columns[{name!r}] must be an array of {n_states} integers or strings, not {shown(values)}"
            )


def stored_columns(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns of states as arrays for a file; names can be any text, so keys are numbered."""
    if not columns:
        return {}
    numbered = {f"{STORED_COLUMN}{i}": values for i, values in enumerate(columns.values())}
    return {STORED_NAMES: np.array(list(columns)), **numbered}


def take_stored_columns(arrays: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Remove the columns of states from the arrays of a file and return them by name."""
    names = arrays.pop(STORED_NAMES, np.empty(0, str)).tolist()
    return {name: arrays.pop(f"{STORED_COLUMN}{i}") for i, name in enumerate(names)}


def summary(dataset: "OfflineDataset") -> str:
    """Return one line about a dataset: transitions, episodes, states, actions, share of terminal transitions."""
    spec = dataset.spec
    source = spec.get("world", spec.get("source", "unknown source"))
    columns = list(dataset.state_columns) if dataset.vectors is None else list(dataset.vectors.columns)
    states = _counted(dataset.n_states, unit(dataset), columns)
    actions = _counted(
        dataset.n_actions, "action", [] if dataset.action_names is None else dataset.action_names.tolist()
    )
    assumed = f" ({spec['terminal']})" if "terminal" in spec else ""
    if dataset.endings is not None:
        assumed += f", {_counted(len(dataset.endings.names), 'ending', dataset.endings.names[: LISTED + 1].tolist())}"
    if "contradictions" in spec:
        assumed += (
            f"; {_counted(spec['contradictions'], 'row')} not followed by the given next state: episodes are taken to "
            "be truncated there"
        )
    return (
        f"{source}: {_counted(len(dataset), 'transition')} in {_counted(int(dataset.episode_start.sum()), 'episode')}, "
        f"{states}, {actions}, {100 * dataset.terminated.mean():.1f} % of the transitions terminal{assumed}"
    )


def unit(dataset: "OfflineDataset") -> str:
    """Return what one label covers: "state", "group" or "episode"."""
    return "state" if dataset.groups is None else dataset.groups.unit


def unknown_state(id: Any, ids: NDArray[Any]) -> str:
    """Return an error message about an id that is not among ``ids``: a few of them, and the closest one."""
    listed = ", ".join(map(shown, ids[:LISTED])) + (", ..." if len(ids) > LISTED else "")
    close: list[str] = []
    if isinstance(id, str) and ids.dtype.kind == "U":
        close = difflib.get_close_matches(id[:LONGEST_SEARCHED], ids[:MOST_SEARCHED].tolist(), n=1)
    hint = f". Did you mean {shown(close[0])}?" if close else ""
    return f"there is no state with id {shown(id)}; the ids are {listed}{hint}"


def _counted(count: int, what: str, names: Sequence[Any] = ()) -> str:
    """Return a number of things, and the names of the first ones."""
    texts = [str(name) if str(name).isprintable() and "," not in str(name) else repr(name) for name in names[:LISTED]]
    listed = ", ".join(texts) + (", ..." if len(names) > LISTED else "")
    return f"{count:,} {what}{'' if count == 1 else 's'}{f' ({listed})' if listed else ''}"
