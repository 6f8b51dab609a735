"""Plans of whole label sets: which states are worth most together, on average over imagined rewards."""

from collections.abc import Callable, Sequence

import numpy as np

from selectenv.typing import BoolArray, FloatArray, IntArray

Worth = Callable[[BoolArray], FloatArray]
"""Label sets [sets, n] -> what they are worth [sets, particles]."""
SMALL_SPAN = 0.05
"""Share of the usual span of returns below which a particle counts for less."""
SHORTLIST = 16
"""Candidates whose gain is usually computed again in each step of a plan, besides the first."""
MOST_STEPS = 40
"""Steps in which a plan is made; larger plans grow by several states at a time."""
MOST_LOSSES = 40
"""States of a plan whose loss is computed; of larger plans, only the states that matter most alone."""


class SetPlanner:
    """Searches for the set of states to add to the labels so far."""

    def __init__(
        self,
        worth: Worth,
        weights: FloatArray,
        labelled: BoolArray,
        open_states: BoolArray,
        candidates: IntArray,
        importance: FloatArray,
    ) -> None:
        """Prepare plans.

        Args:
            worth: what label sets are worth under each particle.
            weights: [particles] probability of each particle.
            labelled: [n] the labels so far.
            open_states: [n] the states that can still be labelled.
            candidates: the open states that plans consider, at least as many as a plan has.
            importance: [n] how much each state seems to matter alone.
        """
        self._worth, self.labelled, self.candidates = worth, labelled, candidates
        self._weights, self._importance = weights, importance
        bounds = worth(np.stack([labelled, labelled | open_states]))
        self._low, span = bounds[0], bounds[1] - bounds[0]
        self._scale = np.maximum(span, 0.0) + SMALL_SPAN * max(float(np.median(np.abs(span))), 1e-9)
        self.evaluated = 0
        """Number of label sets evaluated so far."""

    def utilities(self, plans: Sequence[IntArray]) -> FloatArray:
        """Return the utility [plans] of adding each plan to the labels: 0 for nothing, about 1 for everything."""
        return np.asarray(self.by_particle(plans) @ self._weights)

    def by_particle(self, plans: Sequence[IntArray]) -> FloatArray:
        """Return the utility [plans, particles] that adding each plan to the labels has under each particle."""
        masks = np.repeat(self.labelled[None], len(plans), axis=0)
        for mask, plan in zip(masks, plans, strict=True):
            mask[plan] = True
        self.evaluated += len(plans)
        return np.asarray((self._worth(masks) - self._low) / self._scale)

    def forward(self, size: int, shortlist: int = SHORTLIST) -> IntArray:
        """Return ``size`` states, each of which adds most to those before it; gains are updated lazily.

        Args:
            size: number of states.
            shortlist: candidates whose gain is computed again in each step, besides the first.
        """
        plan = np.empty(0, np.int64)
        gains = self.utilities([np.array([s]) for s in self.candidates])
        current, at_once = 0.0, -(-size // MOST_STEPS)
        while len(plan) < size:
            if len(plan):
                likely = np.argsort(-gains, kind="stable")[: shortlist + at_once]
                gains[likely] = self.utilities([np.append(plan, self.candidates[i]) for i in likely]) - current
            best = np.argsort(-gains, kind="stable")[: min(at_once, size - len(plan))]
            plan = np.append(plan, self.candidates[best])
            current = current + gains[best[0]] if len(best) == 1 else self.utilities([plan])[0]
            gains[best] = -np.inf
        return plan

    def extend(self, plan: IntArray, size: int) -> IntArray:
        """Return the plan, with the states added that add most to it, one after the other."""
        while len(plan) < size:
            outside = np.setdiff1d(self.candidates, plan)
            plan = np.append(plan, outside[self.utilities([np.append(plan, s) for s in outside]).argmax()])
        return plan

    def backward(self, size: int, shrink: float = 0.75) -> IntArray:
        """Return ``size`` states: those left when states whose loss matters least are dropped, many at a time."""
        plan = self.candidates.copy()
        while len(plan) > size:
            utilities = self.utilities([plan, *(np.delete(plan, i) for i in range(len(plan)))])
            losses = utilities[0] - utilities[1:]
            keep = max(size, int(shrink * len(plan)))
            plan = np.sort(plan[np.argsort(-losses, kind="stable")[:keep]])
        return plan

    def losses(self, plan: IntArray) -> FloatArray:
        """Return how much utility the plan loses without each of its states [plan]; 0 where that is not computed."""
        tried = np.argsort(-self._importance[plan], kind="stable")[:MOST_LOSSES]
        utilities = self.utilities([plan, *(np.delete(plan, i) for i in tried)])
        losses = np.zeros(len(plan))
        losses[tried] = utilities[0] - utilities[1:]
        return losses

    def improve(self, plan: IntArray, evaluations: int, rng: np.random.Generator) -> IntArray:
        """Exchange the weakest states of a plan while that helps and evaluations are left."""
        limit, plan = self.evaluated + evaluations, plan.copy()
        current = self.utilities([plan])[0]
        outside = np.setdiff1d(self.candidates, plan)
        failures = 0
        while len(outside) and self.evaluated < limit and failures < 3:
            losses = self.losses(plan)
            weakest = int(np.argsort(losses, kind="stable")[min(failures, len(plan) - 1)])
            tried = rng.permutation(outside)[: max(1, min(len(outside), limit - self.evaluated))]
            swapped = [np.append(np.delete(plan, weakest), s) for s in tried]
            utilities = self.utilities(swapped)
            best = int(utilities.argmax())
            if utilities[best] > current + 1e-9:
                plan, current, failures = swapped[best], utilities[best], 0
                outside = np.setdiff1d(self.candidates, plan)
            else:
                failures += 1
        return plan
