"""Which training-free strategy labels best in the four MinAtar games with a neural learner?"""

from typing import Any

import numpy as np

from experiments.analysis.claims import by_budget, difference, is_better
from experiments.analysis.game_comparison import LAST_WEIGHTS, compare_game, published_game
from experiments.analysis.headlines import listed_means
from experiments.analysis.row import Row, mean_of
from experiments.engine.cell import Cell, Result
from experiments.studies.game_episodes import SHARES, played
from experiments.studies.minatar.network_cells import (
    CLOSED,
    GAMES,
    REFERENCES,
    SCALES,
    network_cell,
    network_study,
    of_game,
    open_loop_cells,
)
from experiments.studies.minatar.share_curves import share_figure

NAME = "minatar-heuristics"
STRATEGIES = ("uniform", "visitation", "guided")
FEW = (0.15, 0.30, 0.60)
"""Budgets that run first."""
REASON = "less data and fewer updates at the fast scale"
PAPER_SEEDS, PAPER_GAMES = 1, ("Breakout", "Seaquest", "Asterix")
"""What is run at the paper's scale, without guided, whose refits take hours each there."""


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return, seed by seed, the cells of references, guided, uniform and visitation; then the paper's scale."""
    found = []
    rest = tuple(share for share in SHARES if share not in FEW)
    for seed in range(seeds):
        found += [network_cell(game, strategy, seed, "fast") for strategy in REFERENCES for game in GAMES]
        found += [network_cell(game, "guided", seed, "fast", **CLOSED) for game in GAMES]
        found += open_loop_cells([seed], "fast", STRATEGIES[:2], shares=(*FEW, *rest))
    for seed in range(min(seeds, PAPER_SEEDS)):
        found += [network_cell(game, "full labels", seed, "paper") for game in PAPER_GAMES]
        found += open_loop_cells([seed], "paper", STRATEGIES[:2], PAPER_GAMES, (*FEW, *rest))
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return both readings of our results; guided has published numbers (the others were published only as curves)."""
    found = []
    for game in GAMES:
        mine, published = of_game(results, game), {scale: published_game(game) for scale in SCALES}
        found += compare_game(mine, published, reason=REASON, counted={"fast": ("guided",)})
        found += compare_game(mine, published, reason=REASON, metric=LAST_WEIGHTS)
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise the mean return of each strategy per game, and say which claims of the paper hold."""
    sentences = []
    for scale in dict.fromkeys(row.setting for row in rows):
        for game in dict.fromkeys(row.world for row in rows):
            mine = [row for row in rows if (row.world, row.setting, row.metric) == (game, scale, "return") and row.ours]
            names = [name for name in STRATEGIES if any(row.strategy == name for row in mine)]
            budgets = [{str(row.labels) for row in mine if row.strategy == name} for name in names]
            shared = sorted(map(str, set.intersection(*budgets))) if budgets else []
            if not shared:
                continue
            means = {name: float(np.mean([mean_of(mine, strategy=name, labels=b) for b in shared])) for name in names}
            full = mean_of(mine, strategy="full labels")
            sentences.append(
                f"{game}, {scale}, mean over {', '.join(shared)}: {listed_means(means)}; all states labelled {full:.2f}"
            )
            sentences += _claims(mine, f"{game}, {scale}", full)
    return sentences


def _claims(rows: list[Row], where: str, full: float) -> list[str]:
    """Return what one game says about visitation against uniform, and about few labels against cloning."""
    found, sentences = by_budget(rows, "visitation", "uniform"), []
    if found is not None:
        sentences.append(
            f"{where}: visitation earns more than uniform: {is_better(found, full)}; {found.over} "
            f"visitation {found.first:.2f}, uniform {found.second:.2f} (difference {found})"
        )
    guided = [row.ours for row in rows if (row.strategy, row.labels) == ("guided", "15 %") and row.ours]
    cloned = [row.ours for row in rows if row.strategy == "behaviour cloning" and row.ours]
    beyond = difference(list(zip(guided, cloned, strict=False)))
    if beyond is not None:
        sentences.append(
            f"{where}: guided with 15 % of the labels earns more than behaviour cloning: {is_better(beyond, full)}; "
            f"guided {beyond.first:.2f}, behaviour cloning {beyond.second:.2f} (difference {beyond})"
        )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the share of the full-label return against the percentage of feedback, ours and published."""
    return {
        f"Share of the return with full labels, networks: {scale}": share_figure(results, scale, STRATEGIES)
        for scale in played(results)
    }


STUDY = network_study(NAME, __doc__, cells, rows, figures, 27, findings, scales=("fast",))
