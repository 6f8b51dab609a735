"""Which training-free strategy labels best under the adapted rule, world by world and budget by budget?"""

from experiments.cells import Cell, Result
from experiments.heuristics import heuristic_cells, heuristic_rows, run_heuristic
from experiments.study import Row, Study

NAME, LEARNER, TABLE = "heuristics-adapted", "adapted", "heuristics_adapted"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells."""
    return heuristic_cells(NAME, LEARNER, seeds, solver)


def rows(results: list[Result]) -> list[Row]:
    """Return ours beside the published table."""
    return heuristic_rows(results, TABLE)


STUDY = Study(NAME, __doc__, cells, run_heuristic, rows)
