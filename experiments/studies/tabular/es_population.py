"""How many score vectors per iteration does the evolution strategy need?"""

from experiments.analysis.comparison import compare_searches
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import BUDGETS as PUBLISHED_BUDGETS
from experiments.protocol.budgets import ES_POPULATION_TRAP
from experiments.studies.tabular.search_results import run_trained, trained_cells

NAME, LEARNER, TABLE = "es-population", "uds", "es_population_ablation"
STRATEGIES = ("es-10x20", "es-10x15", "es-10x10", "es-10x5")
BUDGETS = {**PUBLISHED_BUDGETS, "TwoRoomsTrap": tuple(ES_POPULATION_TRAP.values())}


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of the evolution strategies."""
    return trained_cells(NAME, LEARNER, STRATEGIES, BUDGETS, seeds, solver)


def rows(results: list[Result]) -> list[Row]:
    """Return our results with the published ones."""
    return compare_searches(results, TABLE)


STUDY = Study(NAME, __doc__, cells, run_trained, rows, place=6)
