"""Summaries of the rewards of each state: what a label on it reveals."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from selectenv.typing import FloatArray

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset


@dataclass(frozen=True, eq=False)
class RewardSummary:
    """Mean and range of the known rewards of each state."""

    mean: FloatArray
    """[n] mean reward of a state's transitions; 0 where none is known."""
    by_action: FloatArray
    """[n, actions] mean reward of each action; NaN where none is known."""
    smallest: FloatArray
    """[n] smallest reward; infinite where none is known."""
    largest_magnitude: FloatArray
    """[n] largest magnitude of a reward; 0 where none is known."""


def summarise_rewards(dataset: "OfflineDataset", rewards: FloatArray) -> RewardSummary:
    """Return the summary of ``rewards`` [size], NaN where unknown."""
    n, actions, unique = dataset.n_states, dataset.n_actions, dataset.unique_transitions
    mean, count = unique.mean_rewards(rewards)
    pair = unique.state * actions + unique.action
    totals, counts = np.bincount(pair, count * mean, n * actions), np.bincount(pair, count, n * actions)
    with np.errstate(invalid="ignore"):
        by_action = (totals / np.where(counts > 0, counts, np.nan)).reshape(n, actions)
    known = np.bincount(unique.state, count, n)
    state_mean = np.bincount(unique.state, count * mean, n) / np.maximum(known, 1.0)
    smallest, largest = np.full(n, np.inf), np.full(n, -np.inf)
    given = ~np.isnan(rewards)
    state = dataset.state[given]
    np.minimum.at(smallest, state, rewards[given])
    np.maximum.at(largest, state, rewards[given])
    magnitude = np.where(known > 0, np.maximum(np.abs(smallest), np.abs(largest)), 0.0)
    return RewardSummary(state_mean, by_action, smallest, magnitude)
