"""es: an evolution strategy over one score per state (cross-entropy method)."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy, top_k
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from selectenv.checks import check_int, check_name
from selectenv.streams import generator

FORMS = ("tabular", "minatar")


@register("es-1000", iterations=10, population=100, form="minatar")
@register("es-200", iterations=10, population=20)
@register("es-50", iterations=10, population=5)
@register("es")
@dataclass
class EvolutionStrategy(SearchAgent):
    """Samples score vectors from a diagonal Gaussian, labels the top B of each, and refits to the best.

    Tabular form: mean 0, standard deviation 1, refitted to the scores of the best max(3, 0.2 population) vectors.
    MinAtar form: mean B / n, standard deviation 0.1, refitted to the 0/1 membership of the best 10 (of the better half,
    if the population is below 20). The result is the top B of the final mean; the cost is iterations x population
    evaluations.
    """

    iterations: int = 10
    """Iterations, each of which refits the Gaussian."""
    population: int = 20
    """Score vectors per iteration."""
    form: str = "tabular"
    """"tabular" or "minatar"."""

    name = "es"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Reject options that leave nothing to search."""
        super().__post_init__()
        check_name("form", self.form, FORMS)
        self.iterations = check_int("iterations", self.iterations)
        self.population = check_int("population", self.population)

    def search(self, task: SearchTask) -> SearchResult:
        """Run all iterations."""
        rng = generator(task.seed, "selection", self.name, self.iterations, self.population, self.form)
        size, budget = len(task.candidates), task.budget
        minatar = self.form == "minatar"
        population = self.population
        elites = min(10, max(1, population // 2)) if minatar else min(population, max(3, int(0.2 * population)))
        mean, spread = np.full(size, budget / size if minatar else 0.0), np.full(size, 0.1 if minatar else 1.0)
        best_by_iteration = []
        for _ in range(self.iterations):
            scores = rng.normal(mean, spread, (population, size))
            chosen = np.stack([top_k(row, budget) for row in scores])
            fitness = task.evaluate(task.candidates[chosen])
            best = np.argsort(-fitness, kind="stable")[:elites]
            best_by_iteration.append(float(fitness[best[0]]))
            basis = scores[best]
            if minatar:
                basis = np.zeros((elites, size))
                np.put_along_axis(basis, chosen[best], 1.0, axis=1)
            mean, spread = basis.mean(axis=0), basis.std(axis=0) + 1e-8
        ranking = task.candidates[np.argsort(-mean, kind="stable")]
        performance = task.problem.score(task.masks(ranking[None, :budget])[0])
        return SearchResult(ranking, performance, {"best_by_iteration": best_by_iteration})
