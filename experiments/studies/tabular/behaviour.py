"""How do results depend on the expert share and the size of the data, and on the value of unseen actions?"""

from typing import Any

from experiments.analysis.comparison import compare_budgets
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.studies.tabular.budget_sweep import play_cells, run_play

NAME = "behaviour"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SIZES = (1_000, 10_000)
STRATEGIES = ("uniform", "visitation", "guided", "terminal-guided", "sequential-greedy")
SEEDS = 10
VARIANTS: dict[str, dict[str, Any]] = {
    **{
        f"expert {share:g}, unseen {unseen}": {"problem": {"expert_share": share, "unseen": unseen}}
        for share in SHARES
        for unseen in ("zero", "exclude")
    },
    **{f"{size:,} transitions": {"problem": {"dataset_size": size}} for size in SIZES},
}


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of every variant of the data."""
    return play_cells(NAME, seeds, solver, VARIANTS, strategies=STRATEGIES)


def rows(results: list[Result]) -> list[Row]:
    """Return our results; published ones exist only for Breakout."""
    return compare_budgets(results)


STUDY = Study(NAME, __doc__, cells, run_play, rows, SEEDS, place=12)
