"""beam: sequential-greedy with several sets kept alive."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy
from agents.search.search_agent import Found, TrainedAgent, Training
from selectenv.checks import check_int
from selectenv.typing import BoolArray


@dataclass
class Beam(TrainedAgent):
    """Extends each of the best ``width`` sets by every state and keeps the best again; width 1 is greedy."""

    width: int = 8

    name = "beam"
    taxonomy = Taxonomy(test_loop="open", training="iterative", evaluator="training")

    def __post_init__(self) -> None:
        """Refuse a beam without sets."""
        super().__post_init__()
        self.width = check_int("width", self.width)

    def search(self, training: Training) -> Found:
        """Extend and cut until the budget is spent."""
        beams, returns = training.fixed[None], np.empty(0)
        for _ in range(training.budget):
            extended = _distinct_extensions(beams, training)
            returns = training.problem.performance_many(extended)
            best = np.argsort(-returns, kind="stable")[: self.width]
            beams, returns = extended[best], returns[best]
        chosen = np.flatnonzero(beams[0] & ~training.fixed)
        return Found(training.by_visitation(chosen), float(returns[0]))


def _distinct_extensions(beams: BoolArray, training: Training) -> BoolArray:
    """Return every set that adds one candidate to a beam, each once, in the order they come."""
    row, state = np.nonzero(~beams[:, training.candidates])
    extended = beams[row].copy()
    extended[np.arange(len(row)), training.candidates[state]] = True
    _, first = np.unique(np.packbits(extended, axis=1), axis=0, return_index=True)
    return extended[np.sort(first)]
