"""How much does the choice of states matter? The distribution of returns over all label sets of a given size."""

from math import comb
from typing import Any

import numpy as np

from experiments.analysis.best_known import best_return
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import problem
from experiments.engine.study import Study
from selectenv.kernels.tabular.subsets import combination, fill_masks
from selectenv.streams import generator

NAME = "combinations"
WORLDS = ("Graph", "Tree")
SHARES = (0.2, 0.4, 0.6)
MOST = 2_000_000
"""Up to this many sets, all are evaluated; beyond, a tenth of this number is sampled at random."""
BLOCK, BINS = 1 << 16, 60


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per world and share."""
    return [
        Cell(NAME, world, f"{share:.0%}", 0, {"solver": solver, "share": share}) for world in WORLDS for share in SHARES
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Evaluate all sets, or a random sample, and record the distribution of their returns."""
    task = problem(cell.world, {"solver": cell.settings["solver"]})
    n = task.n_states
    labels = round(cell.settings["share"] * n)
    sets, everything = comb(n, labels), comb(n, labels) <= MOST
    count = sets if everything else MOST // 10
    current, rng = combination(0, n, labels), generator(0, "combinations", cell.world, labels)
    returns = np.empty(count)
    for first in range(0, count, BLOCK):
        masks = np.zeros((min(BLOCK, count - first), n), bool)
        if everything:
            fill_masks(current, np.arange(n), masks)
        else:
            np.put_along_axis(masks, np.argsort(rng.random(masks.shape), axis=1)[:, :labels], True, axis=1)
        returns[first : first + len(masks)] = task.performance_many(masks)
    heights, edges = np.histogram(returns, BINS)
    return [
        {
            "labels": labels,
            "sets": sets,
            "tried": count,
            "mean": float(returns.mean()),
            "std": float(returns.std()),
            "quantiles": np.quantile(returns, (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)).tolist(),
            "heights": heights.tolist(),
            "edges": edges.tolist(),
        }
    ]


def rows(results: list[Result]) -> list[Row]:
    """Return the mean and the central 90 % interval over the sets."""
    found = []
    for result in results:
        for r in result.records:
            q = r["quantiles"]
            summary = Summary(r["tried"], r["mean"], r["std"] / np.sqrt(r["tried"]), q[1], q[5], q[3])
            how = f"all {r['sets']:,} sets" if r["tried"] == r["sets"] else f"{r['tried']:,} of {r['sets']:,} sets"
            best = best_return(result.cell.world, "uds", r["labels"])
            gap = (q[-1] if np.isnan(best) else best) - r["mean"]
            found.append(Row(result.cell.world, r["labels"], "any set", "return", summary, gap, setting=how))
    return found


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the distributions as histograms."""
    figure = new_figure(9, 4.5)
    for i, result in enumerate(results):
        axes = figure.add_subplot(len(WORLDS), len(SHARES), i + 1)
        record = result.records[0]
        axes.stairs(record["heights"], record["edges"], fill=True)
        axes.set_title(f"{result.cell.world}, {record['labels']} labels", fontsize=9)
        axes.set_yticks([])
        axes.tick_params(labelsize=8)
    return {"Returns of all label sets of a given size": figure}


STUDY = Study(NAME, __doc__, cells, run_cell, rows, 1, figures, place=9)
