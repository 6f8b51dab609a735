"""How do results change if unknown rewards are imputed as the smallest reward in the data instead of 0?"""

from experiments.analysis.comparison import compare_budgets
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.studies.tabular.budget_sweep import play_cells, run_play

NAME = "imputation"
VARIANTS = {"impute 0": {}, "impute dataset-min": {"problem": {"impute": "dataset-min"}}}
SEEDS = 30


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of both imputations."""
    return play_cells(NAME, seeds, solver, VARIANTS)


def rows(results: list[Result]) -> list[Row]:
    """Return our results; none were published."""
    return compare_budgets(results)


STUDY = Study(NAME, __doc__, cells, run_play, rows, SEEDS, place=13)
