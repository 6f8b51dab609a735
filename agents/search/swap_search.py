"""swap-search: starts from the greedy set and swaps labelled for unlabelled states until no swap helps."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from agents.search.sequential_greedy import SequentialGreedy
from selectenv.checks import check_int
from selectenv.streams import generator
from selectenv.typing import IntArray

GAIN = 1e-12


@register("swap-search")
@dataclass
class SwapSearch(SearchAgent):
    """Steepest ascent over single swaps, from the greedy set and then from random sets while evaluations are left.

    It is never worse than sequential-greedy, which it starts from.
    """

    max_evaluations: int = 50_000
    """Maximum number of evaluator calls; the ascent from the greedy set is always completed."""

    name = "swap-search"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Reject a search without evaluations."""
        super().__post_init__()
        self.max_evaluations = check_int("max_evaluations", self.max_evaluations)

    def search(self, task: SearchTask) -> SearchResult:
        """Climb from the greedy set, then restart."""
        rng = generator(task.seed, "selection", self.name)
        evaluator = task.problem.evaluator
        limit = evaluator.calls + self.max_evaluations
        greedy = SequentialGreedy().search(task)
        best, performance = climb(task, greedy.ranking[: task.budget], greedy.performance)
        starts, notes = 1, {"greedy": greedy.performance, "climbed": performance}
        neighbours = task.budget * (len(task.candidates) - task.budget)
        while neighbours and evaluator.calls + 1 + neighbours <= limit:
            start = rng.choice(task.candidates, task.budget, replace=False)
            found, value = climb(task, start, float(task.evaluate(start[None])[0]), limit)
            starts += 1
            if value > performance + GAIN:
                best, performance = found, value
        return SearchResult(task.by_visitation(best), performance, {**notes, "starts": starts})


def climb(task: SearchTask, chosen: IntArray, performance: float, limit: float = np.inf) -> tuple[IntArray, float]:
    """Make the best swap until none helps, or until the evaluator has been asked ``limit`` times in total."""
    while True:
        outside = np.setdiff1d(task.candidates, chosen)
        place, added = np.repeat(np.arange(len(chosen)), len(outside)), np.tile(outside, len(chosen))
        if len(place) == 0 or task.problem.evaluator.calls + len(place) > limit:
            return chosen, performance
        bases = task.masks(np.stack([np.delete(chosen, i) for i in range(len(chosen))]))
        returns = task.evaluate_added(bases, place, added)
        best = int(returns.argmax())
        if returns[best] <= performance + GAIN:
            return chosen, performance
        chosen, performance = chosen.copy(), float(returns[best])
        chosen[place[best]] = added[best]
