"""The distinct transitions of a dataset, and the neighbours of its states."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from selectenv.typing import FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset

DENSE_KEYS = 1 << 24
"""Transitions are counted by direct addressing up to this many possible keys, and by sorting beyond."""


@dataclass(frozen=True, eq=False)
class UniqueTransitions:
    """The distinct transitions (state, action, next state) of a dataset."""

    index: Int32Array
    """[size] which of them each transition is."""
    state: IntArray
    """[unique]"""
    action: IntArray
    """[unique]"""
    next_state: IntArray
    """[unique] -1 where there is none."""
    count: IntArray
    """[unique] how often each of them occurs."""
    ending: IntArray | None = None
    """[unique] the ending of each, -1 where there is none; None if they do not differ by their endings."""

    def mean_rewards(self, rewards: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean known reward [unique] and the number of known rewards [unique] of each.

        The mean is free of summation error where all rewards of a transition are the same; it is 0 where none is known.

        Args:
            rewards: [size] rewards, NaN where unknown.
        """
        known = ~np.isnan(rewards)
        index, count = self.index, self.count
        if not known.all():
            index, rewards = index[known], rewards[known]
            count = np.bincount(index, minlength=len(self.count))
        sample = np.zeros(len(count))
        sample[index] = rewards
        noisy = np.zeros(len(count), bool)
        noisy[index[rewards != sample[index]]] = True
        mean = np.bincount(index, rewards, len(count)) / np.maximum(count, 1)
        return np.where(noisy, mean, sample), count.astype(np.float64)


def find_unique_transitions(dataset: "OfflineDataset") -> UniqueTransitions:
    """Return the distinct transitions (state, action, next state) of a dataset and their counts."""
    n, actions = dataset.n_states, dataset.n_actions
    key = (dataset.state.astype(np.int64) * actions + dataset.action) * (n + 1) + dataset.next_state + 1
    if n * actions * (n + 1) <= DENSE_KEYS:
        count = np.bincount(key, minlength=1)
        distinct = np.flatnonzero(count)
        place = np.zeros(len(count), np.int32)
        place[distinct] = np.arange(len(distinct))
        index = place[key]
        count = count[distinct]
    else:
        distinct, index, count = np.unique(key, return_inverse=True, return_counts=True)
    pair, following = np.divmod(distinct, n + 1)
    return UniqueTransitions(index.astype(np.int32), pair // actions, pair % actions, following - 1, count)


def find_predecessors(dataset: "OfflineDataset") -> tuple[Int32Array, Int32Array, FloatArray]:
    """Return the predecessors of each state; see `OfflineDataset.predecessors`."""
    unique = dataset.unique_transitions
    inside = unique.next_state >= 0
    key = unique.next_state[inside] * dataset.n_states + unique.state[inside]
    distinct, where = np.unique(key, return_inverse=True)
    count = np.bincount(where, unique.count[inside].astype(np.float64), len(distinct)).astype(np.float64)
    entered, source = np.divmod(distinct, dataset.n_states)
    first = np.searchsorted(entered, np.arange(dataset.n_states + 1))
    return first.astype(np.int32), source.astype(np.int32), count


def find_successors(dataset: "OfflineDataset") -> tuple[Int32Array, Int32Array]:
    """Return the successors of each state; see `OfflineDataset.successors`."""
    unique = dataset.unique_transitions
    inside = unique.next_state >= 0
    left, entered = np.divmod(
        np.unique(unique.state[inside] * dataset.n_states + unique.next_state[inside]), dataset.n_states
    )
    first = np.searchsorted(left, np.arange(dataset.n_states + 1))
    return first.astype(np.int32), entered.astype(np.int32)
