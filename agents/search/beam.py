"""beam: sequential-greedy with several sets kept in parallel."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from selectenv.checks import check_int
from selectenv.typing import BoolArray, IntArray


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
            row, added = _distinct_extensions(beams, task.candidates)
            returns = task.evaluate_added(beams, row, added)
            best = np.argsort(-returns, kind="stable")[: self.width]
            beams, returns = beams[row[best]], returns[best]
            beams[np.arange(len(best)), added[best]] = True
        chosen = np.flatnonzero(beams[0] & ~task.fixed)
        return SearchResult(task.by_visitation(chosen), float(returns[0]))


def _distinct_extensions(beams: BoolArray, candidates: IntArray) -> tuple[IntArray, IntArray]:
    """Return the beam and the added state of every set that adds a candidate to a beam, without duplicates, in order.

    Beams of the same size have a set in common if each of them has exactly one state that the other lacks.
    """
    new = ~beams
    for later in range(1, len(beams)):
        for earlier in range(later):
            lacking = np.flatnonzero(beams[earlier] & ~beams[later])
            if len(lacking) == 1:
                new[later, lacking] = False
    row, place = np.nonzero(new[:, candidates])
    return row, candidates[place]
