"""Which training-free strategy labels best in Breakout, at 200,000 and at 1,000,000 transitions?"""

from typing import Any

from experiments.engine.cell import Cell, Result
from experiments.engine.study import Row, Study
from experiments.studies.game_episodes import (
    DATA,
    HEURISTICS,
    curves_figure,
    frames_figure,
    game_cells,
    game_rows,
    mean_of,
    minatar_table,
    played,
    run_game,
)  # fmt: skip

NAME, WORLD = "breakout-heuristics", "Breakout"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return a cell a scale, seed and strategy."""
    return game_cells(NAME, WORLD, seeds, DATA, HEURISTICS)


def rows(results: list[Result]) -> list[Row]:
    """Return ours, and at the paper's scale beside them the published figures of guided; others were only drawn."""
    reason = "another expert, and the published learner is a network"
    return game_rows(results, {"paper": minatar_table(WORLD)}, reason=reason)


def findings(rows: list[Row]) -> list[str]:
    """Say how the published strategies compare."""
    said = []
    for data in dict.fromkeys(row.setting for row in rows):
        means = {
            name: mean_of(rows, setting=data, strategy=name)
            for name in ("uniform", "visitation", "guided", "terminal-guided")
        }
        said.append(f"{data}, mean over budgets: " + ", ".join(f"{name} {mean:.2f}" for name, mean in means.items()))
    return said


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw returns against labels, and what is labelled first."""
    return {
        **{f"Heuristics in Breakout: {data}": curves_figure(results, data) for data in played(results)},
        **frames_figure(results, "laptop", HEURISTICS),
    }


STUDY = Study(NAME, __doc__, cells, run_game, rows, 10, figures, place=20, solvers=("exact",), findings=findings)
