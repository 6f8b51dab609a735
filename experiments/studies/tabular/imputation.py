"""What if unknown rewards count as the smallest reward in the data instead of 0?"""

from experiments.engine.cell import Cell, Result
from experiments.engine.study import Row, Study
from experiments.studies.tabular.budget_sweep import play_cells, play_rows, run_play

NAME = "imputation"
VARIANTS = {"impute 0": {}, "impute min": {"problem": {"impute": "min"}}}
SEEDS = 30


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells."""
    return play_cells(NAME, seeds, solver, VARIANTS)


def rows(results: list[Result]) -> list[Row]:
    """Return the figures; nothing was published."""
    return play_rows(results)


STUDY = Study(NAME, __doc__, cells, run_play, rows, SEEDS, place=13)
