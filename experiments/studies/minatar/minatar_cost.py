"""What does a search with an evaluator gain in Seaquest, where every evaluator call trains a network?

This is the published figure, with 60 % of the states labelled, with fewer points: an evolution strategy with a few
evaluations is no better than random, so the search is the best of 2, 4 and 8 sets drawn by visitation, evaluated on
episodes that were not used to choose.
"""

from typing import Any

import numpy as np

from experiments.analysis.claims import difference, is_not_better
from experiments.analysis.figures import new_figure
from experiments.analysis.game_comparison import published_game
from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary, summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent
from experiments.studies.minatar.network_cells import CLOSED, network_cell, network_study, open_loop_cells

NAME, WORLD, SHARE, SCALE = "minatar-cost", "Seaquest", 0.60, "fast"
SEARCH = {"max_evaluations": 8}


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return, seed by seed, the cells of strategies without evaluator calls, of full labels, and of the search."""
    found = []
    for seed in range(seeds):
        found.append(network_cell(WORLD, "full labels", seed, SCALE))
        found += open_loop_cells([seed], SCALE, ("uniform", "visitation"), (WORLD,), (SHARE,))
        found.append(network_cell(WORLD, "guided", seed, SCALE, **CLOSED))
        found.append(network_cell(WORLD, "best-of", seed, SCALE, share=SHARE, search=SEARCH))
    return found


def points(results: list[Result]) -> dict[tuple[str, int], list[Record]]:
    """Return the records by strategy and number of evaluator calls."""
    found: dict[tuple[str, int], list[Record]] = {}
    for result in results:
        for record in result.records:
            if record.get("labels") in (percent(SHARE), "") and "return" in record:
                found.setdefault((result.cell.strategy, int(record.get("cost", 0))), []).append(record)
    return found


def _summary(records: list[Record]) -> Summary:
    return summarise(np.array([record.get("fresh", record["return"]) for record in records]))


def rows(results: list[Result]) -> list[Row]:
    """Return the returns, with the number of calls as the setting, beside the published ones without a verdict."""
    known = published_game(WORLD)
    found = []
    for (strategy, calls), records in points(results).items():
        published, error = known.get((strategy, percent(SHARE)), (None, None))
        labels = "" if strategy == "full labels" else percent(SHARE)
        setting = f"{calls:,} calls"
        found.append(Row(WORLD, labels, strategy, "return", _summary(records), None, published, error, setting=setting))
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise the return for each number of calls, and say whether searching earns no more than guided."""
    sentences = [
        f"{WORLD}, {percent(SHARE)} labelled: "
        + ", ".join(f"{row.strategy} {row.ours.mean:.1f} ({row.setting})" for row in rows if row.ours)
    ]
    searches = [row for row in rows if row.strategy == "best-of" and row.ours]
    guided, full = (
        next((row.ours for row in rows if row.strategy == name), None) for name in ("guided", "full labels")
    )
    if searches and searches[-1].ours and guided and full:
        found = difference([(searches[-1].ours, guided)])
        assert found is not None
        sentences.append(
            f"{WORLD}: guided without an evaluator earns as much as a search with {searches[-1].setting}: "
            f"{is_not_better(found, full.mean)} (difference {found})"
        )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw return against evaluator calls."""
    figure = new_figure(7, 4)
    axes = figure.add_subplot()
    for (strategy, calls), records in points(results).items():
        summary = _summary(records)
        if strategy == "full labels":
            axes.axhline(summary.mean, linestyle=":", color="grey", label="all states labelled")
            continue
        axes.errorbar(calls, summary.mean, summary.stderr, fmt="o", label=f"{strategy}, {calls:,} calls")
    axes.set_xscale("symlog", linthresh=1)
    axes.set(xlabel="evaluator calls (one training run each)", ylabel="return of the learned policy", xlim=(-0.3, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return {f"Return against cost in {WORLD}, {percent(SHARE)} labelled": figure}


STUDY = network_study(NAME, __doc__, cells, rows, figures, 31, findings)
