"""es: an evolution strategy over one score a state (cross-entropy method)."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy, top_k
from agents.search.search_agent import Found, TrainedAgent, Training
from selectenv.checks import check_int, check_name
from selectenv.streams import generator

FORMS = ("tabular", "minatar")


@dataclass
class EvolutionStrategy(TrainedAgent):
    """Draws score vectors from a diagonal Gaussian, labels the top B of each, and refits to the best.

    Tabular form: mean 0, standard deviation 1, refitted to the scores of the best max(3, 0.2 m) vectors. MinAtar form:
    mean B / n, standard deviation 0.1, refitted to the 0/1 membership of the best 10 (of the better half, if there are
    fewer than 20). The answer is the top B of the
    final mean; k iterations of m vectors cost k m evaluations.
    """

    k: int = 10
    """Iterations."""
    m: int = 20
    """Score vectors an iteration."""
    form: str = "tabular"
    """"tabular" or "minatar"."""

    name = "es"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Refuse options that leave nothing to search."""
        super().__post_init__()
        check_name("form", self.form, FORMS)
        self.k, self.m = check_int("k", self.k), check_int("m", self.m)

    def search(self, training: Training) -> Found:
        """Run k iterations."""
        rng = generator(training.seed, "selection", self.name, self.k, self.m, self.form)
        size, budget = len(training.candidates), training.budget
        minatar = self.form == "minatar"
        elites = min(10, max(1, self.m // 2)) if minatar else min(self.m, max(3, int(0.2 * self.m)))
        mean, spread = np.full(size, budget / size if minatar else 0.0), np.full(size, 0.1 if minatar else 1.0)
        best_by_iteration = []
        for _ in range(self.k):
            scores = rng.normal(mean, spread, (self.m, size))
            chosen = np.stack([top_k(row, budget) for row in scores])
            fitness = training.evaluate(training.candidates[chosen])
            best = np.argsort(-fitness, kind="stable")[:elites]
            best_by_iteration.append(float(fitness[best[0]]))
            basis = scores[best]
            if minatar:
                basis = np.zeros((elites, size))
                np.put_along_axis(basis, chosen[best], 1.0, axis=1)
            mean, spread = basis.mean(axis=0), basis.std(axis=0) + 1e-8
        ranking = training.candidates[np.argsort(-mean, kind="stable")]
        performance = training.problem.score(training.masks(ranking[None, :budget])[0])
        return Found(ranking, performance, {"best_by_iteration": best_by_iteration})
