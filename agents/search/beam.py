"""beam: sequential-greedy with several sets kept in parallel."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from selectenv.checks import check_int
from selectenv.typing import BoolArray


@register("beam")
@dataclass
class Beam(SearchAgent):
    """Extends each of the best ``width`` sets by every state and keeps the best ``width``; width 1 is greedy."""

    width: int = 8
    """Number of sets kept."""

    name = "beam"
    taxonomy = Taxonomy(test_loop="open", training="iterative", evaluator="training")

    def __post_init__(self) -> None:
        """Reject an empty beam."""
        super().__post_init__()
        self.width = check_int("width", self.width)

    def search(self, task: SearchTask) -> SearchResult:
        """Extend and prune until the budget is spent."""
        beams, returns = task.fixed[None], np.empty(0)
        for _ in range(task.budget):
            extended = _distinct_extensions(beams, task)
            returns = task.problem.performance_many(extended)
            best = np.argsort(-returns, kind="stable")[: self.width]
            beams, returns = extended[best], returns[best]
        chosen = np.flatnonzero(beams[0] & ~task.fixed)
        return SearchResult(task.by_visitation(chosen), float(returns[0]))


def _distinct_extensions(beams: BoolArray, task: SearchTask) -> BoolArray:
    """Return every set that adds one candidate to a beam, without duplicates, in order."""
    row, state = np.nonzero(~beams[:, task.candidates])
    extended = beams[row].copy()
    extended[np.arange(len(row)), task.candidates[state]] = True
    _, first = np.unique(np.packbits(extended, axis=1), axis=0, return_index=True)
    return extended[np.sort(first)]
