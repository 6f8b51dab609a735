"""What a learner from limited feedback is: a dataset and partly known rewards in, a policy out."""

from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import LearnerError
from selectenv.policies import Policy, PolicyBatch, PolicyList, TablePolicies, known
from selectenv.typing import BoolArray, FloatArray

CHUNK = 64
"""Label sets per call of somebody else's `fit_many`."""
STATES_AT_ONCE = 4096
"""States whose observations are passed to a policy together."""


class FitResult:
    """What a learner made of a dataset: a policy and, where the learner has them, action values."""

    def __init__(
        self,
        policy: Policy,
        q: FloatArray | None = None,
        values: FloatArray | None = None,
        *,
        table: FloatArray | None = None,
        runs: tuple[Policy, ...] = (),
        dataset: OfflineDataset | None = None,
    ) -> None:
        """Keep a policy and its values.

        Args:
            policy: the learned policy.
            q: [n, actions] action values at the dataset's states, NaN for excluded actions; None if there are none.
            values: [n] state values; the maximum over ``q`` by default.
            table: [n, actions] the policy at the dataset's states, if it is known already; computed by default.
            runs: the policies of independent training runs, whose returns are averaged; the policy alone by default.
            dataset: the data that were learned from; `SelectionProblem.learn` fills it in.
        """
        self.policy = policy
        self.runs = runs or (policy,)
        self._q, self._values, self._table, self.dataset = q, values, table, dataset
        for array in (q, values, table):  # handed out without copies
            if array is not None:
                array.flags.writeable = False

    @property
    def q(self) -> FloatArray | None:
        """[n, actions] action values; None if the learner has none."""
        return self._q

    @cached_property
    def values(self) -> FloatArray:
        """[n] state values; 0 if the learner has no action values."""
        if self._values is not None:
            return self._values
        q = self.q
        if q is None:
            return np.zeros(self._data.n_states)
        best = np.where(np.isnan(q), -np.inf, q).max(axis=1)
        return np.where(np.isfinite(best), best, 0.0)

    @cached_property
    def table(self) -> FloatArray:
        """[n, actions] action probabilities at the dataset's states, averaged over training runs; read-only."""
        if self._table is not None:
            return self._table
        table: FloatArray = np.mean([self._tabulated(policy) for policy in self.runs], axis=0)
        table.flags.writeable = False
        return table

    @property
    def batch(self) -> PolicyBatch:
        """The policies of all training runs, ready for an evaluator."""
        return PolicyList(self.runs) if self._table is None else TablePolicies(self._table[None, :, :, None], 1)

    def _tabulated(self, policy: Policy) -> FloatArray:
        data = self._data
        if data.images is None:
            return known(policy.probabilities(np.arange(data.n_states)))
        parts = []
        for first in range(0, data.n_states, STATES_AT_ONCE):
            states = np.arange(first, min(first + STATES_AT_ONCE, data.n_states))
            parts.append(known(policy.probabilities(states, data.images[states])))
        return np.concatenate(parts)

    @property
    def _data(self) -> OfflineDataset:
        if self.dataset is None:
            raise LearnerError("this result does not know its dataset: get it from problem.learn(labels)")
        return self.dataset


class Learner(Protocol):
    """What the package asks of a learner. Learning is a function of the dataset, the rewards and the labels alone.

    A learner of one's own needs `fit(dataset, rewards)` only; `adapt` supplies the rest.
    """

    @property
    def rule(self) -> str:
        """How unlabelled states are treated: "uds", "adapted", or another word."""

    @property
    def gamma(self) -> float:
        """Discount factor of learning."""

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return how many label sets one thread learns from in one call of `fit_many`.

        1 says that a fit takes so long that looking up known label sets first is worthwhile.
        """

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> FitResult:
        """Learn a policy.

        Args:
            dataset: the transitions.
            rewards: [size] NaN where unknown.
            labels: [n] states whose rewards may be used; by default all states with a known reward.
        """

    def fit_many(self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> PolicyBatch:
        """Learn one policy per label set ``masks`` [sets, n] from the ``rewards`` [size] of its states."""


class AdaptedLearner:
    """Any object with `fit(dataset, rewards)`, completed to a `Learner`."""

    def __init__(self, learner: Any, *, gamma: float = 0.99) -> None:
        """Complete ``learner``.

        Args:
            learner: has `fit(dataset, rewards) -> Policy | FitResult` and, if it can, `fit_many`.
            gamma: discount factor, unless the learner has an attribute of this name.

        Raises:
            LearnerError: the object has no method `fit`.
        """
        if not callable(getattr(learner, "fit", None)):
            raise LearnerError(f"a learner needs a method fit(dataset, rewards), and {learner!r} has none")
        self.learner = learner
        self.rule = str(getattr(learner, "rule", "own"))
        self.gamma = float(getattr(learner, "gamma", gamma))
        self._many = getattr(learner, "fit_many", None)

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return 1 for learners that fit one label set at a time."""
        return 1 if self._many is None else CHUNK

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> FitResult:
        """Learn a policy; the learner sees the reward-free dataset and the rewards of labelled states."""
        if labels is not None:
            rewards = np.where(labels[dataset.state], rewards, np.nan)
        found = self.learner.fit(dataset.without_rewards, rewards)
        result = found if isinstance(found, FitResult) else FitResult(found)
        if not isinstance(result.policy, _HasProbabilities):
            raise LearnerError(
                f"{self.learner!r}.fit must return a policy with a method probabilities(states, observations), or a "
                f"FitResult with one; it returned {found!r}"
            )
        result.dataset = dataset
        return result

    def fit_many(self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> PolicyBatch:
        """Learn one policy per label set [sets, n]."""
        if self._many is not None:
            batch: PolicyBatch = self._many(dataset.without_rewards, rewards, masks)
            return batch
        return PolicyList([self.fit(dataset, rewards, mask).policy for mask in masks])


@runtime_checkable
class _HasProbabilities(Protocol):
    def probabilities(self, states: Any, observations: Any = None) -> Any: ...


def adapt(learner: Any) -> Learner:
    """Return ``learner`` as a full `Learner`; an object that has `fit` only is completed.

    Raises:
        LearnerError: the object has no method `fit`.
    """
    complete = all(hasattr(learner, name) for name in ("rule", "gamma", "chunk_size", "fit_many"))
    return learner if complete and callable(getattr(learner, "fit", None)) else AdaptedLearner(learner)
