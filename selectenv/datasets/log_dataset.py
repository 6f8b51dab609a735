"""Datasets from the columns of a log: rows in order, states numbered, ends of episodes found."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import LARGEST_REWARD
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.endings import Endings
from selectenv.datasets.log_columns import (
    Column,
    NumberColumn,
    Where,
    filled_column,
    number_values,
    refuse,
    refuse_missing,
    truths,
    with_shared_values,
)
from selectenv.datasets.vector_observations import Vectors
from selectenv.errors import LogError
from selectenv.io.progress import show
from selectenv.io.resources import require_memory
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray

LARGEST_KEY = 1 << 62
QUOTED = frozenset(',="')
"""Characters that are quoted in the id of a state of several columns, so that different states have different ids."""


@dataclass(frozen=True, eq=False)
class Log:
    """The columns of a log, one entry per row; a row is a transition, or the state in which an episode ended."""

    state: tuple[Column, ...]
    """The columns that make up a state."""
    action: Column
    """Missing in rows that only say in which state their episode ended."""
    where: Where
    """How error messages name a row."""
    spec: dict[str, Any]
    """Where the log comes from; see `OfflineDataset.spec`."""
    next_state: tuple[Column, ...] = ()
    """The state entered; where it is missing, it is that of the next row of the episode."""
    episode: Column | None = None
    time: NumberColumn | None = None
    """Sorts the rows of an episode."""
    terminated: Column | None = None
    truncated: Column | None = None
    reward: NumberColumn | None = None
    missing: str | None = None
    """Text in place of missing entries of states; None refuses them."""
    vectors: Vectors | None = None
    """If states are vectors: ``state`` is then one column of numbers of vectors."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.action.code)


def log_dataset(log: Log) -> OfflineDataset:
    """Return the dataset of a log, and print a one-line summary to stderr.

    Raises:
        LogError: an entry cannot be used, or episodes cannot be told apart.
    """
    if len(log) == 0:
        raise LogError("the log is empty: it needs at least one row")
    if log.episode is None and log.terminated is None and not log.next_state:
        raise LogError(
            "episodes cannot be told apart: name the column that numbers them (episode), the one that says where they "
            "terminate (terminated), or the columns of the next state (next_state)"
        )
    log = _filled(log)
    for column in log.state:
        refuse_missing(column, log.where, "the option missing puts a text such as 'unknown' there")
    if log.episode is not None:
        refuse_missing(log.episode, log.where, "every row needs the episode that it belongs to")
    log = _in_order(log)
    number, following, columns = _number_states(log)
    terminated, truncated = (
        None if column is None else truths(column, log.where) for column in (log.terminated, log.truncated)
    )
    last = _last_rows(log, following, terminated, truncated)
    following[:-1] = np.where((following[:-1] < 0) & ~last[:-1], number[1:], following[:-1])
    rows = _transitions(log, last, [flags for flags in (terminated, truncated) if flags is not None])
    state, following, last = number[rows], following[rows], last[rows]
    acted = np.zeros(len(columns[log.state[0].name]), bool)
    acted[state] = True
    known = (following >= 0) & acted[following]
    jump = np.append(following[:-1] != state[1:], True) & ~last
    spec = log.spec if log.terminated is not None else log.spec | {"terminal": "assumed at ends of episodes"}
    if log.episode is None:
        last |= jump
    elif jump.any():
        spec = spec | {"contradictions": int(jump.sum())}
    cut = np.zeros(len(rows), bool) if log.truncated is None else _flags(log, log.truncated, truncated, rows, last)
    ended = last & ~known & ~cut if log.terminated is None else _flags(log, log.terminated, terminated, rows, last)
    cut = (cut | last | jump) & ~ended

    kept, observations = acted.copy(), None
    if log.vectors is not None:  # learners bootstrap from the vectors after truncated episodes
        kept[following[~ended & (following >= 0)]] = True
    endings = None if log.vectors is not None else _endings(columns, following, ended | ~kept[following])
    ids, place, columns = _ids({name: _narrow(values[kept]) for name, values in columns.items()})
    if log.vectors is not None:
        observations, ids = Vectors(log.vectors[ids], log.vectors.columns), np.arange(len(ids))
    to_number = np.full(len(acted), -1, np.int32)
    to_number[kept] = place
    names = log.action.values
    plain = names.dtype.kind != "U" and np.array_equal(names, np.arange(len(names)))
    dataset = OfflineDataset(
        ids=ids,
        n_actions=len(names),
        state=to_number[state],
        action=log.action.code[rows],
        next_state=np.where((following >= 0) & ~ended, to_number[following], np.int32(-1)),
        terminated=ended,
        truncated=cut,
        episode_start=np.concatenate([[True], (ended | cut)[:-1]]),
        hidden_reward=None if log.reward is None else _rewards(log, log.reward, rows),
        spec=spec,
        action_names=None if plain else names,
        observations=observations,
        state_columns=columns,
        endings=endings,
    )
    show(dataset.summary)
    return dataset


def _filled(log: Log) -> Log:
    """Return the log with ``log.missing`` in place of missing entries of states.

    A next state of which every column is missing stays missing: it is that of the next row.
    """
    if log.missing is None:
        return log
    state, entered = list(log.state), list(log.next_state)
    known = np.logical_or.reduce([column.code >= 0 for column in entered]) if entered else np.zeros(len(log), bool)
    for i, column in enumerate(state):
        gaps, gaps_entered = column.code < 0, (entered[i].code < 0) & known if entered else known
        if gaps.any() or gaps_entered.any():
            state[i] = filled_column(column, gaps, log.missing)
            if entered:
                entered[i] = filled_column(entered[i], gaps_entered, log.missing)
    return replace(log, state=tuple(state), next_state=tuple(entered))


def _in_order(log: Log) -> Log:
    """Return the log with its rows sorted by episode and time.

    Raises:
        LogError: two rows of an episode have the same time.
    """
    order = _order(log)
    if order is None:
        return log

    def codes(column: Column) -> Column:
        return replace(column, code=column.code[order])

    return replace(
        log,
        state=tuple(map(codes, log.state)),
        next_state=tuple(map(codes, log.next_state)),
        action=codes(log.action),
        episode=log.episode and codes(log.episode),
        terminated=log.terminated and codes(log.terminated),
        truncated=log.truncated and codes(log.truncated),
        reward=log.reward and replace(log.reward, values=log.reward.values[order]),
        where=lambda row: log.where(order[row]),
    )


def _order(log: Log) -> IntArray | None:
    """Return the order of the rows by episode and time; None if they are sorted."""
    episode = np.zeros(len(log), np.int32) if log.episode is None else log.episode.code
    if log.time is None:
        return None if (episode[1:] >= episode[:-1]).all() else np.argsort(episode, kind="stable")
    time = log.time.values
    same = episode[1:] == episode[:-1]
    if ((episode[1:] > episode[:-1]) | (same & (time[1:] > time[:-1]))).all():
        return None
    order = np.lexsort((time, episode))
    time, episode = time[order], episode[order]
    tie = (episode[1:] == episode[:-1]) & (time[1:] == time[:-1])
    if tie.any():
        first = int(tie.argmax())
        of_episode = "" if log.episode is None else f" of episode {log.episode.values[episode[first]]}"
        refuse(
            log.where,
            order[first + 1],
            log.time.name,
            f"{log.where(int(order[first]))}{of_episode} has the same time, so their order is not known; leave out "
            "time to take the rows in their order",
        )
    return order


def _number_states(log: Log) -> tuple[Int32Array, Int32Array, dict[str, NDArray[Any]]]:
    """Number the combinations of the state columns.

    Returns:
        The number of the state of each row [rows]; that of its next state, -1 where missing [rows]; and by column its
        value in each numbered state.
    """
    rows = len(log)
    missing: BoolArray = np.ones(rows, bool)
    state, codes = list(log.state), [column.code for column in log.state]
    if log.next_state:
        absent = np.stack([column.code < 0 for column in log.next_state])
        missing = np.logical_and.reduce(absent)
        partly = absent.any(axis=0) & ~missing
        if partly.any():
            row = int(partly.argmax())
            column = log.next_state[int(absent[:, row].argmax())]
            refuse(
                log.where, row, column.name, "the entry is missing, although other columns of the next state have one"
            )
        for i, pair in enumerate(zip(log.state, log.next_state, strict=True)):
            state[i], entered = with_shared_values(*pair)
            codes[i] = np.concatenate([state[i].code, np.where(missing, 0, entered.code)])
    key, size = np.zeros(len(codes[0]), np.int64), 1
    for column, code in zip(state, codes, strict=True):
        if size * len(column.values) > LARGEST_KEY:
            distinct, shorter = number_values(key)
            key, size = shorter.astype(np.int64), len(distinct)
        key *= len(column.values)
        key += code
        size *= len(column.values)
    _, number = number_values(key)
    example = np.empty(int(number.max()) + 1, np.int64)
    example[number] = np.arange(len(number))
    values = {column.name: column.values[code[example]] for column, code in zip(state, codes, strict=True)}
    following = np.full(rows, -1, np.int32)
    if log.next_state:
        following[~missing] = number[rows:][~missing]
    return number[:rows], following, values


def _last_rows(log: Log, following: Int32Array, terminated: Any, truncated: Any) -> BoolArray:
    """Return which rows are the last of their episode [rows], before gaps between rows are considered."""
    if log.episode is not None:
        return np.append(log.episode.code[1:] != log.episode.code[:-1], True)
    last = np.zeros(len(log), bool)
    for flags in (terminated, truncated):
        if flags is not None:
            last |= flags == 1
    if terminated is None:
        last |= following < 0
    last[-1] = True
    return last


def _transitions(log: Log, last: BoolArray, flags: Sequence[NDArray[np.int8]]) -> IntArray:
    """Return the rows with an action; the others must be the last rows of episodes.

    The transition before a row without an action becomes the last one of its episode, and takes over the row's flags.

    Args:
        log: the log.
        last: [rows] which rows are the last of their episode; changed in place.
        flags: [rows] whether episodes end; changed in place.

    Raises:
        LogError: an action is missing elsewhere, or everywhere.
    """
    acts = log.action.code >= 0
    stray = ~acts & ~last
    if stray.any():
        reason = "the action is missing; only the last row of an episode may have none"
        refuse(log.where, stray.argmax(), log.action.name, reason)
    if not acts.any():
        raise LogError(f"column {log.action.name!r}: no row has an action")
    final = np.flatnonzero(~acts)
    final = final[(final > 0) & ~last[final - 1]]
    last[final - 1] = True
    for column in flags:
        column[final - 1] = np.maximum(column[final - 1], column[final])
    return np.flatnonzero(acts)


def _flags(log: Log, column: Column, flags: Any, rows: IntArray, last: BoolArray) -> BoolArray:
    """Return the flags of the transitions.

    Raises:
        LogError: a flag is missing, or set although the episode continues.
    """
    flags = flags[rows]
    if (flags < 0).any():
        refuse(log.where, rows[(flags < 0).argmax()], column.name, "the entry is missing")
    early = (flags == 1) & ~last
    if early.any() and log.episode is not None:
        row = rows[early.argmax()]
        name = log.episode.values[log.episode.code[row]]
        refuse(log.where, row, column.name, f"the episode {name} continues after the transition that should end it")
    found: BoolArray = flags == 1
    return found


def _rewards(log: Log, column: NumberColumn, rows: IntArray) -> FloatArray:
    """Return the rewards of the transitions.

    Raises:
        LogError: a reward is missing or too large.
    """
    rewards: FloatArray = column.values[rows]
    wrong = ~(np.abs(rewards) <= LARGEST_REWARD)
    if wrong.any():
        row = rows[wrong.argmax()]
        limit = f"{LARGEST_REWARD:g}"
        refuse(
            log.where,
            row,
            column.name,
            f"a reward must be a number from -{limit} to {limit}; leave out reward= if there are none",
        )
    return rewards


def _ids(columns: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], Int32Array, dict[str, NDArray[Any]]]:
    """Return the sorted ids of the states, the position of each state among them, and the columns in that order.

    The id of a state of one column is its value; with several columns it is text such as "place=lift, cargo=meal".
    """
    ids = next(iter(columns.values())) if len(columns) == 1 else _joined(columns)
    order = np.argsort(ids, kind="stable")
    place = np.empty(len(ids), np.int32)
    place[order] = np.arange(len(ids))
    in_order = {name: values[order] for name, values in columns.items()} if len(columns) > 1 else {}
    return ids[order], place, in_order


def _endings(columns: dict[str, NDArray[Any]], following: Int32Array, outside: BoolArray) -> Endings | None:
    """Return where transitions led that enter no state of the dataset; None if the log says it of none of them.

    Args:
        columns: by column, its value in each numbered state.
        following: [size] number of the next state, -1 where it is not known.
        outside: [size] whether the next state, if it is known, is none of the dataset.
    """
    led = outside & (following >= 0)
    if not led.any():
        return None
    numbers, code = number_values(following[led].astype(np.int64))
    names, place, parts = _ids({name: _narrow(values[numbers]) for name, values in columns.items()})
    found = np.full(len(following), -1, np.int32)
    found[led] = place[code]
    return Endings(found, names, tuple(parts.values()))


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return strings in the shortest type that holds them, so that equal datasets have equal hashes."""
    if values.dtype.kind != "U":
        return values
    return values.astype(f"U{max(1, np.strings.str_len(values).max())}")


def _joined(columns: dict[str, NDArray[Any]]) -> NDArray[np.str_]:
    """Return the ids of states of several columns."""
    texts = [[f"{name}={_quoted(value)}" for value in values.tolist()] for name, values in columns.items()]
    joined = [", ".join(parts) for parts in zip(*texts, strict=True)]
    require_memory(4 * len(joined) * max(map(len, joined)), f"the ids of {len(joined):,} states")
    return np.array(joined)


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if QUOTED & set(text) else text
