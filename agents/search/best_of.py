"""best-of: draw some sets by visitation and keep the one that earns most."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy, gumbel_top_k
from agents.search.search_agent import Found, TrainedAgent, Training
from selectenv.checks import check_int
from selectenv.streams import generator
from selectenv.typing import IntArray


@dataclass
class BestOf(TrainedAgent):
    """The cheapest search there is: m evaluations of sets that cost nothing to draw, for when one takes minutes."""

    m: int = 8
    """Sets to try."""

    name = "best-of"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Refuse to try nothing."""
        super().__post_init__()
        self.m = check_int("m", self.m)

    def search(self, training: Training) -> Found:
        """Draw, evaluate, keep."""
        sets = self.draw(training)
        returns = training.evaluate(sets)
        best = int(returns.argmax())
        return Found(training.by_visitation(sets[best]), float(returns[best]), {"returns": returns.tolist()})

    def draw(self, training: Training) -> IntArray:
        """Return the sets [m, labels] to try; more of them begin with the same ones."""
        rng = generator(training.seed, "selection", self.name)
        visits, open_states = training.problem.dataset.visitation, np.zeros(training.n_states, bool)
        open_states[training.candidates] = True
        return np.stack([gumbel_top_k(visits, open_states, training.budget, rng) for _ in range(self.m)])
