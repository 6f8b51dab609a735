"""Datasets from data frames, CSV files and Parquet files."""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selectenv.checks import check_flag, check_instance, check_name, check_path, shown
from selectenv.datasets.arrow_columns import discrete, numbers, require, times, vector_numbers
from selectenv.datasets.csv_tables import CsvFile, row_of_file
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.log_columns import Column, NumberColumn, Where, cut_column, refuse
from selectenv.datasets.log_dataset import Log, log_dataset
from selectenv.datasets.vector_columns import vector_columns
from selectenv.errors import DatasetFileError, LogError, OptionError, OptionTypeError

Names = str | Sequence[str]
Bins = Mapping[str, int | Sequence[float]]


def from_dataframe(
    frame: Any,
    state: Names,
    action: str,
    episode: str | None = None,
    time: str | None = None,
    next_state: Names | None = None,
    terminated: str | None = None,
    *,
    truncated: str | None = None,
    reward: str | None = None,
    bins: Bins | None = None,
    missing: str | None = None,
    vectors: bool = False,
) -> OfflineDataset:
    """Make a dataset from a data frame with one row per transition, and print a one-line summary to stderr.

    States and actions are text, categories, whole numbers or truth values. The id of a state of one column is its
    entry; the id of a state of several columns is text such as "place=lift, cargo=meal", and
    `OfflineDataset.state_columns` holds the entries. Actions are numbered in the order of their sorted values, which
    `OfflineDataset.action_names` holds unless they are 0, 1, 2 and so on.

    The last row of an episode may have no action: it then says in which state the episode ended.

    Args:
        frame: a data frame of pandas or polars, or a PyArrow table.
        state: the column of the state acted in, or several columns that make up the state together.
        action: the column of the action.
        episode: the column that tells episodes apart. Without it, an episode ends where ``terminated`` or ``truncated``
            says so, or where a row does not start in the next state of the previous row.
        time: the column that sorts the rows of an episode, numbers or dates; defaults to the order of the rows.
        next_state: the column of the state entered, or one for each column of ``state``. Missing entries are taken from
            the next row of the episode.
        terminated: the column that says whether a transition terminated its episode. Without it, the last transition of
            an episode counts as terminal unless it leads to a state for which the log has an action.
        truncated: the column that says whether the recording of an episode stopped after a transition.
        reward: the column of rewards, each hidden until its state is labelled.
        bins: for continuous columns of states and actions, the number of intervals of equal width to cut the column
            into, or the edges between the intervals, each of which belongs to the interval above it.
        missing: text to put in place of missing entries of the state, such as "unknown"; a column of numbers with
            missing entries becomes text. By default such entries are refused.
        vectors: whether the columns of ``state`` are numbers that make up a vector. Vectors that are seen once are best
            labelled in groups: see `group_states`.

    Raises:
        LogError: an entry that cannot be used; the message names its row, counted from 0, and its column.
        UnknownNameError: there is no such column.
        MissingExtraError: PyArrow is not installed.
    """
    columns = LogColumns.checked(
        state, action, episode, time, next_state, terminated, truncated, reward, bins, missing, vectors
    )
    return _dataset(columns, _open_frame(frame, columns), "data frame")


def from_csv(
    path: str | os.PathLike[str],
    state: Names,
    action: str,
    episode: str | None = None,
    time: str | None = None,
    next_state: Names | None = None,
    terminated: str | None = None,
    *,
    truncated: str | None = None,
    reward: str | None = None,
    bins: Bins | None = None,
    missing: str | None = None,
    vectors: bool = False,
    delimiter: str = ",",
    encoding: str = "utf-8",
    decimal: str = ".",
) -> OfflineDataset:
    """Make a dataset from a CSV file with a header; see `from_dataframe`.

    A column is taken as numbers if all its entries are numbers without leading zeros. Empty fields are missing entries.

    Args:
        path: the file; it may be compressed (.gz, .bz2, .zst).
        state: see `from_dataframe`, as for the other columns.
        action: the column of the action.
        episode: the column that tells episodes apart.
        time: the column that sorts the rows of an episode.
        next_state: the columns of the state entered.
        terminated: the column that says whether a transition terminated its episode.
        truncated: the column that says whether an episode was truncated after a transition.
        reward: the column of rewards.
        bins: intervals of continuous columns.
        missing: text in place of missing entries of the state.
        vectors: whether the columns of ``state`` make up a vector.
        delimiter: the character between two fields.
        encoding: the encoding of the text, such as "cp1252" or "utf-16".
        decimal: the decimal sign of numbers, "." or ",".

    Raises:
        DatasetFileError: the file cannot be read.
        LogError: an entry that cannot be used; the message names its row, counted from 0 without the header and as
            spreadsheets count, and its column.
        UnknownNameError: there is no such column.
        MissingExtraError: PyArrow is not installed.
    """
    columns = LogColumns.checked(
        state, action, episode, time, next_state, terminated, truncated, reward, bins, missing, vectors
    )
    file = CsvFile(_existing(path), delimiter, encoding, decimal)
    columns.check(file.names)
    numeric = [name for name in columns.names if name in columns.numeric]
    table = file.read([name for name in columns.names if name not in numeric], numeric)
    return _dataset(columns, table.column, os.path.basename(path), untyped=True)


def from_parquet(
    path: str | os.PathLike[str],
    state: Names,
    action: str,
    episode: str | None = None,
    time: str | None = None,
    next_state: Names | None = None,
    terminated: str | None = None,
    *,
    truncated: str | None = None,
    reward: str | None = None,
    bins: Bins | None = None,
    missing: str | None = None,
    vectors: bool = False,
) -> OfflineDataset:
    """Make a dataset from a Parquet file, or a directory of such files; see `from_dataframe`.

    Args:
        path: the file or directory.
        state: see `from_dataframe`, as for the other columns.
        action: the column of the action.
        episode: the column that tells episodes apart.
        time: the column that sorts the rows of an episode.
        next_state: the columns of the state entered.
        terminated: the column that says whether a transition terminated its episode.
        truncated: the column that says whether an episode was truncated after a transition.
        reward: the column of rewards.
        bins: intervals of continuous columns.
        missing: text in place of missing entries of the state.
        vectors: whether the columns of ``state`` make up a vector.

    Raises:
        DatasetFileError: the file cannot be read.
        LogError: an entry that cannot be used; the message names its row, counted from 0, and its column.
        UnknownNameError: there is no such column.
        MissingExtraError: PyArrow is not installed.
    """
    columns = LogColumns.checked(
        state, action, episode, time, next_state, terminated, truncated, reward, bins, missing, vectors
    )
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    file = _existing(path)
    try:
        columns.check(parquet.ParquetDataset(file).schema.names)
        encoded = [name for name in columns.names if name not in columns.numeric]
        table = parquet.ParquetDataset(file, read_dictionary=encoded).read(columns=columns.names)
    except (arrow.ArrowException, OSError) as error:
        raise DatasetFileError(f"{os.fspath(path)!r} is not a Parquet file that can be read: {error}") from None
    return _dataset(columns, table.column, os.path.basename(path))


@dataclass(frozen=True)
class LogColumns:
    """Which column of a log plays which role."""

    state: tuple[str, ...]
    action: str
    episode: str | None
    time: str | None
    next_state: tuple[str, ...]
    terminated: str | None
    truncated: str | None
    reward: str | None
    bins: Bins
    missing: str | None
    """Text in place of missing entries of the state."""
    vectors: bool = False

    @classmethod
    def checked(
        cls,
        state: Any,
        action: Any,
        episode: Any,
        time: Any,
        next_state: Any,
        terminated: Any,
        truncated: Any,
        reward: Any,
        bins: Any,
        missing: Any,
        vectors: Any,
    ) -> "LogColumns":
        """Return the roles of columns as a caller gives them.

        Raises:
            OptionError: they are not names of columns, or contradict each other.
        """
        entered = () if next_state is None else _several("next_state", next_state)
        bins = {} if bins is None else bins
        states = _several("state", state)
        check_flag("vectors", vectors)
        found = cls(states, action, episode, time, entered, terminated, truncated, reward, bins, missing, vectors)
        if entered and len(entered) != len(states):
            raise OptionError(f"next_state must name one column for each of {shown(states)}, not {shown(entered)}")
        check_instance("action", action, str)
        for name in ("episode", "time", "terminated", "truncated", "reward", "missing"):
            if getattr(found, name) is not None:
                check_instance(name, getattr(found, name), str)
        check_instance("bins", found.bins, Mapping)  # type: ignore[type-abstract]
        for column in found.bins:
            if vectors and column in states:
                raise OptionError(
                    f"bins cut the column {column!r} into intervals, and vectors=True makes it a number of a vector: "
                    "give only one of them"
                )
            check_name("column in bins", column, (action,) if vectors else (*states, action))
        if missing is not None and (not missing or not missing.isprintable()):
            raise OptionError(f"missing must be printable text, such as 'unknown', not {shown(missing)}")
        if missing is not None and vectors:
            raise OptionError("missing replaces entries by text, and vectors=True needs numbers: give only one of them")
        return found

    @property
    def names(self) -> list[str]:
        """The names of all columns, each once."""
        single = (self.action, self.episode, self.time, self.terminated, self.truncated, self.reward)
        return list(dict.fromkeys([*self.state, *self.next_state, *(name for name in single if name is not None)]))

    @property
    def numeric(self) -> set[str | None]:
        """The names of the columns that must hold numbers or dates."""
        cut = self.state if self.vectors else self.bins
        entered = {name for name, of in zip(self.next_state, self.state, strict=False) if of in cut}
        return {self.time, self.reward, *self.bins, *cut, *entered}

    def check(self, available: Sequence[str]) -> None:
        """Check that the log has the columns.

        Raises:
            UnknownNameError: a column does not exist; the message lists those that do.
            LogError: the log has several columns of the same name.
        """
        for name in self.names:
            check_name("column", name, available)
            if list(available).count(name) > 1:
                raise LogError(f"column {name!r}: the log has several columns of this name")

    def spec(self, source: str, edges: Mapping[str, Any]) -> dict[str, Any]:
        """Return where a dataset comes from, ready for JSON."""
        roles = {role: value for role, value in vars(self).items() if role not in ("bins", "missing") and value}
        return {
            "source": source,
            "columns": {k: list(v) if isinstance(v, tuple) else v for k, v in roles.items()},
            **({"bins": {name: found.tolist() for name, found in edges.items()}} if edges else {}),
            **({"missing": self.missing} if self.missing else {}),
        }


def _several(role: str, names: Any) -> tuple[str, ...]:
    """Return the names of the columns of a state."""
    found = (names,) if isinstance(names, str) else names
    if not isinstance(found, Sequence) or not found or not all(isinstance(name, str) for name in found):
        raise OptionTypeError(f"{role} must be the name of a column, or a list of names, not {shown(names)}")
    if len(set(found)) < len(found):
        raise OptionError(f"{role} names a column twice: {shown(names)}")
    return tuple(found)


def _existing(path: Any) -> Any:
    """Return the path of an existing file or directory."""
    file = check_path("path", path)
    try:
        exists = file.exists()
    except OSError as error:
        raise DatasetFileError(f"{os.fspath(file)!r} cannot be read: {error}") from None
    if not exists:
        raise DatasetFileError(f"there is no file {os.fspath(file)!r}")
    return file


def _open_frame(frame: Any, columns: LogColumns) -> Callable[[str], Any]:
    """Return a function from the name of a column of a data frame to a chunked array."""
    arrow = require("pyarrow")
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if polars is not None and isinstance(frame, polars.LazyFrame):
        columns.check(frame.collect_schema().names())
        frame = frame.select(columns.names).collect()
    if isinstance(frame, arrow.Table):
        columns.check(frame.column_names)
        return lambda name: _to_arrow(name, frame.column(name))
    if any(library is not None and isinstance(frame, library.DataFrame) for library in (pandas, polars)):
        columns.check(list(frame.columns))
        return lambda name: _to_arrow(name, frame[name])
    raise OptionTypeError(
        f"frame must be a data frame of pandas or polars, or a PyArrow table, not {shown(frame)} of type "
        f"{type(frame).__name__}"
    )


def _to_arrow(name: str, series: Any) -> Any:
    """Return a column of a data frame as a chunked array.

    Raises:
        LogError: its entries are of different types, or of one that Arrow does not know.
    """
    arrow, types = require("pyarrow"), require("pyarrow.types")
    found = series
    try:
        if not isinstance(series, arrow.ChunkedArray):
            found = series.to_arrow() if hasattr(series, "to_arrow") else arrow.array(series, from_pandas=True)
    except Exception as error:  # data frames can hold anything
        entries = [(row, entry) for row, entry in enumerate(series) if not _is_missing(entry)]
        for row, entry in entries:
            if type(entry) is not type(entries[0][1]):
                reason = f"{shown(entry)} is of another type than {shown(entries[0][1])} in row {entries[0][0]}"
                refuse("row {}".format, row, name, reason)
        raise LogError(f"column {name!r} cannot be read: {shown(str(error))}") from None
    found = found if isinstance(found, arrow.ChunkedArray) else arrow.chunked_array([found])
    return found.cast(arrow.large_string()) if types.is_string_view(found.type) else found


def _is_missing(entry: Any) -> bool:
    """Return whether an entry of a data frame marks a missing value."""
    nan = isinstance(entry, float) and math.isnan(entry)
    return nan or entry is None or type(entry).__name__ in ("NAType", "NaTType")


def _dataset(
    columns: LogColumns, column: Callable[[str], Any], source: str, *, untyped: bool = False
) -> OfflineDataset:
    """Make a dataset from the columns of a table."""
    where: Where = row_of_file if untyped else "row {}".format
    edges: dict[str, Any] = {}

    def values(name: str, like: str | None = None) -> Column:
        """Return a discrete column; a continuous one is cut like the column ``like``, or as `bins` says."""
        bins = edges.get(like or name, columns.bins.get(name))
        if bins is None:
            return discrete(name, column(name), where, untyped=untyped)
        found, edges[like or name] = cut_column(name, numbers(name, column(name), where), bins, where)
        return found

    def optional(name: str | None) -> Column | None:
        return None if name is None else values(name)

    def number_columns(names: Sequence[str]) -> list[NumberColumn]:
        return [NumberColumn(name, vector_numbers(name, column(name), where)) for name in names]

    state: tuple[Column, ...]
    following: tuple[Column, ...]
    vectors = None
    if columns.vectors:
        acted, entered = number_columns(columns.state), number_columns(columns.next_state)
        one, following, vectors = vector_columns(acted, entered, where)
        state = (one,)
    else:
        state = tuple(map(values, columns.state))
        following = tuple(map(values, columns.next_state, columns.state))
    log = Log(
        state=state,
        next_state=following,
        vectors=vectors,
        action=values(columns.action),
        episode=optional(columns.episode),
        terminated=optional(columns.terminated),
        truncated=optional(columns.truncated),
        time=None
        if columns.time is None
        else NumberColumn(columns.time, times(columns.time, column(columns.time), where)),
        reward=None
        if columns.reward is None
        else NumberColumn(columns.reward, numbers(columns.reward, column(columns.reward), where)),
        where=where,
        spec=columns.spec(source, edges),
        missing=columns.missing,
    )
    return log_dataset(log)
