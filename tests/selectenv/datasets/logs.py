"""Small logs for tests, and a plain way to make a dataset of them."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

import selectenv

TRIPS: dict[str, list[Any]] = {
    "trip": [7, 7, 7, 3, 3],
    "clock": [1, 2, 3, 1, 2],
    "place": ["hall", "lift", "hall", "lift", "hall"],
    "floor": [0, 0, 1, 1, 1],
    "action": ["go", "stop", "go", "go", "go"],
}
"""Two trips; trip 3 comes second."""
ROLES: dict[str, Any] = {"state": ["place", "floor"], "action": "action", "episode": "trip", "time": "clock"}


@st.composite
def episodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw episodes as `from_episodes` takes them; states and actions are all text, or all integers."""
    texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=3)
    names = st.lists(
        draw(st.sampled_from([texts, st.integers(-(2**63) + 1, 2**63 - 1)])), min_size=1, max_size=4, unique=True
    )
    states, actions = draw(names), draw(names)
    found = []
    for _ in range(draw(st.integers(1, 4))):
        steps = draw(st.integers(1, 5))
        found.append(
            {
                "states": draw(st.lists(st.sampled_from(states), min_size=steps, max_size=steps + draw(st.booleans()))),
                "actions": draw(st.lists(st.sampled_from(actions), min_size=steps, max_size=steps)),
            }
        )
    return found


def reference(episodes: list[dict[str, Any]]) -> selectenv.OfflineDataset:
    """Return the dataset of episodes, made step by step and handed to `from_arrays`."""
    acted = {state for one in episodes for state in one["states"][: len(one["actions"])]}
    names = sorted({action for one in episodes for action in one["actions"]})
    columns: dict[str, list[Any]] = {"states": [], "actions": [], "next_states": [], "terminated": [], "truncated": []}
    for one in episodes:
        following = one["states"][1:]
        for t, action in enumerate(one["actions"]):
            last = t == len(one["actions"]) - 1
            entered = following[t] if t < len(following) else None
            columns["states"].append(one["states"][t])
            columns["actions"].append(names.index(action))
            columns["next_states"].append(one["states"][t] if entered is None else entered)
            columns["terminated"].append(last and entered not in acted)
            columns["truncated"].append(last and entered in acted)
    return selectenv.from_arrays(**columns)


def rows(episodes: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return episodes as the columns of a log; rows of final states have no action."""
    columns: dict[str, list[Any]] = {"trip": [], "clock": [], "place": [], "action": []}
    for number, one in enumerate(episodes):
        for t, state in enumerate(one["states"]):
            action = one["actions"][t] if t < len(one["actions"]) else None
            for name, entry in zip(columns, (number, t, state, action), strict=True):
                columns[name].append(entry)
    return columns


def same_transitions(one: selectenv.OfflineDataset, other: selectenv.OfflineDataset) -> bool:
    """Return whether two datasets have the same states and transitions, whatever their names are."""
    names = ("ids", "state", "action", "next_state", "terminated", "truncated", "episode_start")
    return one.n_actions == other.n_actions and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )
