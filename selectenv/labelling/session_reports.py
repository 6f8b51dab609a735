"""What a session reports: its progress, its answers and labels, and the curve of its bounds."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from selectenv.labelling.queries import Action, ActionSummary
from selectenv.typing import FloatArray


@dataclass(frozen=True)
class SessionStatus:
    """The progress of a session."""

    budget: int
    """Total number of labels."""
    answered: int
    """Queries with all their answers: labels."""
    asked: int
    """Queries that the strategy has chosen so far, answered or not."""
    handed_out: int
    """Queries without all their answers that somebody is working on."""
    skipped: int
    """Queries that were skipped and come back last."""
    annotators: dict[str, int] = field(default_factory=dict)
    """Number of answers by annotator."""

    @property
    def left(self) -> int:
        """Number of labels that are left of the budget."""
        return self.budget - self.answered

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""
        return self.left == 0


@dataclass(frozen=True)
class HandedOut:
    """A query that somebody is working on."""

    id: Any
    annotator: str
    until: float
    """When it may be handed out to others, in seconds since the epoch."""


@dataclass(frozen=True)
class GivenAnswer:
    """One answer of one annotator."""

    number: int
    """Which answer of the session it is, counted from 1 and withdrawn ones included."""
    id: Any
    """Id of the state."""
    annotator: str
    answer: Any
    """As it was given: a number, a dict of one per action, or a list of one per distinct transition."""
    told: float
    """When, in seconds since the epoch."""


@dataclass(frozen=True)
class Label:
    """The rewards of a state, from all its answers."""

    id: Any
    rewards: dict[Action, float]
    """Mean reward of each action that the data took."""
    spread: float
    """Largest difference between two answers about the same transition; 0 with one answer."""
    transitions: tuple[float, ...]
    """Reward of each distinct transition, in the order of ``query.transitions``."""

    @classmethod
    def of(cls, id: Any, actions: Iterable[ActionSummary], told: FloatArray, spread: FloatArray) -> "Label":
        """Return the label of a state from the mean and the spread of its answers, per distinct transition."""
        rewards, first = {}, 0
        for action in actions:
            counts = [transition.count for transition in action.transitions]
            rewards[action.action] = float(np.average(told[first : first + len(counts)], weights=counts))
            first += len(counts)
        return cls(id, rewards, float(spread.max()), tuple(told.tolist()))


@dataclass(frozen=True)
class CurvePoint:
    """Bounds after a number of labels; see `ValueBounds`."""

    labels: int
    id: Any
    """Id of the state that was labelled last; None before the first label."""
    least: float
    most: float
    upper: float
    regret: float
