"""What does a search on the training data gain, and does it transfer to other data (UDS)?"""

from experiments.analysis.comparison import compare_searches
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import BUDGETS
from experiments.studies.tabular.search_results import run_trained, trained_cells

NAME, LEARNER, TABLE = "trained-uds", "uds", "trained_uds"
STRATEGIES = ("brute-force", "sequential-greedy", "es-200", "es-50", "guided", "swap-search", "exact")


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of the searches and of guided."""
    return trained_cells(NAME, LEARNER, STRATEGIES, BUDGETS, seeds, solver)


def rows(results: list[Result]) -> list[Row]:
    """Return our results with the published ones."""
    return compare_searches(results, TABLE)


STUDY = Study(NAME, __doc__, cells, run_trained, rows, place=3)
