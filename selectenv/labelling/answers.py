"""Answers to queries: one number for the state, one per action, or one per distinct transition."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from selectenv.checks import LARGEST_REWARD, did_you_mean, is_real, shown
from selectenv.errors import AnswerError
from selectenv.labelling.queries import ActionSummary, transitions_of
from selectenv.typing import FloatArray


def rewards_of(id: Any, actions: Sequence[ActionSummary], answer: Any) -> FloatArray:
    """Return one reward per distinct transition out of a state.

    Args:
        id: id of the state, for error messages.
        actions: the actions that the data took there.
        answer: a number; a dict of one number per action; or a list of one number per distinct transition, in the order
            of `transitions_of`.

    Raises:
        AnswerError: it has another form, or a number that is not finite.
    """
    transitions = transitions_of(actions)
    if isinstance(answer, Mapping):
        given = _by_action(id, actions, answer)
        return np.array([given[str(transition.action)] for transition in transitions])
    if is_list(answer):
        values = list(answer)
        if len(values) != len(transitions):
            raise AnswerError(
                f"the state {shown(id)} has {len(transitions)} distinct transitions, and the answer has "
                f"{len(values)} numbers; a single number holds for all of them"
            )
        return np.array([_number(id, value) for value in values])
    return np.full(len(transitions), _number(id, answer))


def is_list(answer: Any) -> bool:
    """Return whether an answer has one number per distinct transition."""
    return isinstance(answer, list | tuple) or (isinstance(answer, np.ndarray) and answer.ndim > 0)


def _by_action(id: Any, actions: Sequence[ActionSummary], answer: Mapping[Any, Any]) -> dict[str, float]:
    """Return the number of each action; keys may be actions or their text, as JSON has it."""
    names = [str(action.action) for action in actions]
    taken = ", ".join(shown(action.action) for action in actions)
    listed = f"the data took {taken} in the state {shown(id)}"
    given: dict[str, float] = {}
    for action, value in answer.items():
        text = str(action)
        if text not in names:
            raise AnswerError(f"{listed}, and the answer has a number for {shown(action)}; {did_you_mean(text, names)}")
        if text in given:
            raise AnswerError(f"{listed}, and the answer has two numbers for {shown(action)}")
        given[text] = _number(id, value)
    missing = [action.action for action in actions if str(action.action) not in given]
    if missing:
        raise AnswerError(f"{listed}, and the answer has no number for {', '.join(map(shown, missing))}")
    return given


def _number(id: Any, value: Any) -> float:
    if not is_real(value) or abs(float(value)) > LARGEST_REWARD:
        raise AnswerError(
            f"a reward must be a finite number of magnitude {LARGEST_REWARD:g} or less; the answer for the state "
            f"{shown(id)} has {shown(value)}"
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
