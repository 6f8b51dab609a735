"""How does the share of random actions in Breakout's data affect guided under the adapted rule, when a table learns?"""

from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.studies.breakout.behaviour_mixtures import (
    behaviour_cells,
    behaviour_findings,
    behaviour_rows,
    run_behaviour,
)
from experiments.studies.game_episodes import game_study

NAME, LEARNER = "breakout-behaviour-adapted", "adapted"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per mixture and seed."""
    return behaviour_cells(NAME, LEARNER, seeds)


def rows(results: list[Result]) -> list[Row]:
    """Return our results with the published ones."""
    return behaviour_rows(results, LEARNER)


STUDY = game_study(
    NAME,
    __doc__,
    cells,
    run_behaviour,
    rows,
    3,
    findings=behaviour_findings,
    place=24,
)
