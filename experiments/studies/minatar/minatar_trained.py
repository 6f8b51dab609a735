"""What return does a network reach with full labels, and is it higher than that of behaviour cloning?

With UDS and imputed reward 0, labelling every state that has a reward (the published reduced brute-force) gives the
same training data as labelling every state: the two share one training run here.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.analysis.game_comparison import compare_game, published_game
from experiments.analysis.figures import new_figure
from experiments.analysis.headlines import listed_means
from experiments.analysis.row import Row, mean_of
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Result
from experiments.studies.game_episodes import played
from experiments.studies.minatar.network_cells import (
    REASON,
    REFERENCES,
    heuristic_cells,
    network_cell,
    network_study,
    of_game,
)
from selectenv.domains.minatar.games import GAMES
from selectenv.options import SCALES

NAME = "minatar-trained"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of the references and of guided, for every game."""
    found = []
    for scale in SCALES:
        for seed in range(seeds):
            found += [network_cell(game, strategy, seed, scale) for strategy in REFERENCES for game in GAMES]
        found += heuristic_cells(seeds, scale, ("guided",))
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return our results with the published ones."""
    twice = [
        Result(replace(result.cell, strategy="reduced-brute-force"), result.records, 0.0)
        for result in results
        if result.cell.strategy == "full labels"
    ]
    return [
        row
        for game in GAMES
        for row in compare_game(
            of_game(results + twice, game), {scale: published_game(game) for scale in SCALES}, reason=REASON
        )
    ]


def findings(rows: list[Row]) -> list[str]:
    """Summarise full labels, behaviour cloning and the published return."""
    sentences = []
    for scale in dict.fromkeys(row.setting for row in rows):
        for game in dict.fromkeys(row.world for row in rows):
            mine = [row for row in rows if row.world == game and row.setting == scale]
            means = listed_means({name: mean_of(mine, strategy=name) for name in REFERENCES})
            theirs = published_game(game)["reduced-brute-force", ""][0]
            sentences.append(f"{game}, {scale}: {means}; published with every reward labelled: {theirs:.2f}")
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw learning curves, one panel per game."""
    found = {}
    for scale in played(results):
        found[f"Return against updates, all states labelled: {scale}"] = learning_figure(results, scale)
    return found


def learning_figure(results: list[Result], scale: str) -> Any:
    """Return a figure of the mean return over seeds against updates, for full labels and behaviour cloning."""
    figure = new_figure(10, 6)
    for i, game in enumerate(GAMES):
        axes = figure.add_subplot(2, 2, i + 1)
        for strategy in REFERENCES:
            points: dict[int, list[float]] = {}
            for result in of_game(results, game):
                if result.cell.strategy == strategy and result.cell.settings["variant"] == scale:
                    for record in result.records:
                        if "curve" in record:
                            points.setdefault(record["updates"], []).append(record["curve"])
            if points:
                sums = [summarise(np.array(values)) for _, values in sorted(points.items())]
                label = "IQL, all states labelled" if strategy == "full labels" else strategy
                axes.errorbar(
                    sorted(points),
                    [s.mean for s in sums],
                    [s.stderr for s in sums],
                    label=label,
                    marker="o",
                    markersize=3,
                )
        axes.set_title(game, fontsize=9)
        axes.set_xlabel("updates", fontsize=8)
        axes.set_ylabel("return", fontsize=8)
        axes.grid(alpha=0.3)
        if i == 0:
            axes.legend(fontsize=7)
    return figure


STUDY = network_study(NAME, __doc__, cells, rows, figures, 31, findings)
