"""What a person needs to see of a group of states: its columns beside the whole data's, and some of its members."""

from dataclasses import dataclass

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.typing import FloatArray, IntArray

BINS = 24
"""Bars of a histogram."""
MEMBERS = 6
"""Largest number of members that are shown."""
TRIMMED = 0.005
"""Share of the data at either end of a column that its histogram puts into the first and the last bar."""


@dataclass(frozen=True)
class ColumnSummary:
    """A column of vectors in a group, and in the whole data."""

    name: str
    low: float
    """Smallest value in the group."""
    middle: float
    """Median of the group."""
    high: float
    """Largest value in the group."""
    data_low: float
    """Smallest value in the data."""
    data_high: float
    """Largest value in the data."""
    bars: tuple[float, ...]
    """[bins] share of the group's transitions in each interval, from the left."""
    data_bars: tuple[float, ...]
    """[bins] share of all transitions in the same intervals."""


@dataclass(frozen=True)
class Member:
    """A transition of a group."""

    episode: int
    """Number of its episode, counted from 0."""
    step: int
    """Number of its step in the episode, counted from 0."""
    values: tuple[float, ...]
    """Its vector."""


@dataclass(frozen=True)
class GroupSummary:
    """A group of vectors."""

    columns: tuple[ColumnSummary, ...]
    members: tuple[Member, ...]
    episodes: int
    """Number of episodes with transitions in the group."""


def summarise_group(dataset: OfflineDataset, transitions: IntArray) -> GroupSummary | None:
    """Return the summary of a group, given its transitions by number; None if its states are not vectors."""
    base = dataset.base
    if dataset.groups is None or base.vectors is None:
        return None
    values = base.vectors[base.state].astype(np.float64)
    mine = values[transitions]
    episode = np.cumsum(dataset.episode_start) - 1
    first = np.flatnonzero(dataset.episode_start)
    some = transitions[np.unique(np.linspace(0, len(transitions) - 1, MEMBERS).astype(np.int64))]
    return GroupSummary(
        tuple(_column(name, mine[:, i], values[:, i]) for i, name in enumerate(base.vectors.columns)),
        tuple(
            Member(int(episode[t]), int(t - first[episode[t]]), tuple(base.vectors[base.state[t]].tolist()))
            for t in some.tolist()
        ),
        len(np.unique(episode[transitions])),
    )


def _column(name: str, mine: FloatArray, every: FloatArray) -> ColumnSummary:
    low, high = np.quantile(every, [TRIMMED, 1 - TRIMMED])
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    bars, data_bars = (
        tuple((np.histogram(np.clip(part, edges[0], edges[-1]), edges)[0] / len(part)).tolist())
        for part in (mine, every)
    )
    return ColumnSummary(
        name,
        float(mine.min()),
        float(np.median(mine)),
        float(mine.max()),
        float(every.min()),
        float(every.max()),
        bars,
        data_bars,
    )
