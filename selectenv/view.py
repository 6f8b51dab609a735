"""What a strategy may know: the reward-free data, the rewards revealed so far, and the terms of the episode."""

from typing import Any

import numpy as np

from selectenv.checks import as_ints, as_reals, check_instance, check_int, check_name, check_real, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import BudgetError, LabelError
from selectenv.options import EXPLOITS, MINIMA, UNSEEN
from selectenv.typing import FloatArray, IntArray


class SelectionView:
    """The knowledge of a strategy during one episode.

    Nothing here leads to hidden rewards or to the evaluator. The environment adds rewards as states are labelled.
    """

    def __init__(
        self,
        dataset: OfflineDataset,
        *,
        rule: str,
        gamma: float,
        budget: int,
        initial: IntArray,
        oracle: str = "",
        exploit: str = "best",
        labels_per_refit: int = 1,
        impute: float | str = 0.0,
        unseen: str = "zero",
    ) -> None:
        """Show a dataset without any reward.

        Args:
            dataset: the data; rewards in it are left out.
            rule: how the learner treats unlabelled states, "uds" or "adapted".
            gamma: discount factor of learning.
            budget: number of labels of the episode.
            initial: numbers of the states that were labelled at reset, out of the budget.
            oracle: what the learner knows beyond the rewards that labels reveal, if anything.
            exploit: how the feature `predecessors` of the observation is computed, "best" or "pooled".
            labels_per_refit: number of labels between two refits of the learner.
            impute: UDS: the reward of unlabelled transitions, "min" or "dataset-min".
            unseen: how the learner treats actions that the data never took at a state, "zero" or "exclude".
        """
        check_instance("dataset", dataset, OfflineDataset)
        check_instance("rule", rule, str)
        check_real("gamma", gamma, "[0, 1]")
        check_int("budget", budget, 1, error=BudgetError)
        check_name("value of `exploit`", exploit, EXPLOITS)
        check_int("labels_per_refit", labels_per_refit)
        check_name("value of `unseen`", unseen, UNSEEN)
        if isinstance(impute, str):
            check_name("value of `impute`", impute, MINIMA)
        else:
            check_real("impute", impute, "(-inf, inf)")
        if as_ints("initial", initial).ndim != 1:
            raise LabelError(f"initial must be a list of state numbers, not {shown(initial)}")
        self.dataset = dataset.without_rewards
        """The transitions, without rewards."""
        self.rule = rule
        """How the learner treats unlabelled states: "uds", "adapted", or the word of another learner."""
        self.gamma = gamma
        """Discount factor of learning."""
        self.budget = budget
        """Number of labels of the episode, initial ones included."""
        self.initial = as_ints("initial", initial)
        """Numbers of the states that were labelled at reset."""
        self.oracle = check_instance("oracle", oracle, str)
        """What the learner knows beyond the rewards that labels reveal; empty unless ``impute="dataset-min"``."""
        self.exploit = exploit
        """How the feature `predecessors` of the observation is computed: "best" or "pooled"."""
        self.labels_per_refit = labels_per_refit
        """Number of labels between two refits of the learner."""
        self.impute = impute
        """UDS: the reward of unlabelled transitions, "min" or "dataset-min"; the number behind a name is not shown."""
        self.unseen = unseen
        """How the learner treats actions that the data never took at a state: "zero" or "exclude"."""
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
        read_only = self._revealed.view()
        read_only.flags.writeable = False
        return read_only

    @property
    def labels_to_choose(self) -> int:
        """Number of labels that the strategy chooses: the budget without the initial labels."""
        return self.budget - len(self.initial)

    def reveal(self, transitions: IntArray, rewards: FloatArray) -> None:
        """Add the rewards of transitions, after checking them; see `add`.

        Raises:
            LabelError: they are not numbers of transitions, or not as many rewards.
        """
        numbers, known, size = as_ints("transitions", transitions), as_reals("rewards", rewards), len(self.dataset)
        if numbers.ndim != 1 or (numbers.size and int(numbers.view(np.uint64).max()) >= size):
            raise LabelError(f"transitions must be a list of transition numbers in 0..{size - 1}")
        if known.shape != numbers.shape:
            raise LabelError(f"there are {numbers.shape} transitions and {known.shape} rewards")
        self.add(numbers, known)

    def add(self, transitions: IntArray, rewards: FloatArray) -> None:
        """Add the rewards of transitions; called by the environment when it labels their states."""
        self._pending.append((transitions, rewards))


def learner_terms(learner: Any) -> dict[str, Any]:
    """Return what a strategy may know about a learner, as keywords of `SelectionView`."""
    unseen = "exclude" if getattr(learner, "exclude_unseen", False) else "zero"
    return {
        "rule": learner.rule,
        "gamma": learner.gamma,
        "impute": getattr(learner, "impute", 0.0),
        "unseen": unseen,
    }
