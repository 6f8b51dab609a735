"""best-of: samples label sets by visitation and keeps the best one."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy, gumbel_top_k
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from selectenv.checks import check_int
from selectenv.streams import generator
from selectenv.typing import IntArray


@register("best-of")
@dataclass
class BestOf(SearchAgent):
    """The cheapest search: it evaluates a few sampled sets. For problems where one evaluation takes minutes."""

    max_evaluations: int = 8
    """Number of label sets to evaluate."""

    name = "best-of"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Reject a search without evaluations."""
        super().__post_init__()
        self.max_evaluations = check_int("max_evaluations", self.max_evaluations)

    def search(self, task: SearchTask) -> SearchResult:
        """Sample, evaluate, and keep the best."""
        sets = self.draw(task)
        returns = task.evaluate(sets)
        best = int(returns.argmax())
        return SearchResult(task.by_visitation(sets[best]), float(returns[best]), {"returns": returns.tolist()})

    def draw(self, task: SearchTask) -> IntArray:
        """Return the sets [sets, labels] to evaluate; a longer search starts with the sets of a shorter one."""
        rng = generator(task.seed, "selection", self.name)
        visits, open_states = task.problem.dataset.visitation, np.zeros(task.n_states, bool)
        open_states[task.candidates] = True
        return np.stack([gumbel_top_k(visits, open_states, task.budget, rng) for _ in range(self.max_evaluations)])
