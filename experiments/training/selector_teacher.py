"""The teacher of selectors: what each label is worth, at once and as a part of the best completion that is known.

Under the adapted rule a single label often gains nothing while several together gain much. The teacher therefore keeps
a plan for the remaining budget: a set of states that it found by backward elimination and improves by exchanges at
every decision. A label is worth what it gains at once, averaged with what the plan would lose without it or, for a
state outside of the plan, gain by it in place of the weakest state of the plan.
"""

from collections.abc import Callable

import numpy as np

from agents.learned.feature_context import FeatureContext
from agents.learned.state_features import ALL_NAMES
from selectenv.env import RewardSelectionEnv
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray

LONGEST = 40
"""Maximum number of decisions per episode."""
BUDGETS = (0.03, 0.95)
"""Smallest and largest budget, as shares of the states that can be labelled."""
MOST_TRIED = 64
"""States that the teacher tries at each decision; in larger worlds, those of the plan and random others."""
SHRINK = 0.75
"""Share of the states that each round of backward elimination keeps."""


class Episode:
    """An episode in a random world, with the teacher's plan."""

    def __init__(
        self,
        source: Callable[[np.random.Generator], SelectionProblem],
        rng: np.random.Generator,
        without: tuple[str, ...],
        ahead: float,
    ) -> None:
        """Draw a problem and begin an episode.

        Args:
            source: where problems come from.
            rng: source of randomness.
            without: names of features that the student does not observe.
            ahead: weight of the plan in what labels are worth; the rest is the gain at once.
        """
        self.env = RewardSelectionEnv(source(rng), BUDGETS)
        self._rng, self._ahead = rng, ahead
        self._obs, self._info = self.env.reset(seed=int(rng.integers(2**31)))
        problem = self.env.problem
        self._context = FeatureContext.of(self.env.view(), without, ALL_NAMES)
        self._low = problem.score(np.zeros(problem.n_states, bool))
        self._span = problem.score(problem.dataset.labelable) - self._low
        self.decisions = 0
        self._weakest = -1
        self._plan = self._backward() if ahead > 0 else np.empty(0, np.int64)

    def features(self) -> Float32Array:
        """Return the features [n, features] that the student observes."""
        return self._context.features(self._obs, self._info)

    def gains(self) -> FloatArray:
        """Return what labelling each state is worth [n], as a share of the range of returns; NaN where not tried."""
        labelled = self.env.labelled_at > 0
        open_states = np.flatnonzero(self.env.action_masks())
        tried = self._tried(open_states)
        found = np.full(len(labelled), np.nan)
        at_once = self._returns(labelled, [np.array([s]) for s in tried])
        found[tried] = at_once - self._returns(labelled, [np.empty(0, np.int64)])[0]
        if self._ahead > 0:
            found[tried] += self._ahead * (self._planned(labelled, tried) - found[tried])
        return found

    def _planned(self, labelled: BoolArray, tried: IntArray) -> FloatArray:
        """Return what each tried state [tried] is worth to the plan, and exchange a state of it if that helps."""
        plan = self._plan
        whole, *without = self._returns(labelled, [plan, *(np.delete(plan, i) for i in range(len(plan)))])
        losses = whole - np.array(without)
        weakest = int(losses.argmin())
        kept = np.delete(plan, weakest)
        worth = np.zeros(len(labelled))
        worth[plan] = losses
        outside = tried[~np.isin(tried, plan)]
        if len(outside):
            worth[outside] = self._returns(labelled, [np.append(kept, s) for s in outside]) - without[weakest]
            best = int(outside[worth[outside].argmax()])
            if worth[best] > losses[weakest] + 1e-9:
                self._plan = np.append(kept, best)
                losses[weakest] = np.inf
        self._weakest = int(plan[losses.argmin()]) if len(plan) > 1 else int(self._plan[0])
        return np.asarray(worth[tried])

    def _tried(self, open_states: IntArray) -> IntArray:
        if len(open_states) <= MOST_TRIED:
            return open_states
        inside = self._rng.permutation(self._plan)[: MOST_TRIED // 2]
        others = self._rng.permutation(np.setdiff1d(open_states, inside))[: MOST_TRIED - len(inside)]
        return np.sort(np.concatenate([inside, others]))

    def _backward(self) -> IntArray:
        """Return as many states as can be labelled: those left when the ones that matter least are dropped."""
        plan, size = np.flatnonzero(self.env.action_masks()), self.env.budget
        labelled = self.env.labelled_at > 0
        while len(plan) > size:
            losses = -self._returns(labelled, [np.delete(plan, i) for i in range(len(plan))])
            keep = max(size, int(SHRINK * len(plan)))
            plan = np.sort(plan[np.argsort(-losses, kind="stable")[:keep]])
        return plan

    def _returns(self, labelled: BoolArray, added: list[IntArray]) -> FloatArray:
        """Return the returns [sets] with sets added to the labels, as shares of the range of returns."""
        masks = np.repeat(labelled[None], len(added), axis=0)
        for mask, states in zip(masks, added, strict=True):
            mask[states] = True
        return np.asarray((self.env.problem.performance_many(masks) - self._low) / self._span)

    def step(self, action: int) -> bool:
        """Label a state; return whether the episode is over."""
        dropped = action if action in self._plan else self._weakest
        self._plan = self._plan[self._plan != dropped]
        self._obs, _, over, _, news = self.env.step(action)
        self._info |= news
        self.decisions += 1
        return bool(over) or self.decisions >= LONGEST
