"""Answers to queries: one number for the state, one per action, or one per distinct transition."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from selectenv.checks import LARGEST_REWARD, is_real, shown
from selectenv.errors import AnswerError
from selectenv.labelling.queries import Query
from selectenv.typing import FloatArray


def rewards_of(query: Query, answer: Any) -> FloatArray:
    """Return one reward per distinct transition of the query.

    Args:
        query: the query.
        answer: a number; a dict of one number per action that the data took; or a list of one number per distinct
            transition, in the order of ``query.transitions``.

    Raises:
        AnswerError: it has another form, or a number that is not finite.
    """
    transitions = query.transitions
    if isinstance(answer, Mapping):
        given = _by_action(query, answer)
        return np.array([given[str(transition.action)] for transition in transitions])
    if is_list(answer):
        values = list(answer)
        if len(values) != len(transitions):
            raise AnswerError(
                f"the state {shown(query.id)} has {len(transitions)} distinct transitions, and the answer has "
                f"{len(values)} numbers; a single number holds for all of them"
            )
        return np.array([_number(query, value) for value in values])
    return np.full(len(transitions), _number(query, answer))


def is_list(answer: Any) -> bool:
    """Return whether an answer has one number per distinct transition."""
    return isinstance(answer, list | tuple) or (isinstance(answer, np.ndarray) and answer.ndim > 0)


def _by_action(query: Query, answer: Mapping[Any, Any]) -> dict[str, float]:
    """Return the number of each action; keys may be actions or their text, as JSON has it."""
    actions = [str(action.action) for action in query.actions]
    taken = ", ".join(shown(action.action) for action in query.actions)
    listed = f"the data took {taken} in the state {shown(query.id)}"
    given: dict[str, float] = {}
    for action, value in answer.items():
        text = str(action)
        if text not in actions:
            raise AnswerError(f"{listed}, and the answer has a number for {shown(action)}")
        if text in given:
            raise AnswerError(f"{listed}, and the answer has two numbers for {shown(action)}")
        given[text] = _number(query, value)
    missing = [action.action for action in query.actions if str(action.action) not in given]
    if missing:
        raise AnswerError(f"{listed}, and the answer has no number for {', '.join(map(shown, missing))}")
    return given


def _number(query: Query, value: Any) -> float:
    if not is_real(value) or abs(float(value)) > LARGEST_REWARD:
        raise AnswerError(
            f"a reward must be a finite number of magnitude {LARGEST_REWARD:g} or less; the answer for the state "
            f"{shown(query.id)} has {shown(value)}"
        )
    return float(value)


def as_text(answer: Any) -> str:
    """Return an answer, already checked, as JSON text."""
    if isinstance(answer, Mapping):
        return json.dumps({str(action): float(value) for action, value in answer.items()})
    return json.dumps([float(value) for value in answer] if is_list(answer) else float(answer))


def averaged(rewards: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return the mean of several answers, and their spread (largest minus smallest), per distinct transition."""
    many = np.stack(rewards)
    mean = many[0] if len(many) == 1 else np.array([math.fsum(column) / len(many) for column in many.T])
    return mean, np.ptp(many, axis=0)
