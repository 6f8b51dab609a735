"""Answers from CSV files: a person's own table, questions that were filled in, or labels of another session."""

import csv
from pathlib import Path
from typing import Any

from experiments.errors import LabelsFileError
from selectenv import LabellingSession
from selectenv.labelling.queries import Query, make_query

REQUIRED = ("state", "reward")
Key = tuple[str, str]
"""Action and next state of a row; either may be empty."""


def read_labels(session: LabellingSession, path: Path) -> dict[Any, Any]:
    """Return the answers of a CSV file by the id of their state.

    The file has the columns ``state`` and ``reward``, and optionally ``action`` and ``next_state``. A row without an
    action holds for the whole state, a row without a next state for all transitions of the action. Rows without a
    reward and all other columns are ignored.

    Raises:
        LabelsFileError: the file cannot be read, or a row cannot be used; the message names the row.
        UnknownStateError: the session has no such state.
    """
    given: dict[Any, dict[Key, float]] = {}
    for number, row in enumerate(_rows(path), 2):
        reward = (row["reward"] or "").strip()
        if not reward:
            continue
        try:
            value = float(reward)
        except ValueError:
            raise LabelsFileError(f"{str(path)!r}, row {number}: {reward!r} is not a number") from None
        key = (row.get("action") or "").strip(), (row.get("next_state") or "").strip()
        if given.setdefault(known_id(session, row["state"] or ""), {}).setdefault(key, value) != value:
            raise LabelsFileError(f"{str(path)!r}, row {number}: an earlier row has another reward for the same entry")
    return {state: _answer(_query(session, state), rewards, path) for state, rewards in given.items()}


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows, names = list(reader), reader.fieldnames or ()
    except (OSError, UnicodeError, csv.Error) as error:
        raise LabelsFileError(f"{str(path)!r} cannot be read: {error}") from None
    if any(name not in names for name in REQUIRED):
        raise LabelsFileError(f"{str(path)!r} needs a header with the columns {' and '.join(REQUIRED)}")
    return rows


def known_id(session: LabellingSession, text: str) -> Any:
    """Return the id of a state that a text stands for.

    Raises:
        UnknownStateError: the session has no such state.
    """
    whole = session.dataset.ids.dtype.kind in "iu" and text.strip().removeprefix("-").isdecimal()
    known: Any = int(text) if whole else text
    session.dataset.numbers([known])
    return known


def _query(session: LabellingSession, state: Any) -> Query:
    return make_query(session.dataset, int(session.dataset.numbers([state])[0]), 0)


def _answer(query: Query, rewards: dict[Key, float], path: Path) -> Any:
    """Return the answer about a state: one number, or one per distinct transition."""
    if list(rewards) == [("", "")]:
        return rewards["", ""]
    answer, used = [], set()
    for transition in query.transitions:
        following = "" if transition.next_id is None else str(transition.next_id)
        keys = [(str(transition.action), following), (str(transition.action), "")]
        key = next((key for key in keys if key in rewards), None)
        if key is None:
            raise LabelsFileError(
                f"{str(path)!r} has no reward for the action {transition.action} in the state {query.id!r}"
                f"{f' that leads to {following!r}' if following else ''}, although it has other rewards for that state"
            )
        used.add(key)
        answer.append(rewards[key])
    if rewards.keys() - used:
        action, following = next(iter(rewards.keys() - used))
        raise LabelsFileError(
            f"{str(path)!r} has a reward for the action {action!r} in the state {query.id!r}"
            f"{f' that leads to {following!r}' if following else ''}, which the data never show"
        )
    return answer
