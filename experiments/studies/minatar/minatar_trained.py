"""What return does a network reach with full labels, and is it higher than that of behaviour cloning?

With UDS and imputed reward 0, labelling every state that has a reward (the published reduced brute-force) gives the
same training data as labelling every state: the two share one training run here.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.analysis.claims import difference, is_better
from experiments.analysis.figures import new_figure
from experiments.analysis.game_comparison import LAST_WEIGHTS, compare_game, published_game
from experiments.analysis.headlines import listed_means
from experiments.analysis.row import Row, mean_of
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import UNEXPLAINED
from experiments.engine.cell import Cell, Result
from experiments.studies.game_episodes import played
from experiments.studies.minatar.network_cells import (
    GAMES,
    REFERENCES,
    SCALES,
    network_cell,
    network_study,
    of_game,
)

NAME = "minatar-trained"
REASONS = {"Breakout": "what IQL learns in Breakout depends on the expert: see breakout-experts"}
COUNTED = {"paper": ("reduced-brute-force", "es-1000")}
NOT_RUN = {"es-1000": "1,000 training runs per figure"}


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per seed, reference and game, at the paper's scale first."""
    return [
        network_cell(game, strategy, seed, scale)
        for scale in reversed(SCALES)
        for seed in range(seeds)
        for strategy in REFERENCES
        for game in GAMES
    ]


def rows(results: list[Result]) -> list[Row]:
    """Return both readings of our results with the published numbers."""
    twice = [
        Result(replace(result.cell, strategy="reduced-brute-force"), result.records, 0.0)
        for result in results
        if result.cell.strategy == "full labels"
    ]
    found = []
    for game in GAMES:
        mine = of_game(results + twice, game)
        published = {scale: published_game(game) for scale in SCALES}
        reason = REASONS.get(game, UNEXPLAINED)
        found += compare_game(mine, published, reason=reason, counted=COUNTED, missing=NOT_RUN)
        found += compare_game(mine, published, reason=reason, metric=LAST_WEIGHTS)
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise full labels, behaviour cloning and the published return, and say whether labels beat cloning."""
    sentences = []
    for scale in dict.fromkeys(row.setting for row in rows):
        for game in dict.fromkeys(row.world for row in rows):
            mine = {
                row.strategy: row.ours
                for row in rows
                if (row.world, row.setting, row.metric) == (game, scale, "return")
            }
            full = mine.get("full labels")
            if full is None:
                continue
            means = listed_means({name: ours.mean for name in REFERENCES if (ours := mine.get(name))})
            last = mean_of(rows, world=game, setting=scale, metric=LAST_WEIGHTS, strategy="full labels")
            theirs = published_game(game)["reduced-brute-force", ""].mean
            said = [
                f"better than {name}: {is_better(found, full.mean)} (difference {found})"
                for name in REFERENCES[1:]
                if (cloned := mine.get(name)) and (found := difference([(full, cloned)]))
            ]
            sentences.append(
                f"{game}, {scale}: {means}; full labels with the last weights {last:.2f}, published {theirs:.2f}"
                + "".join(f"; {one}" for one in said)
            )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw learning curves, one panel per game."""
    return {
        f"Return against updates, all states labelled: {scale}": learning_figure(results, scale)
        for scale in played(results)
    }


def learning_figure(results: list[Result], scale: str) -> Any:
    """Return a figure of return against updates: the runs with full labels, cloning, and the published return."""
    figure = new_figure(10, 6)
    for i, game in enumerate(GAMES):
        axes = figure.add_subplot(2, 2, i + 1)
        for colour, strategy in enumerate(REFERENCES):
            curves = [
                [(record["updates"], record["curve"]) for record in result.records if "curve" in record]
                for result in of_game(results, game)
                if result.cell.strategy == strategy and result.cell.settings["variant"] == scale
            ]
            points: dict[int, list[float]] = {}
            for curve in curves:
                axes.plot(*zip(*curve, strict=True), color=f"C{colour}", linewidth=0.6, alpha=0.5)
                for updates, value in curve:
                    points.setdefault(updates, []).append(value)
            if points:
                means = [summarise(np.array(values)).mean for _, values in sorted(points.items())]
                label = "IQL, all states labelled" if strategy == "full labels" else strategy
                axes.plot(sorted(points), means, color=f"C{colour}", label=label, marker="o", markersize=3)
        axes.axhline(published_game(game)["reduced-brute-force", ""].mean, color="k", linestyle="--", label="published")
        axes.set_title(game, fontsize=9)
        axes.set_xlabel("updates (thin lines: single runs)", fontsize=8)
        axes.set_ylabel("return", fontsize=8)
        axes.grid(alpha=0.3)
        if i == 0:
            axes.legend(fontsize=7)
    return figure


STUDY = network_study(NAME, __doc__, cells, rows, figures, 26, findings)
