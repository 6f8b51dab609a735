"""Which training-free strategy labels best under UDS, world by world and budget by budget?"""

from experiments.analysis.comparison import compare_budgets, published_heuristics
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.studies.tabular.budget_sweep import play_cells, run_play

NAME, LEARNER = "heuristics-uds", "uds"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of the training-free strategies."""
    return play_cells(NAME, seeds, solver, {LEARNER: {"problem": {"learner": LEARNER}}})


def rows(results: list[Result]) -> list[Row]:
    """Return our results with the published ones."""
    return compare_budgets(results, published_heuristics(LEARNER))


STUDY = Study(NAME, __doc__, cells, run_play, rows, place=1)
