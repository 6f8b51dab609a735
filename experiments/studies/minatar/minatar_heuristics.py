"""Which training-free strategy labels best in the four MinAtar games with a neural learner?"""

from typing import Any

import numpy as np

from experiments.analysis.game_comparison import compare_game, published_game
from experiments.analysis.headlines import listed_means
from experiments.analysis.row import Row, mean_of
from experiments.engine.cell import Cell, Result
from experiments.studies.game_episodes import curves_figure, played
from experiments.studies.minatar.network_cells import (
    REASON,
    heuristic_cells,
    network_cell,
    network_study,
    of_game,
)
from selectenv.domains.minatar.games import GAMES
from selectenv.options import SCALES

NAME = "minatar-heuristics"
STRATEGIES = ("uniform", "visitation", "guided", "terminal")


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of full labels, then of the published strategies, then of ours."""
    found = []
    for scale in SCALES:
        found += [network_cell(game, "full labels", seed, scale) for seed in range(seeds) for game in GAMES]
        for strategies in (STRATEGIES[:3], STRATEGIES[3:]):
            found += heuristic_cells(seeds, scale, strategies)
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return our results; guided has published numbers (the others were published only as curves)."""
    return [
        row
        for game in GAMES
        for row in compare_game(
            of_game(results, game),
            {scale: published_game(game) for scale in SCALES},
            reason=REASON,
        )
    ]


def findings(rows: list[Row]) -> list[str]:
    """Summarise the mean return of each strategy per game, over the budgets that all strategies have."""
    sentences = []
    for scale in dict.fromkeys(row.setting for row in rows):
        for game in dict.fromkeys(row.world for row in rows):
            mine = [row for row in rows if row.world == game and row.setting == scale]
            names = [name for name in STRATEGIES if any(row.strategy == name for row in mine)]
            budgets = [{str(row.labels) for row in mine if row.strategy == name} for name in names]
            shared = sorted(map(str, set.intersection(*budgets))) if budgets else []
            if not shared:
                continue
            means = {name: float(np.mean([mean_of(mine, strategy=name, labels=b) for b in shared])) for name in names}
            sentences.append(
                f"{game}, {scale}, mean over {', '.join(shared)}: {listed_means(means)}; "
                f"all states labelled {mean_of(mine, strategy='full labels'):.2f}"
            )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw returns against labels, one figure per game and scale."""
    found = {}
    for game in GAMES:
        mine = of_game(results, game)
        for scale in played(mine):
            found[f"Heuristics in {game}, networks: {scale}"] = curves_figure(mine, scale)
    return found


STUDY = network_study(NAME, __doc__, cells, rows, figures, 30, findings)
