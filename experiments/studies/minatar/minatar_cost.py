"""What does a search with an evaluator gain in Seaquest, where every evaluator call trains a network?

This reproduces the published figure, with 60 % of the states labelled. The fast scale has fewer points: an evolution
strategy with a few evaluations is no better than random, so the search is the best of 2 and of 4 sets drawn by
visitation, evaluated on episodes that were not used to choose.
"""

from typing import Any

import numpy as np

from experiments.analysis.comparison import published_game
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent
from experiments.studies.game_episodes import played
from experiments.studies.minatar.network_cells import (
    CLOSED,
    OPEN,
    network_cell,
    network_study,
)
from selectenv.options import SCALES

NAME, WORLD, SHARE = "minatar-cost", "Seaquest", 0.60
SEARCHES: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "fast": (("best-of", {"max_evaluations": 4}),),
    "paper": (("es-1000", {"iterations": 10, "population": 100}),),
}
SEARCH_SEEDS = 1


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of strategies without evaluator calls, of searches, and of full labels."""
    found = []
    for scale in SCALES:
        for seed in range(seeds):
            found += [network_cell(WORLD, strategy, seed, scale, share=SHARE) for strategy in OPEN]
            found.append(network_cell(WORLD, "guided", seed, scale, **CLOSED[scale]))
            found.append(network_cell(WORLD, "full labels", seed, scale))
        for seed in range(min(seeds, SEARCH_SEEDS)):
            for strategy, search in SEARCHES[scale]:
                found.append(network_cell(WORLD, strategy, seed, scale, share=SHARE, search=search))
    return found


def points(results: list[Result]) -> dict[tuple[str, str, int], list[Record]]:
    """Return the records by scale, strategy and number of evaluator calls."""
    found: dict[tuple[str, str, int], list[Record]] = {}
    for result in results:
        for record in result.records:
            if record.get("labels") in (percent(SHARE), "") and "return" in record:
                key = result.cell.settings["variant"], result.cell.strategy, int(record.get("cost", 0))
                found.setdefault(key, []).append(record)
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return the returns, with the number of calls as the setting, and the published returns of the same strategy."""
    known = published_game(WORLD)
    found = []
    for (scale, strategy, calls), records in points(results).items():
        published, error = known.get((strategy, percent(SHARE)), (None, None))
        ours = summarise(np.array([record.get("fresh", record["return"]) for record in records]))
        labels = "" if strategy == "full labels" else percent(SHARE)
        setting = f"{scale}, {calls:,} calls"
        found.append(Row(WORLD, labels, strategy, "return", ours, None, published, error, setting=setting))
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise the return for each number of calls."""
    return [
        f"{WORLD}, {percent(SHARE)} labelled: "
        + ", ".join(f"{row.strategy} {row.ours.mean:.1f} ({row.setting})" for row in rows if row.ours)
    ]


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw return against evaluator calls."""
    found = {}
    for scale in played(results):
        figure = new_figure(7, 4)
        axes = figure.add_subplot()
        for (mine, strategy, calls), records in points(results).items():
            if mine != scale:
                continue
            summary = summarise(np.array([record.get("fresh", record["return"]) for record in records]))
            if strategy == "full labels":
                axes.axhline(summary.mean, linestyle=":", color="grey", label="all states labelled")
                continue
            axes.errorbar(calls, summary.mean, summary.stderr, fmt="o", label=f"{strategy}, {calls:,} calls")
        axes.set_xscale("symlog", linthresh=1)
        axes.set(
            xlabel="evaluator calls (one training run each)", ylabel="return of the learned policy", xlim=(-0.3, None)
        )
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        found[f"Return against cost in {WORLD}, {percent(SHARE)} labelled: {scale}"] = figure
    return found


STUDY = network_study(NAME, __doc__, cells, rows, figures, 32, findings)
