"""Answers from CSV files: a person's own table, questions that were filled in, or labels of another session."""

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from experiments.errors import LabelsFileError
from experiments.labelling.typed_numbers import typed_number
from selectenv import LabellingSession
from selectenv.checks import did_you_mean
from selectenv.errors import AnswerError, UnknownStateError
from selectenv.labelling.queries import ActionSummary, actions_taken, transitions_of

REQUIRED = ("state", "reward")
DELIMITERS = (",", ";", "\t")
"""Characters that separate the fields of a row; spreadsheets of many countries write semicolons."""
LONGEST_ID = 20
"""Digits of the largest id that is a number."""
Key = tuple[str, str, bool]
"""Action and next state of a row, which may be empty, and whether the row is about the end of episodes."""

WHOLE: Key = ("", "", False)
"""The row of a whole state."""


class Reward(NamedTuple):
    """A reward of a file."""

    value: float
    row: int
    """Counted as spreadsheets do: the header is row 1."""


def read_labels(session: LabellingSession, path: Path) -> dict[Any, Any]:
    """Return the answers of a CSV file by the id of their state.

    The file has the columns ``state`` and ``reward``, and optionally ``action``, ``next_state`` and ``ended``. A row
    without an action holds for the whole state, a row without a next state for all transitions of the action. ``ended``
    tells transitions into the same state apart, by whether they ended the episode. Rows without a reward and all other
    columns are ignored.

    Raises:
        LabelsFileError: the file cannot be read, or a row cannot be used; the message names the row.
    """
    given: dict[Any, dict[Key, Reward]] = {}
    for number, row in _rows(path):
        text = row["reward"].strip()
        if not text:
            continue
        try:
            reward, state = Reward(typed_number(text), number), known_id(session, row["state"])
        except (AnswerError, UnknownStateError) as error:
            raise _refusal(path, number, str(error)) from None
        key = _key(row.get("action", ""), row.get("next_state", ""), row.get("ended", "").strip() not in ("", "0"))
        earlier = given.setdefault(state, {}).setdefault(key, reward)
        if earlier.value != reward.value:
            raise _refusal(path, number, f"row {earlier.row} has another reward for the same entry")
    if not given:
        raise LabelsFileError(f"{str(path)!r}: no reward is filled in")
    return {state: _answer(session, state, rewards, path) for state, rewards in given.items()}


def _refusal(path: Path, row: int, reason: str) -> LabelsFileError:
    return LabelsFileError(f"{str(path)!r}, row {row}: {reason}")


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Return the rows by column, and their numbers; missing fields at the end of a row are empty."""
    try:
        content = path.read_bytes()
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = content.decode("utf-16" if wide else "utf-8-sig")
        delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except UnicodeError:
        raise LabelsFileError(
            f"{str(path)!r} is not text in UTF-8: save it again as CSV in UTF-8, as spreadsheets offer"
        ) from None
    except (OSError, csv.Error) as error:
        raise LabelsFileError(f"{str(path)!r} cannot be read: {error}") from None
    names = [name.strip() for name in rows[0]] if rows else []
    if any(names.count(name) != 1 for name in REQUIRED):
        raise LabelsFileError(f"{str(path)!r} needs a header with the columns {' and '.join(REQUIRED)}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) > len(names):
            reason = (
                f"it has {len(row)} fields, and the header {len(names)}; text that contains {delimiter!r} needs quotes"
            )
            raise _refusal(path, number, reason)
        yield number, dict(zip(names, [*row, *[""] * (len(names) - len(row))], strict=True))


def known_id(session: LabellingSession, text: str) -> Any:
    """Return the id of a state that a text stands for.

    Raises:
        UnknownStateError: the session has no such state.
    """
    digits = text.strip().removeprefix("-")
    whole = session.dataset.ids.dtype.kind in "iu" and digits.isdecimal() and len(digits) <= LONGEST_ID
    known: Any = int(text) if whole else text
    session.dataset.numbers([known])
    return known


def actions_of(session: LabellingSession, state: Any) -> tuple[ActionSummary, ...]:
    """Return the actions that the data took in a state, whether it was asked about or not."""
    return actions_taken(session.dataset, int(session.dataset.numbers([state])[0]))


def _answer(session: LabellingSession, state: Any, rewards: dict[Key, Reward], path: Path) -> Any:
    """Return the answer about a state: one number, or one per distinct transition."""
    if list(rewards) == [WHOLE]:
        return rewards[WHOLE].value
    names = [str(action.action).strip() for action in actions_of(session, state)]
    for (action, _, _), reward in rewards.items():
        if action and action not in names:
            reason = f"unknown action {action!r} in the state {state!r}; {did_you_mean(action, names)}"
            raise _refusal(path, reward.row, reason)
    answer, used = [], set()
    for transition in transitions_of(actions_of(session, state)):
        entered = transition.ending if transition.next_id is None else transition.next_id
        following, ended = "" if entered is None else entered, transition.terminated > 0
        keys = [_key(transition.action, *rest) for rest in ((following, ended), (following, False), ("", False))]
        key = next((key for key in keys if key in rewards), None)
        if key is None:
            row = next(iter(rewards.values())).row
            missing = f"{transition.action!r}{_leading_to(keys[0][1])}"
            raise _refusal(path, row, f"the state {state!r} has this reward, but none for the action {missing}")
        used.add(key)
        answer.append(rewards[key].value)
    for (action, following, ended), reward in rewards.items():
        if (action, following, ended) not in used:
            reason = f"the data never show the action {action!r}{_leading_to(following)} in the state {state!r}"
            raise _refusal(path, reward.row, reason if action else f"the state {state!r} also has rewards per action")
    return answer


def _key(action: Any, following: Any, ended: bool) -> Key:
    """Return an action and a next state as text; spaces around a field do not matter."""
    return str(action).strip(), str(following).strip(), ended


def _leading_to(following: str) -> str:
    return f" that leads to {following!r}" if following else ""
