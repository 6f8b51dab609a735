"""sequential-greedy: adds the state that improves the return most, one at a time."""

from dataclasses import dataclass

import numpy as np

from agents.base import Taxonomy
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask


@register("sequential-greedy")
@dataclass
class SequentialGreedy(SearchAgent):
    """Maximises J(S + s) - J(S) at every label: m + (m - 1) + ... + (m - B + 1) evaluations of m candidates.

    Its order is also the result for every smaller budget. Ties go to the lower number.
    """

    name = "sequential-greedy"
    taxonomy = Taxonomy(test_loop="open", training="iterative", evaluator="training")
    any_budget = True

    def search(self, task: SearchTask) -> SearchResult:
        """Add the best state until the budget is spent; the returns of the last round rank the remaining states."""
        chosen, path = np.empty(0, np.int64), []
        left, returns = task.candidates, np.empty(0)
        for _ in range(task.budget):
            returns = task.evaluate_added(task.masks(chosen[None]), np.zeros(len(left), np.int64), left)
            best = int(returns.argmax())
            path.append(float(returns[best]))
            chosen = np.append(chosen, left[best])
            left, returns = np.delete(left, best), np.delete(returns, best)
        ranking = np.concatenate([chosen, left[np.argsort(-returns, kind="stable")]])
        return SearchResult(ranking, path[-1], {"performance_by_labels": path})
