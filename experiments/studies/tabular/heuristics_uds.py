"""Which training-free strategy labels best under UDS, world by world and budget by budget?"""

from experiments.engine.cell import Cell, Result
from experiments.engine.study import Row, Study
from experiments.studies.tabular.budget_sweep import play_cells, play_rows, run_play, table_lookup

NAME, LEARNER, TABLE = "heuristics-uds", "uds", "heuristics_uds"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells."""
    return play_cells(NAME, seeds, solver, {LEARNER: {"problem": {"learner": LEARNER}}})


def rows(results: list[Result]) -> list[Row]:
    """Return ours beside the published table."""
    return play_rows(results, table_lookup(TABLE))


STUDY = Study(NAME, __doc__, cells, run_play, rows, place=1)
