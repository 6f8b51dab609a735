"""swap-search: from the greedy set, exchange labelled for unlabelled states until no exchange helps."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy
from agents.search.search_agent import Found, TrainedAgent, Training
from agents.search.sequential_greedy import SequentialGreedy
from selectenv.checks import check_int
from selectenv.streams import generator
from selectenv.typing import IntArray

GAIN = 1e-12


@dataclass
class SwapSearch(TrainedAgent):
    """Steepest ascent over single exchanges, from the greedy set and then from random ones while calls are left.

    Never worse than sequential-greedy: that is where it starts.
    """

    calls: int = 50_000
    """Evaluator calls in all; the climb from the greedy set is always finished."""

    name = "swap-search"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Refuse a search without calls."""
        super().__post_init__()
        self.calls = check_int("calls", self.calls)

    def search(self, training: Training) -> Found:
        """Climb from the greedy set, then restart."""
        rng = generator(training.seed, "selection", self.name)
        evaluator = training.problem.evaluator
        limit = evaluator.calls + self.calls
        greedy = SequentialGreedy().search(training)
        best, performance = climb(training, greedy.ranking[: training.budget], greedy.performance)
        starts, notes = 1, {"greedy": greedy.performance, "climbed": performance}
        neighbours = training.budget * (len(training.candidates) - training.budget)
        while neighbours and evaluator.calls + 1 + neighbours <= limit:
            start = rng.choice(training.candidates, training.budget, replace=False)
            found, value = climb(training, start, float(training.evaluate(start[None])[0]), limit)
            starts += 1
            if value > performance + GAIN:
                best, performance = found, value
        return Found(training.by_visitation(best), performance, {**notes, "starts": starts})


def climb(training: Training, chosen: IntArray, performance: float, limit: float = np.inf) -> tuple[IntArray, float]:
    """Make the best exchange until none helps, or until the evaluator has been asked ``limit`` times in all."""
    while True:
        outside = np.setdiff1d(training.candidates, chosen)
        neighbours = np.repeat(chosen[None], len(chosen) * len(outside), axis=0)
        if len(neighbours) == 0 or training.problem.evaluator.calls + len(neighbours) > limit:
            return chosen, performance
        place = np.repeat(np.arange(len(chosen)), len(outside))
        neighbours[np.arange(len(neighbours)), place] = np.tile(outside, len(chosen))
        returns = training.evaluate(neighbours)
        best = int(returns.argmax())
        if returns[best] <= performance + GAIN:
            return chosen, performance
        chosen, performance = neighbours[best], float(returns[best])
