"""Columns of a log: discrete values as codes, and continuous ones cut into intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import LARGEST_INT, as_reals, check_int, is_int, is_real, shown
from selectenv.errors import LogError, OptionError
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray

DENSE_VALUES = 1 << 24
"""Integers are numbered by direct addressing up to this many possible values, and by sorting beyond."""
MOST_BINS = 10_000
LARGEST_WHOLE = 2.0**53
"""Beyond this magnitude a float no longer tells neighbouring integers apart."""
TRUTHS = {"true": 1, "false": 0, "1": 1, "0": 0, "yes": 1, "no": 0, "t": 1, "f": 0, "y": 1, "n": 0}
"""The entries allowed in a column of truth values, in upper or lower case."""
Where = Callable[[int], str]
"""Row -> how an error message names it."""


@dataclass(frozen=True, eq=False)
class Column:
    """A discrete column of a log."""

    name: str
    code: Int32Array
    """[rows] index into ``values``, -1 where the entry is missing."""
    values: NDArray[Any]
    """[values] the distinct values, integers or strings."""


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers, or of dates."""

    name: str
    values: NDArray[Any]
    """[rows] NaN where the entry is missing."""


def refuse(where: Where, row: Any, column: str, reason: str) -> NoReturn:
    """Raise a `LogError` that names the row and the column."""
    raise LogError(f"{where(int(row))}, column {column!r}: {reason}")


def refuse_missing(column: Column, where: Where, advice: str) -> None:
    """Raise a `LogError` if an entry of a column is missing."""
    missing = column.code < 0
    if missing.any():
        others = int(missing.sum()) - 1
        also = f", and {others:,} more in this column" if others else ""
        refuse(where, missing.argmax(), column.name, f"the entry is missing{also}; {advice}")


def filled_column(column: Column, gaps: BoolArray, text: str) -> Column:
    """Return a column as text, with ``text`` in the rows ``gaps``."""
    code = np.where(gaps, np.int32(len(column.values)), column.code)
    return sorted_column(column.name, code, np.append(column.values.astype(str), text))


def number_values(values: IntArray) -> tuple[IntArray, Int32Array]:
    """Return the sorted distinct integers, and for each entry the index of its value among them."""
    if len(values) == 0:
        return values, np.empty(0, np.int32)
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > DENSE_VALUES:
        distinct, code = np.unique(values, return_inverse=True)
        return distinct, code.astype(np.int32)
    seen = np.zeros(span, bool)
    shifted = values - low
    seen[shifted] = True
    return np.flatnonzero(seen) + low, (np.cumsum(seen, dtype=np.int32) - 1)[shifted]


def integer_column(name: str, values: IntArray, missing: NDArray[np.bool_]) -> Column:
    """Return a column of integers."""
    if not missing.any():
        distinct, code = number_values(values)
        return Column(name, code, distinct)
    code = np.full(len(values), -1, np.int32)
    distinct, code[~missing] = number_values(values[~missing])
    return Column(name, code, distinct)


def whole_number_column(name: str, values: FloatArray, where: Where) -> Column:
    """Return a column of floats that are whole numbers, NaN where missing.

    Raises:
        LogError: the column is continuous.
    """
    missing = np.isnan(values)
    with np.errstate(invalid="ignore"):
        whole = missing | ((values == np.floor(values)) & (np.abs(values) <= LARGEST_WHOLE))
    if not whole.all():
        row = int(whole.argmin())
        refuse(
            where,
            row,
            name,
            f"{values[row]:g} is not a whole number; cut a continuous column into intervals: bins={{{name!r}: 10}}, or "
            f"a list of edges instead of 10 (on the command line, --bins {name}=10), or, if they are columns of the "
            "state, make vectors of them: vectors=True (--vectors)",
        )
    return integer_column(name, np.where(missing, 0, values).astype(np.int64), missing)


def text_column(name: str, code: Int32Array, values: Sequence[str], where: Where) -> Column:
    """Return a column of strings from codes and values, of which some may be unused.

    Raises:
        LogError: a string contains the character NUL, which arrays of strings cannot represent at their end.
    """
    odd = next((i for i, value in enumerate(values) if "\0" in value), None)
    if odd is not None and (code == odd).any():
        refuse(where, (code == odd).argmax(), name, f"{shown(values[odd])} contains the character NUL")
    return sorted_column(name, code, np.array(values, dtype=str))


def sorted_column(name: str, code: Int32Array, values: NDArray[Any]) -> Column:
    """Return a column with its values sorted, without those that no entry has."""
    used = np.zeros(len(values) + 1, bool)
    used[code] = True  # the code -1 refers to the additional last entry
    distinct, position = np.unique(values[used[:-1]], return_inverse=True)
    place = np.full(len(values) + 1, -1, np.int32)
    place[:-1][used[:-1]] = position
    return Column(name, place[code], distinct)


def list_column(name: str, entries: Sequence[Any], where: Where) -> Column:
    """Return a list of whole numbers, truth values or strings as a column; None is a missing entry.

    Raises:
        LogError: an entry is of another type than the first one, or of none of these types.
    """
    kinds = [_kind(entry) for entry in entries]
    first = next((kind for kind in kinds if kind != "missing"), "text")
    for row, kind in enumerate(kinds):
        if kind not in (first, "missing") or kind == "other":
            refuse(
                where, row, name, f"{shown(entries[row])} does not fit: all entries must be whole numbers, or all text"
            )
    missing = np.array([kind == "missing" for kind in kinds], bool)
    if first == "text":
        values = sorted({entry for entry in entries if entry is not None})
        place = {value: number for number, value in enumerate(values)}
        return text_column(name, np.array([place.get(entry, -1) for entry in entries], np.int32), values, where)
    if first == "truth":
        return truth_column(name, np.array([bool(entry) for entry in entries]), missing)
    if all(is_int(entry) for entry in entries if entry is not None):
        for row, entry in enumerate(entries):
            if entry is not None and not -LARGEST_INT <= entry <= LARGEST_INT:
                refuse(where, row, name, "whole numbers must lie within -(2**63 - 1) and 2**63 - 1")
        return integer_column(name, np.array([entry or 0 for entry in entries], np.int64), missing)
    return whole_number_column(name, list_numbers(name, entries, where), where)


def list_numbers(name: str, entries: Sequence[Any], where: Where) -> FloatArray:
    """Return a list of numbers as an array; None becomes NaN.

    Raises:
        LogError: an entry is not a number.
    """
    found = np.full(len(entries), np.nan)
    for row, entry in enumerate(entries):
        kind = _kind(entry)
        if kind not in ("number", "missing"):
            refuse(where, row, name, f"{shown(entry)} is not a number")
        if kind == "number":
            try:
                found[row] = entry
            except OverflowError:
                refuse(where, row, name, "the number is too large")
    return found


def _kind(entry: Any) -> str:
    """Return what an entry is: "text", "truth", "number", "missing" or "other"."""
    if isinstance(entry, str):
        return "text"
    if isinstance(entry, bool | np.bool_):
        return "truth"
    if is_int(entry) or isinstance(entry, float | np.floating):
        return "number"
    return "missing" if entry is None else "other"


def truth_column(name: str, values: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    """Return a column of truth values; they are written "false" and "true"."""
    return sorted_column(name, np.where(missing, -1, values).astype(np.int32), np.array(["false", "true"]))


def truths(column: Column, where: Where) -> NDArray[np.int8]:
    """Return a column of truth values [rows]: 1, 0, or -1 where missing.

    Raises:
        LogError: an entry is neither true nor false.
    """
    meaning = np.full(len(column.values) + 1, -1, np.int8)
    for i, value in enumerate(column.values.tolist()):
        found = TRUTHS.get(str(value).lower())
        if found is None:
            row = (column.code == i).argmax()
            refuse(
                where, row, column.name, f"{shown(value)} is neither true nor false (also allowed: 0 and 1, yes and no)"
            )
        meaning[i] = found
    return meaning[column.code]


def cut_column(name: str, values: FloatArray, bins: Any, where: Where) -> tuple[Column, FloatArray]:
    """Return a continuous column cut into intervals, and the edges between them.

    Args:
        name: the column.
        values: [rows] its entries, NaN where missing.
        bins: the edges, each of which belongs to the interval above it; or the number of intervals of equal width
            between the smallest and the largest entry.
        where: how to name a row.

    Raises:
        OptionError: ``bins`` is neither.
        LogError: an entry is infinite, or the range is too wide.
    """
    infinite = np.isinf(values)
    if infinite.any():
        refuse(where, infinite.argmax(), name, "the number is infinite")
    given = [np.nan] if is_real(bins) else bins  # a number of intervals must be whole
    edges = _equal_widths(name, values, bins) if is_int(bins) else as_reals(f"bins[{name!r}]", given, OptionError)
    if edges.ndim != 1 or len(edges) >= MOST_BINS or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise OptionError(
            f"bins[{name!r}] must be a number of intervals, or a list of increasing edges between them, not "
            f"{shown(bins)}"
        )
    code = np.searchsorted(edges, values, side="right").astype(np.int32)
    code[np.isnan(values)] = -1
    return Column(name, code, _interval_names(edges)), edges


def _equal_widths(name: str, values: FloatArray, bins: int) -> FloatArray:
    """Return the edges between intervals of equal width; none if all entries are the same."""
    count = check_int(f"bins[{name!r}]", bins, 1, MOST_BINS)
    known = values[~np.isnan(values)]
    if len(known) == 0 or known.min() == known.max():
        return np.empty(0)
    low, high = float(known.min()), float(known.max())
    if not np.isfinite(high - low):
        raise LogError(f"column {name!r}: {low:g} to {high:g} is too wide a range for intervals of equal width")
    return np.unique(np.linspace(low, high, count + 1)[1:-1])


def _interval_names(edges: FloatArray) -> NDArray[np.str_]:
    """Return the intervals in words, such as "below 1", "1 to 2" and "2 or more"."""
    if len(edges) == 0:
        return np.array(["any"])
    shown_edges = [f"{edge:.6g}" for edge in edges]
    if len(set(shown_edges)) < len(edges):
        shown_edges = [repr(float(edge)) for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(shown_edges)]
    return np.array([f"below {shown_edges[0]}", *between, f"{shown_edges[-1]} or more"])


def with_shared_values(first: Column, second: Column) -> tuple[Column, Column]:
    """Return two columns with the same list of values.

    Raises:
        LogError: one holds integers and the other one strings.
    """
    if np.array_equal(first.values, second.values):
        return first, second
    if (
        len(first.values)
        and len(second.values)
        and (first.values.dtype.kind == "U") != (second.values.dtype.kind == "U")
    ):
        raise LogError(
            f"columns {first.name!r} and {second.name!r} must both hold text or both hold numbers: "
            f"they hold {shown(first.values[0])} and {shown(second.values[0])}"
        )
    values = np.union1d(first.values, second.values) if len(second.values) else first.values
    return tuple(  # type: ignore[return-value]
        Column(one.name, np.append(np.searchsorted(values, one.values), -1).astype(np.int32)[one.code], values)
        for one in (first, second)
    )
