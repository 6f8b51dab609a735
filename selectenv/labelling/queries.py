"""Queries: what a person needs to see of a state to judge it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.datasets.dataset import OfflineDataset
from selectenv.labelling.group_summary import GroupSummary, summarise_group
from selectenv.typing import Int32Array, IntArray

EPISODES = 3
"""Largest number of excerpts in a query."""
STEPS = 3
"""Steps before and after the queried one in an excerpt."""
Action = int | str
"""An action as the caller knows it: its name in the log where there are names, else its number."""


@dataclass(frozen=True)
class TransitionSummary:
    """A distinct transition out of the queried state."""

    action: Action
    next_id: Any
    """Id of the state that was entered; None if the episode terminated or the next state is unknown."""
    count: int
    """How often it occurs in the data."""
    terminated: int
    """How many of these ended the episode."""
    ending: Any = None
    """Where it led according to the log, if no state of the data was entered; None if the log does not say it."""


@dataclass(frozen=True)
class ActionSummary:
    """An action that the data took in the queried state."""

    action: Action
    count: int
    transitions: tuple[TransitionSummary, ...]
    """Where it led, in the order of ``query.transitions``."""


@dataclass(frozen=True)
class Step:
    """One step of an excerpt."""

    id: Any
    action: Action
    queried: bool
    """Whether this is the step in the queried state that the excerpt is about."""


@dataclass(frozen=True)
class Excerpt:
    """A few steps of an episode around a visit to the queried state."""

    steps: tuple[Step, ...]
    from_start: bool
    """Whether the first step is the start of the episode."""
    next_id: Any
    """Id of the state after the last step; None if the episode terminated or the next state is unknown."""
    end: str
    """How the last step ends: "terminated", "truncated", or "" if the episode continues."""
    ending: Any = None
    """Where the last step led according to the log, if no state of the data was entered."""


@dataclass(frozen=True)
class Query:
    """A question to a person: what is it worth to be in this state and act?"""

    id: Any
    """Id of the state; it identifies the query, since no state is asked about twice."""
    number: int
    """Which label of the budget it is, counted from 1."""
    visits: int
    """How many transitions of the data leave the state."""
    actions: tuple[ActionSummary, ...]
    """The actions that the data took, and where they led."""
    episodes: tuple[Excerpt, ...]
    """Up to three excerpts of episodes around the state."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The entries of the state by column, if states are made of several columns of a log."""
    observation: NDArray[Any] | None = field(default=None, repr=False, compare=False)
    """The image or the vector of the state, if there is one."""
    group: GroupSummary | None = field(default=None, repr=False)
    """What the group looks like, if states are groups of vectors."""
    annotator: str = ""
    """To whom it was handed out."""
    leased_until: float = 0.0
    """When it may be handed out to others, in seconds since the epoch."""

    @property
    def transitions(self) -> tuple[TransitionSummary, ...]:
        """The distinct transitions out of the state: the order of an answer that is a list."""
        return transitions_of(self.actions)


def transitions_of(actions: Iterable[ActionSummary]) -> tuple[TransitionSummary, ...]:
    """Return the distinct transitions of actions, in the order of an answer that is a list."""
    return tuple(transition for action in actions for transition in action.transitions)


def action_names(dataset: OfflineDataset) -> list[Action]:
    """Return the actions as the caller knows them: names if the data have them, else numbers."""
    names: list[Action] = list(range(dataset.n_actions))
    return names if dataset.action_names is None else dataset.action_names.tolist()


def make_query(dataset: OfflineDataset, number: int, order: int, annotator: str = "", until: float = 0.0) -> Query:
    """Return the query about a state.

    Args:
        dataset: the data.
        number: number of the state.
        order: which label of the budget it is.
        annotator: to whom it is handed out.
        until: when the lease ends.
    """
    names, transitions = action_names(dataset), dataset.transitions_of(np.array([number]))
    return Query(
        id=state_id(dataset, number),
        number=order,
        visits=len(transitions),
        actions=actions_taken(dataset, number),
        episodes=tuple(_excerpt(dataset, names, t) for t in _examples(dataset, transitions)),
        columns=_columns(dataset, number),
        observation=None if dataset.observations is None else dataset.observations[number],
        group=summarise_group(dataset, transitions),
        annotator=annotator,
        leased_until=until,
    )


def actions_taken(dataset: OfflineDataset, number: int) -> tuple[ActionSummary, ...]:
    """Return the actions that the data took in a state, and where they led."""
    names, transitions = action_names(dataset), dataset.transitions_of(np.array([number]))
    unique = dataset.outcomes
    first, last = np.searchsorted(unique.state, [number, number + 1])
    ended = np.bincount(unique.index[transitions] - first, dataset.terminated[transitions], int(last - first))
    summaries = [
        TransitionSummary(
            names[unique.action[i]],
            state_id(dataset, unique.next_state[i]),
            int(unique.count[i]),
            int(ended[i - first]),
            _ending(dataset, unique.ending, i),
        )
        for i in range(first, last)
    ]
    actions = []
    for action in dict.fromkeys(summary.action for summary in summaries):
        mine = tuple(summary for summary in summaries if summary.action == action)
        actions.append(ActionSummary(action, sum(summary.count for summary in mine), mine))
    return tuple(actions)


def _columns(dataset: OfflineDataset, number: int) -> dict[str, Any]:
    """Return the entries of a state by column."""
    if dataset.vectors is not None:
        return dict(zip(dataset.vectors.columns, dataset.vectors[number].tolist(), strict=True))
    return {name: values[number].item() for name, values in dataset.state_columns.items()}


def state_id(dataset: OfflineDataset, number: int) -> Any:
    """Return the id of a state as a Python value, None for the number -1."""
    return None if number < 0 else dataset.ids[number].item()


def _ending(dataset: OfflineDataset, codes: IntArray | Int32Array | None, at: int) -> Any:
    """Return entry ``at`` of codes of endings as a Python value, None if there is none."""
    if dataset.endings is None or codes is None or codes[at] < 0:
        return None
    return dataset.endings.names[codes[at]].item()


def _examples(dataset: OfflineDataset, transitions: IntArray) -> list[int]:
    """Return visits to show: one of each of the most frequent transitions, then others from the whole data."""
    index = dataset.outcomes.index[transitions]
    _, first, count = np.unique(index, return_index=True, return_counts=True)
    frequent = transitions[first[np.argsort(-count, kind="stable")]]
    spread = transitions[np.linspace(0, len(transitions) - 1, EPISODES).astype(np.int64)]
    return list(dict.fromkeys([*frequent[:EPISODES].tolist(), *spread.tolist()]))[:EPISODES]


def _excerpt(dataset: OfflineDataset, names: list[Action], at: int) -> Excerpt:
    """Return the steps around transition ``at`` within its episode."""
    low = high = at
    while low > max(0, at - STEPS) and not dataset.episode_start[low]:
        low -= 1
    while high < min(len(dataset) - 1, at + STEPS) and not dataset.episode_start[high + 1]:
        high += 1
    steps = tuple(
        Step(state_id(dataset, dataset.state[t]), names[dataset.action[t]], t == at) for t in range(low, high + 1)
    )
    end = "terminated" if dataset.terminated[high] else "truncated" if dataset.truncated[high] else ""
    ending = _ending(dataset, None if dataset.endings is None else dataset.endings.code, high)
    return Excerpt(steps, bool(dataset.episode_start[low]), state_id(dataset, dataset.next_state[high]), end, ending)
