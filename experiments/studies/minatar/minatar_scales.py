"""How much data and how many updates does a network need with full labels to come close to the paper's scale?

Every candidate for the fast scale is one training run per seed. The fast scale of a game is the smallest candidate, by
updates and then by data, whose return is at least 80 % of that at the paper's scale.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Result
from experiments.studies.minatar.network_cells import GAMES, network_cell, network_study, of_game
from selectenv.worlds import WORLDS

NAME = "minatar-scales"
ENOUGH = 0.8
"""Share of the return at the paper's scale that the fast scale must reach."""
SLOW = 3e-4
"""The learning rate of the paper's scale."""


class Candidate(NamedTuple):
    """A training run; sorted by cost."""

    updates: int
    transitions: int
    rate: float = 1e-3

    @property
    def name(self) -> str:
        """The three numbers, for tables and figures."""
        return f"{self.transitions:,} transitions, {self.updates:,} updates, rate {self.rate:g}"

    @property
    def scale(self) -> str:
        """The scale that it is a variant of."""
        return "paper" if self.rate == SLOW else "fast"

    @property
    def options(self) -> dict[str, int]:
        """Options of the problem."""
        own = {} if self.rate == SLOW else {"dataset_size": self.transitions}
        return {"updates": self.updates, **own}


CANDIDATES = tuple(
    sorted(
        [Candidate(updates, 500_000) for updates in (20_000, 40_000)]
        + [Candidate(updates, 1_000_000) for updates in (10_000, 20_000, 40_000)]
        + [Candidate(updates, 1_000_000, SLOW) for updates in (10_000, 20_000, 40_000, 80_000, 100_000)]
    )
)


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return, seed by seed, the cells of the paper's scale and of all candidates."""
    found = []
    for seed in range(seeds):
        found += [network_cell(game, "full labels", seed, "paper") for game in GAMES]
        found += [
            network_cell(game, "full labels", seed, one.scale, options=one.options, rate=one.rate)
            for game in GAMES
            for one in CANDIDATES
        ]
    return found


def candidate_of(cell: Cell) -> Candidate | None:
    """Return the candidate of a cell; None for the paper's scale."""
    preset = cell.settings["preset"]
    known = "updates" in cell.settings["problem"]
    return Candidate(preset["updates"], preset["transitions"], preset["rate"]) if known else None


def rows(results: list[Result]) -> list[Row]:
    """Return one row per game and setting."""
    found = []
    for game in GAMES:
        values: dict[str, list[float]] = {}
        for result in of_game(results, game):
            one = candidate_of(result.cell)
            values.setdefault("paper" if one is None else one.name, []).append(result.records[0]["return"])
        found += [
            Row(game, "", "full labels", "return", summarise(np.array(runs)), None, setting=name)
            for name, runs in values.items()
        ]
    return found


def smallest(rows: list[Row], game: str) -> Candidate | None:
    """Return the smallest candidate that reaches the share of the paper's scale; None if there is none."""
    mine = {row.setting: row.ours.mean for row in rows if row.world == game and row.ours}
    if "paper" not in mine:
        return None
    return next((one for one in CANDIDATES if mine.get(one.name, -np.inf) >= ENOUGH * mine["paper"]), None)


def findings(rows: list[Row]) -> list[str]:
    """Name the smallest sufficient candidate of each game, beside the preset of the fast scale."""
    sentences = []
    for game in dict.fromkeys(row.world for row in rows):
        mine = {row.setting: row.ours.mean for row in rows if row.world == game and row.ours}
        if "paper" not in mine:
            continue
        one, preset = smallest(rows, game), WORLDS[game].defaults.learning.fast
        enough = "no candidate" if one is None else f"{one.name} ({mine[one.name] / mine['paper']:.2f})"
        sentences.append(
            f"{game}: the paper's scale earns {mine['paper']:.2f}; the smallest setting with {ENOUGH:.0%} of that: "
            f"{enough}; the fast scale has {preset.transitions:,} transitions and {preset.updates:,} updates"
        )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw return against updates, one panel per game and one line per size of the data and learning rate."""
    figure = new_figure(10, 6)
    found = rows(results)
    for i, game in enumerate(GAMES):
        axes = figure.add_subplot(2, 2, i + 1)
        mine = {row.setting: row.ours for row in found if row.world == game and row.ours}
        for size, rate in dict.fromkeys((one.transitions, one.rate) for one in CANDIDATES):
            points = [
                (one.updates, mine[one.name].mean, mine[one.name].stderr)
                for one in CANDIDATES
                if (one.transitions, one.rate) == (size, rate) and one.name in mine
            ]
            if points:
                label = f"{size:,} transitions, rate {rate:g}"
                axes.errorbar(*zip(*points, strict=True), label=label, marker="o", markersize=3)
        if "paper" in mine:
            axes.axhline(mine["paper"].mean, color="k", linestyle="--", label="paper's scale")
            axes.axhline(ENOUGH * mine["paper"].mean, color="grey", linestyle=":", label=f"{ENOUGH:.0%} of it")
        axes.set_title(game, fontsize=9)
        axes.set_xlabel("updates", fontsize=8)
        axes.set_ylabel("return, all states labelled", fontsize=8)
        axes.set_xscale("log")
        axes.grid(alpha=0.3)
        if i == 0 and axes.has_data():
            axes.legend(fontsize=7)
    return {"Return with full labels against updates and data": figure}


STUDY = replace(network_study(NAME, __doc__, cells, rows, figures, 25, findings), seeds=1)
