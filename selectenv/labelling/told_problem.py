"""A selection problem whose rewards are told state by state instead of being hidden in the dataset."""

from typing import Any

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.learners.base import FitResult
from selectenv.problem import Labels, SelectionProblem
from selectenv.typing import BoolArray, FloatArray, IntArray


class ToldProblem(SelectionProblem):
    """Learns from the rewards that have been told so far; features and learners treat them like revealed ones."""

    def __init__(self, dataset: OfflineDataset, learner: Any) -> None:
        """Start without any reward.

        Args:
            dataset: the data, without rewards.
            learner: a `Learner`, or any object with `fit(dataset, rewards)`.
        """
        super().__init__(dataset, learner)
        self.rewards: FloatArray = np.full(len(dataset), np.nan)
        """[size] the rewards that have been told, NaN elsewhere."""
        self._told = np.zeros(dataset.n_states, bool)
        self._fitted: tuple[bytes, FitResult] | None = None

    @property
    def revealable(self) -> BoolArray:
        """[n] the states whose rewards have been told."""
        return self._told

    def tell(self, number: int, rewards: FloatArray | None) -> tuple[IntArray, FloatArray]:
        """Set the rewards of a state; return the transitions out of it and their rewards.

        Args:
            number: number of the state.
            rewards: one reward per distinct transition of the state; None takes back what was told.
        """
        transitions, unique = self.dataset.transitions_of(np.array([number])), self.dataset.outcomes
        first = int(np.searchsorted(unique.state, number))
        told = np.full(len(transitions), np.nan) if rewards is None else rewards[unique.index[transitions] - first]
        self.rewards[transitions] = told
        self._told[number] = rewards is not None
        self._fitted = None
        return transitions, told

    def learn(self, labels: Labels, previous: FitResult | None = None) -> FitResult:
        """Return the policy and the values that the learner finds with those of the labels that have been told."""
        mask = self.mask(labels) & self._told
        if self._fitted is None or self._fitted[0] != mask.tobytes():
            self._fitted = mask.tobytes(), self.learner.fit(self.dataset, self.rewards, mask)
        return self._fitted[1]
