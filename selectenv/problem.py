"""SelectionProblem = dataset + learner + evaluator: labels -> performance."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selectenv.checks import as_array, as_ints, check_instance, check_int, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.nearest_centre import NearestCentre
from selectenv.domains.layout import Layout, similarity_layout, square_layout
from selectenv.errors import LabelError, NoEvaluatorError, OptionError
from selectenv.evaluation.evaluator import Calls, Evaluator
from selectenv.kernels.threads import in_chunks
from selectenv.learners.base import FitResult, as_learner
from selectenv.learners.tabular.cell_learner import on_cells
from selectenv.typing import BoolArray, FloatArray, IntArray

CACHE_SIZE = 4096
MASK_BYTES = 1 << 26
"""Memory of label sets that are made at once."""


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
        self.learner = on_cells(as_learner(learner), dataset)
        self.evaluator = Evaluator(None) if evaluator is None else check_instance("evaluator", evaluator, Evaluator)
        self.layout = _layout_of(dataset) if layout is None else check_instance("layout", layout, Layout)
        n = dataset.n_states
        self.budget_states = n if budget_states is None else check_int("budget_states", budget_states, 1, n)
        if self.oracle and not dataset.has_rewards:
            raise OptionError(f"the learner knows {self.oracle}, and these data have no rewards to know it from")
        self._cache: OrderedDict[bytes, float] = OrderedDict()
        self._curves: OrderedDict[bytes, LearningCurve] = OrderedDict()
        self._last: list[tuple[bytes, FitResult]] = []

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

    @property
    def revealable(self) -> BoolArray:
        """[n] the states whose label reveals a reward."""
        return self.dataset.revealable

    def actions(self, ids: ArrayLike) -> IntArray:
        """Return the numbers of states given by id."""
        return self.dataset.numbers(ids)

    def with_calls(self, calls: Calls | None = None) -> "SelectionProblem":
        """Return the same problem with call counts and a lock of its own; what is cached is shared."""
        if calls is not None:
            check_instance("calls", calls, Calls)
        evaluator = Evaluator(self.evaluator.engine, self.evaluator.discount, calls, locked=self.evaluator.locked)
        other = SelectionProblem(self.dataset, self.learner, evaluator, self.layout, budget_states=self.budget_states)
        other._cache, other._curves, other._last = self._cache, self._curves, self._last
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

    def record(self, labels: BoolArray, value: float, *, scored: bool) -> None:
        """Count and cache a performance that an environment computed itself; see `disclose` and `score`.

        Args:
            labels: [n] the labelled states, which all occur in the data.
            value: their performance.
            scored: whether it is the score of a judged episode, which is no cost.
        """
        key = _key(labels)
        calls = self.evaluator.counts
        if scored:
            calls.uncounted += 1
        else:
            calls.disclosed += 1
            calls.computed += key not in self._cache
        self._keep(key, value)

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
        self._require_performance()
        if self.learner.chunk_size(self.dataset) == 1:
            return self._performance_one_by_one(masks & self.dataset.labelable)
        return self._performances(len(masks), lambda first, last: masks[first:last])

    @property
    def warm_starts(self) -> bool:
        """Whether `performance_with` is faster than `performance_many`: in large worlds, with tables solved exactly."""
        starts = getattr(self.learner, "warm_starts", None)
        return starts is not None and bool(starts(self.dataset))

    def performance_with(self, labels: Labels, candidates: IntArray) -> FloatArray:
        """Return the performance of label sets that add one state to the same labels; counts one call per set.

        In large worlds, learning starts from the solution for ``labels``; the returns are those of `performance_many`,
        up to rounding errors.

        Args:
            labels: state numbers or a boolean mask [n].
            candidates: [sets] numbers of the states to add, one to each set.

        Returns:
            [sets] performances.
        """
        mask, n = self.mask(labels), self.n_states
        states = as_ints("candidates", candidates)
        if states.ndim != 1 or (states.size and (states.min() < 0 or states.max() >= n)):
            raise LabelError(f"candidates must be a list of state numbers in 0..{n - 1}, not {shown(candidates)}")

        def masks(first: int, last: int) -> BoolArray:
            sets = np.repeat(mask[None], last - first, axis=0)
            sets[np.arange(last - first), states[first:last]] = True
            return sets

        if self.warm_starts:
            return self._performances(len(states), masks, mask)
        step = max(1, MASK_BYTES // n)
        parts = [self.performance_many(masks(i, min(i + step, len(states)))) for i in range(0, len(states) or 1, step)]
        return np.concatenate(parts)

    def _performances(
        self, count: int, masks: Callable[[int, int], BoolArray], similar: BoolArray | None = None
    ) -> FloatArray:
        """Return the performance of ``count`` label sets; learning starts from the solution for ``similar`` [n]."""
        engine, learner = self._require_performance(), cast(Any, self.learner)
        self.evaluator.count(asked=count, computed=count)
        out = np.empty(count)
        data, labelable, rewards = self.dataset, self.dataset.labelable, self.dataset.all_rewards
        start = () if similar is None else (learner.warm_start(data, rewards, similar & labelable),)

        def chunk(first: int, last: int) -> None:
            policies = learner.fit_many(data, rewards, masks(first, last) & labelable, *start)
            out[first:last] = self.evaluator.returns(policies)

        size = max(learner.chunk_size(data), engine.policies_at_once)
        in_chunks(chunk, count, size, parallel=engine.parallel)
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
        for known, fit in self._last:
            if known == key:
                return fit
        fit = self.learner.fit(self.dataset, self.dataset.all_rewards, mask)
        self._last[:] = [(key, fit)]
        return fit

    def _missing(self, mask: BoolArray) -> int:
        """Return 1 if the performance has to be computed, 0 if it is cached."""
        return 0 if _key(mask) in self._cache else 1

    def _value(self, mask: BoolArray) -> float:
        key = _key(mask)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        value = float(np.mean(self._curve(mask).returns))
        self._keep(key, value)
        return value

    def _keep(self, key: bytes, value: float) -> None:
        """Put a performance at the end of the cache, and drop the one that was not asked for longest."""
        self._cache[key] = value
        self._cache.move_to_end(key)
        if len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)

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


def _layout_of(dataset: OfflineDataset) -> Layout:
    """Return where states are drawn if their world does not say so: clusters by their centres."""
    groups = dataset.groups
    if groups is not None and groups.cells is None and isinstance(groups.regions, NearestCentre):
        return similarity_layout(groups.regions.centres, groups.regions.columns)
    return square_layout(dataset.n_states)


def _key(mask: BoolArray) -> bytes:
    """Return the cache key of a label set: a hash, because masks of a million states are large."""
    return hashlib.blake2b(mask.data, digest_size=16).digest()
