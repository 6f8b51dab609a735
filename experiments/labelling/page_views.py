"""What the pages show of a session, in the form in which the templates print it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.labelling.bounds_chart import BoundsChart, bounds_chart
from experiments.labelling.group_histograms import ColumnView, column_views
from experiments.labelling.query_texts import JOINED, entries_of, outcome_text, state_text
from experiments.labelling.world_drawing import Drawing, drawing_of
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.naming import unit
from selectenv.errors import OptionError
from selectenv.labelling.queries import Query, TransitionSummary
from selectenv.labelling.session_reports import GivenAnswer, SessionStatus
from selectenv.session import LabellingSession

FEW = 6
"""Outcomes that are listed per action if a state has too many for input fields; the others are counted."""
MOST_FIELDS = 60
"""Distinct transitions up to which each can have its own reward on the page."""
POLICY_ROWS = 30
"""Number of states in the policy table of the page, the most visited first."""
CHOICES = (-1.0, 0.0, 1.0)
"""Answers of the number keys if the range of the rewards is not known."""
STEPS = 5
"""Number of answers on the number keys if the range of the rewards is known."""
LONG_TEXT = 40
"""Characters beyond which a state is shown in smaller type."""


@dataclass(frozen=True)
class Outcome:
    """Where an action led."""

    words: list[tuple[str, bool]]
    """The state that was entered: the entry of each column, and whether it differs from the state that was left."""
    next_id: Any
    """Id of that state; None if the episode terminated or the next state is unknown."""
    share: float
    count: int
    field: str
    """Name of the input field for its reward."""

    @property
    def text(self) -> str:
        """The state that was entered."""
        return JOINED.join(word for word, _ in self.words)


@dataclass(frozen=True)
class ActionView:
    """An action, how often it was taken, and where it led."""

    name: str
    count: int
    share: float
    outcomes: list[Outcome]
    more: int
    """Number of outcomes that are not listed."""
    field: str
    """Name of the input field for its reward."""


@dataclass(frozen=True)
class Question:
    """A query, as the page of a state shows it."""

    number: int
    """Number of the state, which is in the address of its page."""
    query: Query
    text: str
    unit: str
    """What the answer covers: "state", "group" or "episode"."""
    is_long: bool
    drawing: Drawing | None
    columns: list[ColumnView]
    """The columns of a group of vectors; none if the state is not one."""
    actions: list[ActionView]
    by_transition: bool
    """Whether each transition can have its own reward."""
    answers: list[GivenAnswer]
    open: bool
    """Whether the annotator can answer it."""


@dataclass(frozen=True)
class PolicyRow:
    """What the policy does in a state."""

    id: Any
    actions: str
    value: float
    labelled: bool


@dataclass(frozen=True)
class Progress:
    """The sidebar of every page: progress, answers, bounds and policy of the session."""

    status: SessionStatus
    answered: list[tuple[int, GivenAnswer]]
    """State number and answer, the last one first."""
    chart: BoundsChart | None
    bounds_error: str
    """Why there is no chart, although the range of the rewards is known."""
    reward_range: tuple[float, float] | None
    policy: list[PolicyRow]
    policy_states: int
    """Number of states that the data visit and the policy covers."""


def question(session: LabellingSession, number: int, annotator: str) -> Question:
    """Return the page of a state that was asked about.

    Raises:
        QueryError: it was not asked about.
    """
    dataset = session.dataset
    query = session.query(dataset.ids[number].item())
    following = {int(dataset.numbers([t.next_id])[0]) for t in query.transitions if t.next_id is not None}
    answers = [answer for answer in session.answers() if answer.id == query.id]
    mine = any(answer.annotator == annotator for answer in answers)
    text = state_text(dataset, query.id)
    return Question(
        number=number,
        query=query,
        text=text,
        unit=unit(dataset),
        is_long=len(text) > LONG_TEXT,
        drawing=None if dataset.groups is not None else drawing_of(dataset, number, following),
        columns=column_views(query.group),
        actions=_actions(dataset, query),
        by_transition=len(query.actions) < len(query.transitions) <= MOST_FIELDS,
        answers=answers,
        open=not mine and len(answers) < session.settings.answers_per_query,
    )


def _actions(dataset: OfflineDataset, query: Query) -> list[ActionView]:
    views, first = [], 0
    listed = FEW if len(query.transitions) > MOST_FIELDS else MOST_FIELDS
    for i, action in enumerate(query.actions):
        outcomes = [
            Outcome(_words(dataset, query, t), t.next_id, t.count / action.count, t.count, f"transition-{first + j}")
            for j, t in enumerate(action.transitions)
        ]
        first += len(outcomes)
        if listed == FEW:
            outcomes.sort(key=lambda outcome: -outcome.count)
        views.append(
            ActionView(
                name=str(action.action),
                count=action.count,
                share=action.count / query.visits,
                outcomes=outcomes[:listed],
                more=max(0, len(outcomes) - listed),
                field=f"action-{i}",
            )
        )
    return views


def _words(dataset: OfflineDataset, query: Query, transition: TransitionSummary) -> list[tuple[str, bool]]:
    """Return where a transition led."""
    if transition.next_id is not None:
        before = entries_of(dataset, query.id)
        return [
            (after, after != left) for left, after in zip(before, entries_of(dataset, transition.next_id), strict=True)
        ]
    return [(outcome_text(transition), transition.terminated > 0 or transition.ending is not None)]


def range_of(session: LabellingSession) -> tuple[float, float] | None:
    """Return the smallest and the largest reward of any state, None if they are not known."""
    ends = session.reward_range
    return None if ends is None else (float(np.min(ends[0])), float(np.max(ends[1])))


def choices_of(session: LabellingSession) -> tuple[float, ...]:
    """Return the answers of the number keys: steps over the range of the rewards where it is known, 0 among them."""
    low, high = range_of(session) or (0.0, 0.0)
    if low == high:
        return CHOICES
    if low < 0 < high:
        return (low, low / 2, 0.0, high / 2, high)
    return tuple(np.linspace(low, high, STEPS).tolist())


def progress(session: LabellingSession) -> Progress:
    """Return the contents of the sidebar."""
    chart, error = None, ""
    if session.reward_range is not None:
        try:
            chart = bounds_chart(session.curve(), session.budget)
        except OptionError as problem:  # an answer lies outside of the range
            error = str(problem)
    answers = session.answers()
    numbers = session.dataset.numbers([answer.id for answer in answers]).tolist()
    return Progress(
        status=session.status(),
        answered=list(zip(numbers, answers, strict=True))[::-1],
        chart=chart,
        bounds_error=error,
        reward_range=range_of(session),
        policy=policy_rows(session),
        policy_states=int(session.dataset.cells.labelable.sum()),
    )


def policy_rows(session: LabellingSession) -> list[PolicyRow]:
    """Return what the policy does in the states that the data visit most."""
    policy, visits = session.policy(), session.dataset.cells.visits
    rows = []
    for number in np.argsort(-visits, kind="stable")[:POLICY_ROWS].tolist():
        if visits[number] == 0:
            break
        shares = policy.table[number]
        best = [str(policy.actions[a]) for a in np.flatnonzero(shares > shares.max() - 1e-9).tolist()]
        actions = "no preference" if len(best) == len(policy.actions) > 1 else " or ".join(best)
        labelled = bool(policy.labelled[number])
        rows.append(PolicyRow(policy.ids[number].item(), actions, float(policy.values[number]), labelled))
    return rows
