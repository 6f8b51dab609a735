"""The figure of shares: return divided by that with full labels, against the percentage of feedback."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from experiments.analysis.figures import new_figure
from experiments.analysis.game_comparison import FULL, PUBLISHED_FULL, GameTable, metrics_by_cell, published_game
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Result
from experiments.protocol.budgets import percentage
from experiments.studies.minatar.network_cells import GAMES, of_game

Points = list[tuple[float, float, float]]
"""Percentage of feedback, share, and its standard error."""


def our_shares(results: list[Result], scale: str, strategy: str) -> Points:
    """Return our shares of one game; the error of the return with full labels is left out."""
    found = metrics_by_cell(results, "return")
    full = found.get((scale, *FULL))
    points = []
    for (variant, name, labels), values in found.items():
        if full and (variant, name) == (scale, strategy) and labels.endswith("%"):
            summary = summarise(np.array(values) / np.mean(full))
            points.append((percentage(labels), summary.mean, summary.stderr))
    return sorted(points)


def published_shares(table: GameTable, strategy: str) -> Points:
    """Return the published shares of one game."""
    full = table[PUBLISHED_FULL].mean
    return sorted(
        (percentage(labels), score.mean / full, (score.stderr or 0.0) / full)
        for (name, labels), score in table.items()
        if name == strategy and labels
    )


def share_figure(results: list[Result], scale: str, strategies: Iterable[str]) -> Any:
    """Draw one panel per game: our strategies, and guided and the evolution strategy as published."""
    figure = new_figure(10, 6.5)
    for i, game in enumerate(GAMES):
        axes = figure.add_subplot(2, 2, i + 1)
        mine, table = of_game(results, game), published_game(game)
        for colour, strategy in enumerate(strategies):
            _draw(axes, our_shares(mine, scale, strategy), strategy, color=f"C{colour}", marker="o")
        for strategy, style in (("guided", "--"), ("es-1000", ":")):
            points = published_shares(table, strategy)
            _draw(axes, points, f"{strategy}, published", color="k", linestyle=style, marker="s", alpha=0.6)
        axes.axhline(1.0, color="grey", linewidth=0.8)
        axes.set_title(game, fontsize=9)
        axes.set_xlabel("percentage of states labelled", fontsize=8)
        axes.set_ylabel("share of the return with full labels", fontsize=8)
        axes.grid(alpha=0.3)
        if i == 0:
            axes.legend(fontsize=7)
    return figure


def _draw(axes: Any, points: Points, label: str, **style: Any) -> None:
    if points:
        x, share, error = zip(*points, strict=True)
        axes.errorbar(x, share, error, label=label, markersize=3, linewidth=1, **style)
