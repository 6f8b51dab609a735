"""The distinct transitions of a dataset."""

from dataclasses import dataclass

import numpy as np

from selectenv.typing import FloatArray, Int32Array, IntArray


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
