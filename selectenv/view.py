"""What a strategy may know: the reward-free data, the rewards revealed so far, and the terms of the episode."""

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.typing import FloatArray, IntArray


class SelectionView:
    """The knowledge of a strategy during one episode.

    Nothing here leads to hidden rewards or to the evaluator. The environment adds rewards as states are labelled.
    """

    def __init__(self, dataset: OfflineDataset, *, rule: str, gamma: float, budget: int, initial: IntArray) -> None:
        """Show a dataset without any reward.

        Args:
            dataset: the data; rewards in it are left out.
            rule: how the learner treats unlabelled states, "uds" or "adapted".
            gamma: discount factor of learning.
            budget: number of labels of the episode.
            initial: numbers of the states that were labelled at random at reset, out of the budget.
        """
        self.dataset = dataset.without_rewards
        """The transitions, without rewards."""
        self.rule = rule
        """How the learner treats unlabelled states: "uds", "adapted", or the word of another learner."""
        self.gamma = gamma
        """Discount factor of learning."""
        self.budget = budget
        """Number of labels of the episode, initial ones included."""
        self.initial = initial
        """Numbers of the states that were labelled at random at reset."""
        self._revealed: FloatArray | None = None
        self._pending: list[tuple[IntArray, FloatArray]] = []

    @property
    def rewards(self) -> FloatArray:
        """[size] the rewards revealed so far, NaN elsewhere; read-only."""
        if self._revealed is None:
            self._revealed = np.full(len(self.dataset), np.nan)
        for transitions, rewards in self._pending:
            self._revealed[transitions] = rewards
        self._pending.clear()
        shown = self._revealed.view()
        shown.flags.writeable = False
        return shown

    @property
    def labels_to_choose(self) -> int:
        """Number of labels that the strategy chooses: the budget without the initial labels."""
        return self.budget - len(self.initial)

    def reveal(self, transitions: IntArray, rewards: FloatArray) -> None:
        """Add the rewards of transitions; called by the environment when it labels their states."""
        self._pending.append((transitions, rewards))
