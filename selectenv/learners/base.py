"""The interface of learners from limited feedback: a dataset and partly known rewards in, a policy out."""

from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from selectenv.checks import check_instance, check_real, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import LearnerError, PolicyError
from selectenv.policies import Policy, PolicyBatch, PolicyList, TablePolicies, TablePolicy, asked, known
from selectenv.typing import BoolArray, FloatArray, IntArray

CHUNK = 64
"""Label sets per call of `fit_many` for learners without a `chunk_size`."""
STATES_AT_ONCE = 4096
"""States whose observations are passed to a policy together."""


class FitResult:
    """The result of a fit: a policy and, if the learner has them, action values."""

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
        """Create a result.

        Args:
            policy: the learned policy.
            q: [n, actions] action values at the dataset's states, NaN for excluded actions; None if there are none.
            values: [n] state values; the maximum over ``q`` by default.
            table: [n, actions] the policy at the dataset's states, if it has been computed already.
            runs: the policies of independent training runs, whose returns are averaged; the policy alone by default.
            dataset: the data that were learned from; `SelectionProblem.learn` fills it in.
        """
        if not isinstance(runs, tuple | list):
            raise LearnerError(f"runs must be a tuple of policies, not {shown(runs)}")
        self.policy: Policy = policy
        self.runs: tuple[Policy, ...] = tuple(runs) or (policy,)
        for one in (policy, *runs):
            if not hasattr(one, "probabilities"):
                raise LearnerError(
                    f"a policy needs a method probabilities(states, observations), and {shown(one)} has none"
                )
        self._q, self._values, self._table = q, values, table
        for name, array, dimensions in (("q", q, 2), ("values", values, 1), ("table", table, 2)):
            if array is None:
                continue
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.ndim != dimensions:
                raise LearnerError(f"{name} must be an array of float64 with {dimensions} axes, not {shown(array)}")
            array.flags.writeable = False  # it is handed out without copies
        self.dataset: OfflineDataset | None = None
        if dataset is not None:
            self.attach(check_instance("dataset", dataset, OfflineDataset))

    def attach(self, dataset: OfflineDataset) -> None:
        """Set the dataset that was learned from.

        Raises:
            LearnerError: the shapes of the arrays do not fit the dataset.
        """
        n, actions = dataset.n_states, dataset.n_actions
        for array, shape in ((self._q, (n, actions)), (self._values, (n,)), (self._table, (n, actions))):
            if array is not None and array.shape != shape:
                raise LearnerError(f"q and table must have shape {(n, actions)}, values {(n,)}, not {array.shape}")
        self.dataset = dataset

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

    def over_cells(self) -> "FitResult":
        """Return the same policy at the states of tables, which are not those of the data if groups are episodes."""
        cells = self._data.cells
        return self if cells is self._data else FitResult(self.policy, runs=self.runs, dataset=cells)

    @property
    def batch(self) -> PolicyBatch:
        """The policies whose mean return is the performance, ready for an evaluator: those of all training runs."""
        return PolicyList(self.runs) if self._table is None else TablePolicies(self._table[None, :, :, None], 1)

    @property
    def updates(self) -> IntArray:
        """[evaluations] the numbers of updates after which the policies of `batch` were learned, equal in all runs.

        A single 0 if the learner makes no updates.
        """
        return np.zeros(1, np.int64)

    def _tabulated(self, policy: Policy) -> FloatArray:
        data = self._data
        groups, base = data.groups, data.base
        if base.observations is None:
            table = PolicyList([policy]).tables(data.n_states)[0, :, :, 0]
        else:
            parts = []
            for first in range(0, base.n_states, STATES_AT_ONCE):
                states = np.arange(first, min(first + STATES_AT_ONCE, base.n_states))
                cells = states if groups is None else groups.cell[states].astype(np.int64)
                parts.append(known(asked(policy, cells, base.observations[states])))
            table = np.concatenate(parts)
            if groups is not None:
                table = data.means_by_state(table[base.state])
                table[~data.labelable] = 1 / data.n_actions
        if table.shape[1] != data.n_actions:
            raise PolicyError(f"{shown(policy)} chooses among {table.shape[1]} actions; the data have {data.n_actions}")
        return table

    @property
    def _data(self) -> OfflineDataset:
        if self.dataset is None:
            raise LearnerError("this result does not know its dataset: get it from problem.learn(labels)")
        return self.dataset


class TableFit(FitResult):
    """The result of a tabular learner, without the checks that arrays from elsewhere need: it is made at every step."""

    def __init__(self, table: FloatArray, q: FloatArray, values: FloatArray, dataset: OfflineDataset) -> None:
        """Create a result from a policy and action values [n, actions] and values [n]; the arrays become read-only."""
        table.flags.writeable = q.flags.writeable = values.flags.writeable = False
        self.policy = policy = TablePolicy(table)
        self.runs = (policy,)
        self._q, self._values, self._table, self.dataset = q, values, table, dataset


class Learner(Protocol):
    """The interface of a learner. Learning is a function of the dataset, the rewards and the labels alone.

    A custom learner needs only `fit(dataset, rewards)`; `as_learner` supplies the rest.
    """

    @property
    def rule(self) -> str:
        """How unlabelled states are treated: "uds", "adapted", or another name."""

    @property
    def gamma(self) -> float:
        """Discount factor of learning."""

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return how many label sets one thread learns from in one call of `fit_many`.

        1 marks a slow learner: performances are then looked up in the cache before anything is fitted.
        """

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> FitResult:
        """Learn a policy, and return it with its action values.

        Args:
            dataset: the transitions.
            rewards: [size] NaN where unknown.
            labels: [n] states whose rewards may be used; by default all states with a known reward.
        """

    def fit_many(self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> PolicyBatch:
        """Learn one policy per label set ``masks`` [sets, n] from the ``rewards`` [size] of its states."""


class LearnerAdapter:
    """Adapter from any object with `fit(dataset, rewards)` to a `Learner`; unrelated to the adapted rule."""

    def __init__(self, learner: Any, *, gamma: float = 0.99) -> None:
        """Complete ``learner``.

        Args:
            learner: has `fit(dataset, rewards) -> Policy | FitResult` and optionally `fit_many`.
            gamma: discount factor, unless the learner has an attribute of this name.

        Raises:
            LearnerError: the object has no method `fit`.
        """
        if not callable(getattr(learner, "fit", None)) or isinstance(learner, type):
            raise LearnerError(f"a learner needs a method fit(dataset, rewards), and {shown(learner)} has none")
        self.learner = learner
        self.rule = str(getattr(learner, "rule", "own"))
        self.gamma = check_real("the learner's gamma", getattr(learner, "gamma", gamma), "[0, 1]")
        self._many = getattr(learner, "fit_many", None)

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return 1 for learners that fit one label set at a time."""
        return 1 if self._many is None else CHUNK

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> FitResult:
        """Learn a policy; the learner sees the reward-free dataset and the rewards of labelled states."""
        if labels is not None:
            rewards = np.where(labels[dataset.state], rewards, np.nan)
        found = self.learner.fit(dataset.without_rewards, rewards)
        is_policy = not isinstance(found, type) and isinstance(found, FitResult | _HasProbabilities)
        if not is_policy:
            raise LearnerError(
                f"{type(self.learner).__name__}.fit must return a policy with a method probabilities(states, "
                f"observations), or a FitResult with one; it returned {shown(found)}"
            )
        result = found if isinstance(found, FitResult) else FitResult(found)
        result.attach(dataset)
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


def as_learner(learner: Any) -> Learner:
    """Return ``learner`` as a full `Learner`; an object that has `fit` only is completed.

    Raises:
        LearnerError: the object has no method `fit`.
    """
    complete = all(hasattr(learner, name) for name in ("rule", "gamma", "chunk_size", "fit_many"))
    whole = complete and callable(getattr(learner, "fit", None)) and not isinstance(learner, type)
    return learner if whole else LearnerAdapter(learner)
