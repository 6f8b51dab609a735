"""exact: the best label set with a certificate, or the best set found with a proven bound.

Best-first branch and bound over the sets of exactly B labels. Each node includes some states, excludes others, and
carries an upper bound on the return of every set below it. Nodes whose bound is not better than the best set found are
pruned; small nodes are enumerated. The certificate is based on these facts:

1. *World bound.* For any labels, the learned policy is a policy of the true world, so its return is at most the
   finite-horizon optimum there (computed over time-dependent policies, which can only be better). The optimum of the
   empirical model is not a bound, because label sets are evaluated in the true world.
2. *Irrelevant labels.* UDS with imputed reward 0, solved exactly, uses only the rewards of labelled states. A label on
   a state whose observed rewards are all 0 does not change its input. Only rewarding states are therefore branched on,
   and irrelevant ones fill up the set: a set is determined by its rewarding states, of which it has at least B minus
   the number of irrelevant states. (The sampled learner derives the order of its samples from the label set: for it,
   all states are branched on.)
3. *Uniform states.* Under UDS with imputed reward 0, if no state that is or may still be labelled with a reward can be
   reached from a state in the empirical model, all rewards collected from there are 0. All action values of the state
   are then exactly 0, all its actions tie, and the policy is uniform over them. The bound of a node makes such states
   act uniformly and lets all others choose freely: a maximum over a set of policies that contains the learned one.
4. *Cloning states.* Under the adapted rule an unlabelled state follows the action frequencies of the data. The bound of
   a node makes the excluded states follow them and lets all others choose freely.
5. *Optimality.* A set whose return equals an upper bound of all others is optimal, and the search stops.

If a limit on time or evaluations is reached, the largest bound among the open nodes is still an upper bound for all
sets, and the best set found is proved to be within its distance to that bound.
"""

import heapq
import itertools
import time
from dataclasses import dataclass
from math import comb

import numpy as np

from agents.base import Taxonomy
from agents.registry import register
from agents.search.brute_force import rewarding_states
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from agents.search.sequential_greedy import SequentialGreedy
from agents.search.swap_search import climb
from selectenv.checks import check_int, check_real
from selectenv.errors import OptionError
from selectenv.evaluation import ExactReturns
from selectenv.kernels.tabular.returns import best_values
from selectenv.kernels.tabular.subsets import combination, fill_masks
from selectenv.learners import ExactLearner, SampledLearner
from selectenv.typing import BoolArray, FloatArray, IntArray

LEAF, SLOW_LEAF = 1 << 15, 128
"""Nodes with at most this many sets are enumerated; SLOW_LEAF applies where one evaluation takes milliseconds."""
TOLERANCE = 1e-9


class Bound:
    """Upper bounds on the return of label sets, from the states that may still be labelled."""

    def __init__(self, task: SearchTask) -> None:
        """Prepare the bounds of a problem.

        Raises:
            OptionError: there are no bounds for this evaluator or learner.
        """
        engine, learner = task.problem.evaluator.engine, task.problem.learner
        if not isinstance(engine, ExactReturns) or not isinstance(learner, ExactLearner | SampledLearner):
            raise OptionError("exact needs the exact evaluator and a tabular learner: there are no bounds for others")
        self.world, self.discount = engine.world, task.problem.evaluator.discount
        data = task.problem.dataset
        self.adapted = learner.rule == "adapted"
        self.branch_on: BoolArray = np.ones(data.n_states, bool)
        """[n] the states whose labels can change the learned policy."""
        self.forced: FloatArray = data.action_frequencies
        self._reaches: BoolArray | None = None
        if learner.rule == "uds" and learner.impute == 0:
            rewarding = rewarding_states(data)
            # The sampled learner derives the order of its samples from the label set, so all states matter to it.
            if isinstance(learner, ExactLearner):
                self.branch_on = rewarding
            taken = data.action_frequencies > 0
            uniform = taken if learner.exclude_unseen else np.ones_like(taken)
            self.forced = uniform / uniform.sum(axis=1, keepdims=True)
            self._reaches = _reachability(
                data.n_states, data.unique_transitions.state, data.unique_transitions.next_state
            )
            self._reaches[:, ~rewarding] = False

    def __call__(self, possible: BoolArray) -> float:
        """Return an upper bound for all sets within the states ``possible`` [n]."""
        if self._reaches is not None:
            forced = np.logical_not(self._reaches[:, possible].any(axis=1))
        else:
            forced = ~possible if self.adapted else np.zeros_like(possible)
        values = best_values(self.world.model, self.forced, forced, self.world.horizon, self.discount)
        return float(self.world.start @ values)


@register("exact")
@dataclass
class Exact(SearchAgent):
    """Branch and bound with certificates; the module's docstring gives the proofs."""

    seconds: float = 60.0
    """Stop after this many seconds; the greedy set and its swaps come first and are always completed."""
    max_evaluations: int = 20_000_000
    """Stop after this many evaluator calls; the same exception applies."""

    name = "exact"
    taxonomy = Taxonomy("open", "batch", "training", oracle="the true world, for bounds")

    def __post_init__(self) -> None:
        """Reject limits that are not positive."""
        super().__post_init__()
        self.seconds = check_real("seconds", self.seconds, "(0, inf)")
        self.max_evaluations = check_int("max_evaluations", self.max_evaluations)

    def search(self, task: SearchTask) -> SearchResult:
        """Search until no open node can be better, or until a limit is reached."""
        deadline, calls = time.monotonic() + self.seconds, task.problem.evaluator.calls + self.max_evaluations
        bound = Bound(task)
        greedy = SequentialGreedy().search(task)
        best, performance = climb(task, greedy.ranking[: task.budget], greedy.performance)
        items = task.candidates[bound.branch_on[task.candidates]]
        everything = task.fixed.copy()
        everything[task.candidates] = True
        without = [bound(np.where(np.arange(task.n_states) == item, False, everything)) for item in items]
        # Branch first on the states whose exclusion lowers the bound most.
        items = items[np.argsort(without, kind="stable")]
        top = bound(everything)
        fillers = np.setdiff1d(task.candidates, items)
        order = itertools.count()
        # A node: (-bound, tie-break, number of items decided, items included, possible states, labels left to choose)
        heap: list[tuple[float, int, int, tuple[int, ...], BoolArray, int]] = [
            (-top, next(order), 0, (), everything, size)
            for size in range(max(0, task.budget - len(fillers)), min(task.budget, len(items)) + 1)
        ]
        heapq.heapify(heap)
        enumerated = nodes = 0
        leaf = LEAF if isinstance(task.problem.learner, ExactLearner) else SLOW_LEAF
        while heap and -heap[0][0] > performance + TOLERANCE:
            if time.monotonic() > deadline or task.problem.evaluator.calls >= calls:
                break
            above, _, decided, chosen, possible, left = heapq.heappop(heap)
            nodes += 1
            rest = items[decided:]
            if comb(len(rest), left) <= leaf:
                masks = _all_sets(task, np.array(chosen, np.int64), rest, left, fillers)
                returns = task.problem.performance_many(masks)
                enumerated += len(masks)
                i = int(returns.argmax())
                if returns[i] > performance:
                    best, performance = np.flatnonzero(masks[i] & ~task.fixed), float(returns[i])
                continue
            item = int(rest[0])
            if left > 0:
                heapq.heappush(heap, (above, next(order), decided + 1, (*chosen, item), possible, left - 1))
            if left < len(rest):
                smaller = possible.copy()
                smaller[item] = False
                limit = min(-above, bound(smaller))
                if limit > performance + TOLERANCE:
                    heapq.heappush(heap, (-limit, next(order), decided + 1, chosen, smaller, left))
        upper = max(performance, -heap[0][0]) if heap else performance
        within = upper - performance if upper > performance + TOLERANCE else 0.0
        notes = {
            "certified": within == 0.0,
            "distance_to_bound": within,
            "upper_bound": upper,
            "world_bound": top,
            "nodes": nodes,
            "sets": enumerated,
            "relevant_states": len(items),
        }
        return SearchResult(task.by_visitation(best), performance, notes)


def _all_sets(task: SearchTask, chosen: IntArray, rest: IntArray, left: int, fillers: IntArray) -> BoolArray:
    """Return all sets [sets, n] of ``chosen`` and ``left`` of ``rest``, filled up with irrelevant labels."""
    masks = np.repeat(task.fixed[None], comb(len(rest), left), axis=0)
    masks[:, chosen] = True
    masks[:, fillers[: task.budget - len(chosen) - left]] = True
    fill_masks(combination(0, len(rest), left), rest, masks)
    return masks


def _reachability(n: int, source: IntArray, target: IntArray) -> BoolArray:
    """Return the matrix [n, n] of which states are reachable from which in the data; each state reaches itself."""
    inside = target >= 0
    reach = np.eye(n, dtype=bool)
    reach[source[inside], target[inside]] = True
    for k in range(n):
        reach[reach[:, k]] |= reach[k]
    return reach
