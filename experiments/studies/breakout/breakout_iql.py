"""Do an exactly solved table and a network rank label sets of Breakout in the same order?

Both learners are given the same label sets, and both policies are evaluated on the same episodes. Strategies that use
learned values choose labels with the table, which takes milliseconds; only guided chooses with the network.
"""

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.analysis.figures import new_figure
from experiments.analysis.game_comparison import compare_game, metrics_by_cell
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.studies.game_episodes import HEURISTICS, TABLE, played
from experiments.studies.minatar.network_cells import CLOSED, OPEN, network_cell, network_study, open_loop_cells

NAME, WORLD = "breakout-iql", "Breakout"
SCALE, FEW = "fast", (0.15, 0.30, 0.60)
CHOOSER = {"scale": SCALE, "learner": "uds", "expectile": TABLE["expectile"]}
"""Options of the problem whose table chooses the labels."""
CHOSEN_BY_TABLE = (*(name for name in HEURISTICS if name not in (*OPEN, "guided")), "es-1000")


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of full labels and of strategies at the budgets `FEW`."""
    found = []
    for seed in range(seeds):
        found.append(network_cell(WORLD, "full labels", seed, SCALE))
        found.append(network_cell(WORLD, "guided", seed, SCALE, **CLOSED))
        found += open_loop_cells([seed], SCALE, OPEN, (WORLD,), FEW)
        found += [
            network_cell(WORLD, strategy, seed, SCALE, share=share, chooser=CHOOSER)
            for share in FEW
            for strategy in CHOSEN_BY_TABLE
        ]
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return the returns of the network and of the table."""
    return compare_game(results, {}, metric="return") + compare_game(results, {}, metric="exact")


def pairs(results: list[Result], variant: str) -> tuple[list[str], Any, Any]:
    """Return the name of each strategy and budget, and its mean returns with the table and with the network."""
    network, table = metrics_by_cell(results, "return"), metrics_by_cell(results, "exact")
    names = [key for key in network if key[0] == variant and key in table]
    means = [[float(np.mean(found[key])) for key in names] for found in (table, network)]
    return [f"{strategy} {labels}".strip() for _, strategy, labels in names], np.array(means[0]), np.array(means[1])


def correlation(first: Any, second: Any) -> float:
    """Return Spearman's rank correlation; NaN if either input is constant."""
    return float(spearmanr(first, second).statistic) if len(set(first)) > 1 and len(set(second)) > 1 else float("nan")


def findings(rows: list[Row]) -> list[str]:
    """Summarise the rank correlation over all strategies and budgets, and at each budget."""
    sentences = []
    for scale in dict.fromkeys(row.setting for row in rows):
        means: dict[str, dict[tuple[str, str], float]] = {"return": {}, "exact": {}}
        for row in rows:
            if row.setting == scale and row.ours and row.strategy != "full labels":
                means[row.metric][row.strategy, str(row.labels)] = row.ours.mean
        shared = [key for key in means["return"] if key in means["exact"]]
        if len(shared) < 3:
            continue
        parts = [("all budgets", shared), *((b, [key for key in shared if key[1] == b]) for b in _budgets(shared))]
        ranks = ", ".join(
            f"{name} {correlation([means['exact'][k] for k in keys], [means['return'][k] for k in keys]):.2f} "
            f"({len(keys)})"
            for name, keys in parts
            if len(keys) > 2
        )
        sentences.append(f"{scale}: rank correlation of table and network over strategies: {ranks}")
    return sentences


def _budgets(keys: list[tuple[str, str]]) -> list[str]:
    return sorted({labels for _, labels in keys})


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the network's return against the table's, one point per strategy and budget."""
    found = {}
    for scale in played(results):
        names, table, network = pairs(results, scale)
        if not names:
            continue
        figure = new_figure(7, 5)
        axes = figure.add_subplot()
        axes.scatter(table, network, s=18)
        for name, x, y in zip(names, table, network, strict=True):
            axes.annotate(name, (x, y), fontsize=6, xytext=(2, 2), textcoords="offset points")
        axes.set(xlabel="return with the table", ylabel="return with the network")
        axes.grid(alpha=0.3)
        found[f"The same label sets, learned by a table and by a network: {scale}"] = figure
    return found


STUDY = network_study(NAME, __doc__, cells, rows, figures, 32, findings)
