"""Columns of numbers that make up vectors, in logs."""

from collections.abc import Sequence

import numpy as np

from selectenv.datasets.log_columns import Column, NumberColumn, Where, refuse
from selectenv.datasets.vector_observations import Vectors
from selectenv.datasets.vector_transitions import distinct_vectors
from selectenv.typing import FloatArray

STATE = "state"
LARGEST = float(np.finfo(np.float32).max)


def vector_columns(
    state: Sequence[NumberColumn], entered: Sequence[NumberColumn], where: Where
) -> tuple[Column, tuple[Column, ...], Vectors]:
    """Return the vectors of a log as columns of state numbers.

    Args:
        state: the columns that make up the vector of the state acted in.
        entered: those of the state entered, if the log has them; rows without any entry are missing.
        where: how error messages name a row.

    Returns:
        The column of states; that of next states, if there is one; and the distinct vectors, which both count in.

    Raises:
        LogError: an entry is missing, infinite, or too large for 32 bits.
    """
    rows = _matrix(state)
    _check(rows, state, where)
    after, missing = rows[:0], np.ones(len(rows), bool)
    if entered:
        after = _matrix(entered)
        missing = np.logical_and.reduce(np.isnan(after), axis=1)
        _check(np.where(missing[:, None], 0.0, after), entered, where)
        after = after[~missing]
    known, code = distinct_vectors(np.concatenate([rows, after]).astype(np.float32))
    entered_code = np.full(len(rows), -1, np.int32)
    entered_code[~missing] = code[len(rows) :]
    numbers = np.arange(len(known))
    following = (Column(f"next_{STATE}", entered_code, numbers),) if entered else ()
    return Column(STATE, code[: len(rows)], numbers), following, Vectors(known, tuple(one.name for one in state))


def _matrix(columns: Sequence[NumberColumn]) -> FloatArray:
    return np.stack([column.values for column in columns], axis=1)


def _check(rows: FloatArray, columns: Sequence[NumberColumn], where: Where) -> None:
    wrong = ~(np.abs(rows) <= LARGEST)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        entry = rows[row, column]
        reason = "the number is missing or NaN" if np.isnan(entry) else f"{entry:g} is too large for a vector"
        refuse(where, row, columns[column].name, reason)
