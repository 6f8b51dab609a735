"""Which training-free strategy labels best in Breakout, when a table learns?"""

from typing import Any

from experiments.analysis.game_comparison import compare_game, published_game
from experiments.analysis.headlines import listed_means
from experiments.analysis.row import Row, mean_of
from experiments.engine.cell import Cell, Result
from experiments.studies.game_episodes import (
    DATA,
    HEURISTICS,
    TABLE_REASON,
    curves_figure,
    frames_figure,
    game_cells,
    game_study,
    played,
    run_game,
)

NAME, WORLD = "breakout-heuristics", "Breakout"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per variant of the data, seed and strategy."""
    return game_cells(NAME, WORLD, seeds, DATA, HEURISTICS)


def rows(results: list[Result]) -> list[Row]:
    """Return our results; guided has published numbers (the others were published only as curves)."""
    return compare_game(results, {"paper": published_game(WORLD)}, reason=TABLE_REASON)


def findings(rows: list[Row]) -> list[str]:
    """Summarise the mean returns of four strategies."""
    sentences = []
    for data in dict.fromkeys(row.setting for row in rows):
        means = {
            name: mean_of(rows, setting=data, strategy=name)
            for name in ("uniform", "visitation", "guided", "terminal-guided")
        }
        sentences.append(f"{data}, mean over budgets: {listed_means(means)}")
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw returns against labels, and the images that are labelled first."""
    return {
        **{f"Heuristics in Breakout: {data}": curves_figure(results, data) for data in played(results)},
        **frames_figure(results, "paper", HEURISTICS),
    }


STUDY = game_study(
    NAME,
    __doc__,
    cells,
    run_game,
    rows,
    10,
    figures=figures,
    place=20,
    findings=findings,
)
