"""SelectionProblem = dataset + learner + evaluator: labels -> performance."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selectenv.checks import as_array
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.layout import Layout, square_layout
from selectenv.errors import LabelError, NoEvaluatorError
from selectenv.evaluation.evaluator import Calls, Evaluator
from selectenv.kernels.threads import in_chunks
from selectenv.learners import Learned, Learner, PlayerLearner
from selectenv.typing import BoolArray, FloatArray, IntArray

CACHE_SIZE = 4096
Labels = Iterable[int] | BoolArray | IntArray


class SelectionProblem:
    """Which states should be labelled? The value of an answer is `performance`.

    Performance is a function of the label set: every set is learned from scratch. Labels on states that the data never
    saw are legal and change nothing.
    """

    def __init__(
        self,
        dataset: OfflineDataset,
        learner: Learner,
        evaluator: Evaluator | None = None,
        layout: Layout | None = None,
        *,
        counted: int | None = None,
    ) -> None:
        """Join a dataset, a learner on it and, where there is a world, an evaluator and a layout to draw in.

        Args:
            dataset: the data.
            learner: learns from their labelled states.
            evaluator: counts and computes returns; none without a world.
            layout: where states are drawn.
            counted: the states that a share of the budget is a share of; all n of them if left out.
        """
        self.dataset, self.learner = dataset, learner
        self.evaluator = Evaluator(None) if evaluator is None else evaluator
        self.layout = square_layout(dataset.n_states) if layout is None else layout
        self.counted = dataset.n_states if counted is None else counted
        self._cache: OrderedDict[bytes, float] = OrderedDict()
        self._last: tuple[bytes, Learned] | None = None

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

    def view(self, counts: Calls | None = None) -> "SelectionProblem":
        """Return the same problem with call counts and a lock of its own; the cache is shared."""
        evaluator = Evaluator(self.evaluator.engine, self.evaluator.discount, counts, locked=self.evaluator.locked)
        other = SelectionProblem(self.dataset, self.learner, evaluator, self.layout, counted=self.counted)
        other._cache = self._cache
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

    def learn(self, labels: Labels) -> Learned:
        """Return what the learner makes of the labels."""
        mask = self.mask(labels) & self.dataset.labelable
        if mask.any() and not self.dataset.has_rewards:
            raise NoEvaluatorError("this dataset has no rewards, so nothing can be learned from labels")
        key = _key(mask)
        if self._last is None or self._last[0] != key:
            self._last = key, self.learner.learn(mask)
        return self._last[1]

    def performance(self, labels: Labels) -> float:
        """Return the expected return of the policy learned from the labels; counts as one evaluator call."""
        self._require_performance()
        mask = self.mask(labels) & self.dataset.labelable
        self.evaluator.ask(1, computed=0 if _key(mask) in self._cache else 1)
        return self._value(mask)

    def performance_many(self, masks: BoolArray) -> FloatArray:
        """Return the performance of many label sets in one compiled, parallel pass; counts a call for each.

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
        labelable = self.dataset.labelable
        if isinstance(self.learner, PlayerLearner):  # a set costs minutes: none is learned twice
            wanted = {_key(mask): mask for mask in masks & labelable}
            missing = [mask for key, mask in wanted.items() if key not in self._cache]
            self.evaluator.ask(len(masks), len(missing))

            def learn(first: int, last: int) -> None:
                for mask in missing[first:last]:
                    self._value(mask)

            in_chunks(learn, len(missing), 1)
            return np.array([self._value(mask) for mask in masks & labelable])
        self.evaluator.ask(len(masks), len(masks))
        out = np.empty(len(masks))

        def chunk(first: int, last: int) -> None:
            policies = self.learner.learn_policies(masks[first:last] & labelable)
            out[first:last] = self.evaluator.returns(policies).ravel()[: last - first]

        size = max(self.learner.sets_per_chunk, self.evaluator.sets_at_once)
        in_chunks(chunk, len(masks), size, parallel=self.evaluator.parallel)
        return out

    def score(self, labels: Labels) -> float:
        """Return the performance for the record: the final score of an episode, or a monitor's look. Costs no call."""
        self._require_performance()
        self.evaluator.counts.scored += 1
        return self._value(self.mask(labels) & self.dataset.labelable)

    @property
    def has_performance(self) -> bool:
        """Whether there is a world to evaluate in and there are rewards to learn from."""
        return self.evaluator.available and self.dataset.has_rewards

    def _require_performance(self) -> None:
        if not self.evaluator.available:
            raise NoEvaluatorError("performance needs an evaluator: this problem was made from data without a world")
        if not self.dataset.has_rewards:
            raise NoEvaluatorError("performance needs rewards: this dataset has none")

    def _value(self, mask: BoolArray) -> float:
        key = _key(mask)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        if isinstance(self.learner, PlayerLearner):
            value = self.evaluator.player_return(self.learner.players(mask))
        else:
            value = float(self.evaluator.returns(self.learn(mask).policy[None, :, :, None])[0, 0])
        self._cache[key] = value
        if len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return value


def _key(mask: BoolArray) -> bytes:
    """Return what stands for a label set in the cache: a hash, for sets of a million states are no small keys."""
    return hashlib.blake2b(mask.data, digest_size=16).digest()
