"""How do the decay, temperature and threshold of guided affect its return? The published default is marked."""

from experiments.analysis.comparison import compare_budgets
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.studies.tabular.budget_sweep import play_cells, run_play

NAME = "schedules"
DEFAULT = ("linear", 6.0, 0.5)
FIXTIMES = (0.25, 0.5, 0.75, 1.0)
SHAPES = (("linear", 6.0), ("convex", 2.0), ("convex", 6.0), ("concave", 2.0), ("concave", 6.0))
SEEDS = 20


def _name(decay: str, temperature: float, fixtime: float) -> str:
    shape = decay if decay == "linear" else f"{decay} {temperature:g}"
    return f"{shape}, until {fixtime:g}" + (" (published default)" if (decay, temperature, fixtime) == DEFAULT else "")


VARIANTS = {
    _name(decay, temperature, fixtime): {"agent": {"decay": decay, "temperature": temperature, "fixtime": fixtime}}
    for decay, temperature in SHAPES
    for fixtime in FIXTIMES
}


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of every schedule."""
    return play_cells(NAME, seeds, solver, VARIANTS, strategies=("guided",))


def rows(results: list[Result]) -> list[Row]:
    """Return our results; the published search has no table."""
    return compare_budgets(results)


STUDY = Study(NAME, __doc__, cells, run_play, rows, SEEDS, place=8)
