"""How many iterations does the evolution strategy need?"""

from experiments.analysis.comparison import compare_searches
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import BUDGETS
from experiments.studies.tabular.search_results import run_trained, trained_cells

NAME, LEARNER, TABLE = "es-iterations", "uds", "es_iterations_ablation"
STRATEGIES = ("es-10x20", "es-8x20", "es-5x20", "es-3x20")


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of the evolution strategies."""
    return trained_cells(NAME, LEARNER, STRATEGIES, BUDGETS, seeds, solver)


def rows(results: list[Result]) -> list[Row]:
    """Return our results with the published ones."""
    return compare_searches(results, TABLE)


STUDY = Study(NAME, __doc__, cells, run_trained, rows, place=5)
