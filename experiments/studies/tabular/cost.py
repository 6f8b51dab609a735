"""What return does a strategy reach at which cost?"""

from collections import defaultdict
from typing import Any

import numpy as np

import agents
from agents.errors import SearchLimitError
from experiments.analysis.best_known import best_return
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import NOT_ENUMERATED
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import problem
from experiments.engine.study import Study
from experiments.protocol.budgets import BUDGETS, WORLDS
from experiments.studies.tabular.search_results import CERTAIN, OPTIONS
from selectenv.env import RewardSelectionEnv

NAME = "cost"
SEEDS = 10
FEWER = {"optuna": 1}
"""Strategies with fewer seeds, because they are slow."""
MORE_OPTIONS = {**OPTIONS, "optuna": {"max_evaluations": 60}, "swap-search": {"max_evaluations": 20_000}}


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per world, strategy and seed, at the second budget of the world."""
    return [
        Cell(NAME, world, strategy, seed, {"solver": solver, "budget": BUDGETS[world][1]})
        for world in WORLDS
        for strategy, (kind, _) in agents.AGENTS.items()
        if not kind.slow
        for seed in range(1 if strategy in CERTAIN else min(seeds, FEWER.get(strategy, seeds)))
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Train and play a strategy."""
    task = problem(cell.world, {"solver": cell.settings["solver"]})
    env = RewardSelectionEnv(task, cell.settings["budget"])
    agent = agents.make(cell.strategy, **MORE_OPTIONS.get(cell.strategy, {}))
    try:
        agent.train(env, cell.seed)
    except SearchLimitError:
        return [{"labels": env.budget, "note": NOT_ENUMERATED}]
    episode = agents.play(env, agent, cell.seed)
    return [{"labels": env.budget, "return": episode.performance, "cost": episode.cost, "ids": episode.ids.tolist()}]


def _grouped(results: list[Result]) -> dict[tuple[str, str, int], list[Record]]:
    found: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for result in results:
        for record in result.records:
            found[result.cell.world, result.cell.strategy, record["labels"]].append(record)
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return the returns, with the cost as the setting."""
    found = []
    for (world, strategy, labels), records in _grouped(results).items():
        runs = [record for record in records if "return" in record]
        if not runs:
            found.append(Row(world, labels, strategy, "return", None, None, note=NOT_ENUMERATED))
            continue
        summary = summarise(np.array([record["return"] for record in runs]))
        cost = f"{np.mean([record['cost'] for record in runs]):,.0f} calls"
        found.append(
            Row(
                world,
                labels,
                strategy,
                "return",
                summary,
                best_return(world, "uds", labels) - summary.mean,
                setting=cost,
            )
        )
    return found


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw return against cost, one panel per world."""
    figure = new_figure(11, 7)
    for i, world in enumerate(WORLDS):
        axes = figure.add_subplot(2, 3, i + 1)
        for (place, strategy, labels), records in _grouped(results).items():
            runs = [record for record in records if "return" in record]
            if place != world or not runs:
                continue
            calls = np.mean([record["cost"] for record in runs])
            earned = np.mean([record["return"] for record in runs])
            axes.scatter(calls, earned, s=18)
            axes.annotate(strategy, (calls, earned), fontsize=6, xytext=(2, 2), textcoords="offset points")
            axes.set_title(f"{world}, {labels} labels", fontsize=9)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlabel("cost (performances disclosed)", fontsize=8)
        axes.tick_params(labelsize=8)
    return {"Return against cost": figure}


STUDY = Study(NAME, __doc__, cells, run_cell, rows, SEEDS, figures, place=10)
