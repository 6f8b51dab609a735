"""Columns of Arrow tables: the common form of data frames, CSV files and Parquet files."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import LARGEST_INT, shown
from selectenv.datasets.log_columns import (
    Column,
    Where,
    integer_column,
    refuse,
    sorted_column,
    text_column,
    truth_column,
    whole_number_column,
)
from selectenv.errors import LogError, MissingExtraError
from selectenv.typing import FloatArray, Int32Array

WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
DECIMAL = re.compile(r"[-+]?(?=\.?[0-9])(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?")
"""Numbers in CSV files; digits with a leading zero are text, such as a postcode."""
LONGEST_WHOLE = 18
"""Digits of a whole number that certainly fits into 64 bits; columns with longer ones are text."""


def require(module: str) -> Any:
    """Import a module of the extra `data`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"this needs {package} ({error}): pip install 'selectenv[data]'") from error


def discrete(name: str, column: Any, where: Where, *, untyped: bool = False) -> Column:
    """Return an Arrow column of text, categories, whole numbers or truth values.

    Args:
        name: the column's name.
        column: a chunked array.
        where: how to name a row.
        untyped: whether text is converted if all of it is numbers, since CSV files have no types.

    Raises:
        LogError: the column is continuous, or of another type.
    """
    types = require("pyarrow.types")
    kind = column.type
    if types.is_dictionary(kind) or is_text(kind):
        return _encoded(name, column, where, untyped)
    if types.is_floating(kind) or types.is_decimal(kind):
        return whole_number_column(name, numbers(name, column, where), where)
    missing = column.is_null().to_numpy()
    if types.is_null(kind):
        return Column(name, np.full(len(column), -1, np.int32), np.empty(0, str))
    if types.is_boolean(kind):
        return truth_column(name, column.fill_null(False).to_numpy(), missing)
    if not types.is_integer(kind):
        raise LogError(f"column {name!r} holds {kind}; allowed: text, categories, whole numbers, true and false")
    values = column.fill_null(0).to_numpy()
    if values.dtype == np.uint64 and values.max(initial=0) > LARGEST_INT:
        refuse(where, values.argmax(), name, f"{values.max()} is beyond 2**63 - 1, the largest whole number")
    return integer_column(name, values.astype(np.int64, copy=False), missing)


def _encoded(name: str, column: Any, where: Where, untyped: bool) -> Column:
    """Return a column of text or categories."""
    arrow = require("pyarrow")
    if len(column) == 0:
        return Column(name, np.empty(0, np.int32), np.empty(0, str))
    chunks = (column if is_categorical(column.type) else column.dictionary_encode()).unify_dictionaries().chunks
    code: Int32Array = np.concatenate([chunk.indices.cast(arrow.int32()).fill_null(-1).to_numpy() for chunk in chunks])
    used = np.flatnonzero(np.bincount(code + 1, minlength=1)[1:])  # categories that occur; -1 marks missing entries
    place = np.full(len(chunks[0].dictionary) + 1, -1, np.int32)
    place[used] = np.arange(len(used))
    code, dictionary = place[code], arrow.chunked_array([chunks[0].dictionary.take(used)])
    if not is_text(dictionary.type):
        inner = discrete(name, dictionary, lambda value: where(int((code == value).argmax())))
        return sorted_column(name, np.append(inner.code, np.int32(-1))[code], inner.values)
    values = dictionary.to_pylist()
    if untyped and values and all(map(WHOLE.fullmatch, values)) and max(map(len, values)) <= LONGEST_WHOLE:
        return sorted_column(name, code, np.array(values, np.int64))
    if untyped and values and all(map(DECIMAL.fullmatch, values)) and not all(map(WHOLE.fullmatch, values)):
        return whole_number_column(name, np.append(np.array(values, np.float64), np.nan)[code], where)
    return text_column(name, code, values, where)


def numbers(name: str, column: Any, where: Where) -> FloatArray:
    """Return an Arrow column of numbers as floats, NaN where missing.

    Raises:
        LogError: an entry is not a number.
    """
    arrow, types = require("pyarrow"), require("pyarrow.types")
    column = _plain(column)
    if is_text(column.type):
        column = _parsed(name, column, [arrow.float64()], where, "is not a number; leave it empty if it is missing")
    if types.is_nested(column.type):
        raise LogError(
            f"column {name!r} must hold numbers, not {column.type}: give every number a column of its own, or pass "
            "arrays [steps, columns] to selectenv.from_episodes"
        )
    if not any(
        is_kind(column.type) for is_kind in (types.is_null, types.is_floating, types.is_integer, types.is_decimal)
    ):
        raise LogError(f"column {name!r} must hold numbers, not {column.type}")
    found: FloatArray = column.cast(arrow.float64(), safe=False).fill_null(np.nan).to_numpy()
    return found


def vector_numbers(name: str, column: Any, where: Where) -> FloatArray:
    """Return an Arrow column of a vector as floats; true and false are 1 and 0.

    Raises:
        LogError: an entry is not a number.
    """
    is_truth = require("pyarrow.types").is_boolean(column.type)
    return numbers(name, column.cast(require("pyarrow").int8()) if is_truth else column, where)


def times(name: str, column: Any, where: Where) -> NDArray[Any]:
    """Return an Arrow column of numbers or dates as numbers that sort like them.

    Raises:
        LogError: an entry is missing, or neither a number nor a date.
    """
    arrow, types = require("pyarrow"), require("pyarrow.types")
    column = _plain(column)
    if column.null_count:
        refuse(where, column.is_null().to_numpy().argmax(), name, "the time is missing")
    if is_text(column.type):
        kinds = [arrow.int64(), arrow.float64(), arrow.timestamp("us"), arrow.timestamp("us", "UTC")]
        reason = "does not fit: a column of times holds numbers only, or dates only, such as 2024-12-31 23:59:59"
        column = _parsed(name, column, kinds, where, reason)
    if types.is_temporal(column.type):
        column = column.cast(arrow.int32() if column.type.bit_width == 32 else arrow.int64())
    if not (types.is_integer(column.type) or types.is_floating(column.type)):
        raise LogError(f"column {name!r} must hold numbers or dates, not {column.type}")
    found: NDArray[Any] = column.to_numpy()
    if found.dtype.kind == "f" and np.isnan(found).any():
        refuse(where, np.isnan(found).argmax(), name, "the time is missing")
    return found


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is one of its types of strings."""
    types = require("pyarrow.types")
    return bool(types.is_string(kind) or types.is_large_string(kind))


def is_categorical(kind: Any) -> bool:
    """Return whether an Arrow type is that of categories."""
    return bool(require("pyarrow.types").is_dictionary(kind))


def _plain(column: Any) -> Any:
    """Return a column of categories as a column of their values; others unchanged."""
    return column.cast(column.type.value_type) if is_categorical(column.type) else column


def _parsed(name: str, column: Any, kinds: Sequence[Any], where: Where, reason: str) -> Any:
    """Return a column of text as the first of ``kinds`` that fits all of it.

    Raises:
        LogError: none fits; the message names the first row that does not fit.
    """
    arrow = require("pyarrow")

    def parsed(length: int) -> Any:
        for kind in kinds:
            try:
                return column.slice(0, length).cast(kind)
            except arrow.ArrowInvalid:
                continue
        return None

    found = parsed(len(column))
    if found is None:
        fits, wrong = 0, len(column)  # the first ``fits`` rows can be parsed, the first ``wrong`` rows cannot
        while wrong - fits > 1:
            middle = (fits + wrong) // 2
            fits, wrong = (fits, middle) if parsed(middle) is None else (middle, wrong)
        entry = column[fits].as_py()
        commas = "; from_csv reads decimal commas with decimal=',' (on the command line, --decimal ,)"
        refuse(where, fits, name, f"{shown(entry)} {reason}{commas if ',' in entry else ''}")
    return found
