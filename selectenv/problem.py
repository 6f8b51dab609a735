"""SelectionProblem = dataset + learner + evaluator: labels -> performance."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selectenv.checks import as_array, check_instance, check_int
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.layout import Layout, square_layout
from selectenv.errors import LabelError, NoEvaluatorError, OptionError
from selectenv.evaluation.evaluator import Calls, Evaluator
from selectenv.kernels.threads import in_chunks
from selectenv.learners.base import FitResult, as_learner
from selectenv.typing import BoolArray, FloatArray, IntArray

CACHE_SIZE = 4096


class LearningCurve(NamedTuple):
    """Returns of the policies that a learner passes through; their mean is the performance."""

    updates: IntArray
    """[evaluations] number of updates after which each policy was learned; a single 0 if the learner makes none."""
    returns: FloatArray
    """[runs, evaluations]"""


Labels = Iterable[int] | BoolArray | IntArray


class SelectionProblem:
    """Maps a set of labelled states to its `performance`: the expected return of the policy learned from it.

    Performance is a function of the label set alone, because every set is learned from scratch. Labels on states
    that the data never visit are legal and change nothing.
    """

    def __init__(
        self,
        dataset: OfflineDataset,
        learner: Any,
        evaluator: Evaluator | None = None,
        layout: Layout | None = None,
        *,
        budget_states: int | None = None,
    ) -> None:
        """Join a dataset, a learner and, where there is a world, an evaluator and a layout to draw in.

        Args:
            dataset: the data.
            learner: a `Learner`, or any object with `fit(dataset, rewards)`.
            evaluator: counts and computes returns; None without a world.
            layout: where states are drawn.
            budget_states: the number of states that a fractional budget refers to; all n by default.

        Raises:
            OptionError: the learner imputes the smallest reward of the dataset, which has none.
        """
        self.dataset = check_instance("dataset", dataset, OfflineDataset)
        self.learner = as_learner(learner)
        self.evaluator = Evaluator(None) if evaluator is None else check_instance("evaluator", evaluator, Evaluator)
        self.layout = square_layout(dataset.n_states) if layout is None else check_instance("layout", layout, Layout)
        n = dataset.n_states
        self.budget_states = n if budget_states is None else check_int("budget_states", budget_states, 1, n)
        if self.oracle and not dataset.has_rewards:
            raise OptionError(f"the learner knows {self.oracle}, and these data have no rewards to know it from")
        self._cache: OrderedDict[bytes, float] = OrderedDict()
        self._curves: OrderedDict[bytes, LearningCurve] = OrderedDict()
        self._last: tuple[bytes, FitResult] | None = None

    def __repr__(self) -> str:
        """Return one line: the data, the learner and whether there is an evaluator."""
        evaluator = type(self.evaluator.engine).__name__ if self.evaluator.available else "no evaluator"
        return f"<SelectionProblem: {self.dataset!r}, {type(self.learner).__name__} ({self.learner.rule}), {evaluator}>"

    @property
    def oracle(self) -> str:
        """What the learner knows beyond the rewards that labels reveal; empty unless ``impute="dataset-min"``."""
        return str(getattr(self.learner, "oracle", ""))

    @property
    def n_states(self) -> int:
        """Number of states, n; they have the numbers 0..n-1."""
        return self.dataset.n_states

    @property
    def states(self) -> NDArray[Any]:
        """[n] the world's own id of each state."""
        return self.dataset.ids

    def actions(self, ids: ArrayLike) -> IntArray:
        """Return the numbers of states given by id."""
        return self.dataset.numbers(ids)

    def with_calls(self, calls: Calls | None = None) -> "SelectionProblem":
        """Return the same problem with call counts and a lock of its own; the cache is shared."""
        if calls is not None:
            check_instance("calls", calls, Calls)
        evaluator = Evaluator(self.evaluator.engine, self.evaluator.discount, calls, locked=self.evaluator.locked)
        other = SelectionProblem(self.dataset, self.learner, evaluator, self.layout, budget_states=self.budget_states)
        other._cache, other._curves = self._cache, self._curves
        return other

    def mask(self, labels: Labels) -> BoolArray:
        """Return which states [n] are labelled, from state numbers or from a boolean mask.

        Raises:
            LabelError: labels of another type, shape or range.
        """
        n = self.n_states
        given = as_array("labels", labels)
        if given.dtype == np.bool_ and given.shape == (n,):
            return np.array(given, np.bool_)
        if given.size == 0 and given.ndim == 1:
            return np.zeros(n, bool)
        if given.dtype.kind not in "iu" or given.ndim != 1:
            raise LabelError(
                f"labels must be state numbers or a boolean mask of shape ({n},), not {given.dtype}{given.shape}"
            )
        if given.min() < 0 or given.max() >= n:
            wrong = given[(given < 0) | (given >= n)][0]
            raise LabelError(
                f"there is no state number {wrong}: they lie in 0..{n - 1}; for ids use `problem.actions(ids)`"
            )
        mask = np.zeros(n, bool)
        mask[given] = True
        return mask

    def learn(self, labels: Labels, previous: FitResult | None = None) -> FitResult:
        """Return the policy and the values that the learner finds with the labels.

        Args:
            labels: state numbers or a boolean mask [n].
            previous: the result for earlier labels. A learner with ``warm_start=True`` continues from it; the
                performance of labels is always that of learning from scratch.

        Raises:
            NoEvaluatorError: the dataset has no rewards, and there are labels.
        """
        mask = self.mask(labels) & self.dataset.labelable
        if not self.dataset.has_rewards and mask.any():
            raise NoEvaluatorError("this dataset has no rewards, so nothing can be learned from labels")
        fit_from = getattr(self.learner, "fit_from", None)
        warm: FitResult | None = None
        if previous is not None and fit_from is not None:
            warm = fit_from(previous, self.dataset, self.dataset.all_rewards, mask)
        return self._fit(mask) if warm is None else warm

    def performance(self, labels: Labels) -> float:
        """Return the expected return of the policy learned from the labels; counts as one evaluator call."""
        self._require_performance()
        mask = self.mask(labels) & self.dataset.labelable
        self.evaluator.count(asked=1, computed=self._missing(mask))
        return self._value(mask)

    def learning_curve(self, labels: Labels) -> LearningCurve:
        """Return the returns behind the performance of the labels, one by one; counts as one evaluator call.

        With ``evaluations=10``, the last column is the return of the last weights, and the mean is the performance.
        """
        self._require_performance()
        mask = self.mask(labels) & self.dataset.labelable
        self.evaluator.count(asked=1, computed=0 if _key(mask) in self._curves else 1)
        return self._curve(mask)

    def disclose(self, labels: Labels) -> float:
        """Return the performance that an environment pays as a reward; counts as disclosed, not as asked for."""
        self._require_performance()
        mask = self.mask(labels) & self.dataset.labelable
        self.evaluator.count(disclosed=1, computed=self._missing(mask))
        return self._value(mask)

    def performance_many(self, masks: BoolArray) -> FloatArray:
        """Return the performance of many label sets in one compiled, parallel pass; counts one call per set.

        Args:
            masks: [sets, n] boolean.

        Returns:
            [sets] performances.
        """
        if (
            not isinstance(masks, np.ndarray)
            or masks.dtype != np.bool_
            or masks.ndim != 2
            or masks.shape[1] != self.n_states
        ):
            got = f"{masks.dtype}{masks.shape}" if isinstance(masks, np.ndarray) else type(masks).__name__
            raise LabelError(f"masks must be a boolean array of shape (sets, {self.n_states}), not {got}")
        engine = self._require_performance()
        size = self.learner.chunk_size(self.dataset)
        if size == 1:
            return self._performance_one_by_one(masks & self.dataset.labelable)
        self.evaluator.count(asked=len(masks), computed=len(masks))
        out = np.empty(len(masks))
        labelable, rewards = self.dataset.labelable, self.dataset.all_rewards

        def chunk(first: int, last: int) -> None:
            policies = self.learner.fit_many(self.dataset, rewards, masks[first:last] & labelable)
            out[first:last] = self.evaluator.returns(policies)

        in_chunks(chunk, len(masks), max(size, engine.policies_at_once), parallel=engine.parallel)
        return out

    def _performance_one_by_one(self, masks: BoolArray) -> FloatArray:
        """Return the performance [sets] for a slow learner; no label set is learned from twice."""
        wanted = {_key(mask): mask for mask in masks}
        missing = [mask for key, mask in wanted.items() if key not in self._cache]
        self.evaluator.count(asked=len(masks), computed=len(missing))

        def learn(first: int, last: int) -> None:
            for mask in missing[first:last]:
                self._value(mask)

        in_chunks(learn, len(missing), 1)
        return np.array([self._value(mask) for mask in masks])

    def score(self, labels: Labels) -> float:
        """Return the performance at no cost: for scores of judged episodes, and for monitors."""
        self._require_performance()
        self.evaluator.count(uncounted=1)
        return self._value(self.mask(labels) & self.dataset.labelable)

    @property
    def has_performance(self) -> bool:
        """Whether there is a world to evaluate in and there are rewards to learn from."""
        return self.evaluator.available and self.dataset.has_rewards

    def _require_performance(self) -> Any:
        if not self.evaluator.available:
            raise NoEvaluatorError(
                "performance cannot be computed without a world, and this problem was made from data alone; all other "
                "methods work"
            )
        if not self.dataset.has_rewards:
            raise NoEvaluatorError("performance needs rewards, and this dataset has none")
        return self.evaluator.engine

    def _fit(self, mask: BoolArray) -> FitResult:
        key = _key(mask)
        last = self._last
        if last is None or last[0] != key:
            last = self._last = key, self.learner.fit(self.dataset, self.dataset.all_rewards, mask)
        return last[1]

    def _missing(self, mask: BoolArray) -> int:
        """Return 1 if the performance has to be computed, 0 if it is cached."""
        return 0 if _key(mask) in self._cache else 1

    def _value(self, mask: BoolArray) -> float:
        key = _key(mask)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        value = float(np.mean(self._curve(mask).returns))
        self._cache[key] = value
        if len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return value

    def _curve(self, mask: BoolArray) -> LearningCurve:
        key = _key(mask)
        curve = self._curves.get(key)
        if curve is None:
            fit = self._fit(mask)
            returns = self.evaluator.returns(fit.batch)
            curve = self._curves[key] = LearningCurve(fit.updates, returns.reshape(-1, len(fit.updates)))
            if len(self._curves) > CACHE_SIZE:
                self._curves.popitem(last=False)
        return curve


def _key(mask: BoolArray) -> bytes:
    """Return the cache key of a label set: a hash, because masks of a million states are large."""
    return hashlib.blake2b(mask.data, digest_size=16).digest()
