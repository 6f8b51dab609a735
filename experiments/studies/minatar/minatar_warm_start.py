"""What do refits that start from the networks of the refit before cost in return?

A label set that grows by 2.5 % of the states at a time, in an order drawn by visitation, is learned by refits that
start from the networks of the refit before, for a fifth of the updates each: always, or except when the number of
labels has doubled since the last training from scratch. At three budgets the return of these networks is compared with
that of networks that are trained from scratch on the same labels. Guided is also played with refits from scratch, to
compare the labels that it chooses.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import agents
from experiments.analysis.claims import by_budget, is_not_better
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row, mean_of
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent, percentage
from experiments.studies.game_episodes import game_problem
from experiments.studies.minatar.network_cells import (
    CLOSED,
    network_cell,
    network_study,
    of_game,
    run_network_cell,
    warm_options,
)
from experiments.studies.training_checkpoints import checkpoints
from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.learners.base import FitResult
from selectenv.problem import SelectionProblem

NAME, SCALE, GAMES = "minatar-warm-start", "fast", ("Breakout", "Asterix")
BUDGETS = (0.30, 0.60, 0.90)
REFITS = "refits"
"""Strategy of the cells that compare both ways of training on the same labels."""
WARM, ALWAYS, COLD = "warm start", "always warm start", "from scratch"
ALWAYS_REFITS = {name: value for name, value in CLOSED.items() if name != "growth"}
ALWAYS_SEEDS = 1
"""Seeds of refits that always start warm."""
COLD_REFITS = {**ALWAYS_REFITS, "warm": False}
COLD_SEEDS = 1
"""Seeds of guided with refits from scratch, which takes an hour or more each."""


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return, seed by seed, the cells that compare both ways of training, and of guided with both kinds of refits."""
    found = []
    for seed in range(seeds):
        kinds = (CLOSED, ALWAYS_REFITS) if seed < ALWAYS_SEEDS else (CLOSED,)
        found += [network_cell(game, REFITS, seed, SCALE, budgets=BUDGETS, **kind) for kind in kinds for game in GAMES]
        kinds = (CLOSED, COLD_REFITS) if seed < COLD_SEEDS else (CLOSED,)
        found += [network_cell(game, "guided", seed, SCALE, **kind) for kind in kinds for game in GAMES]
    return found


def run_cell(cell: Cell) -> list[Record]:
    """Learn growing label sets with warm starts and from scratch; guided runs as in other studies."""
    if cell.strategy != REFITS:
        return run_network_cell(cell)
    with checkpoints(cell) as folder:
        return _run_refits(cell, folder)


def _run_refits(cell: Cell, folder: Path) -> list[Record]:
    """Learn growing label sets with warm starts and, at each budget, from scratch; checkpoints are in ``folder``."""
    shared = game_problem(cell, **warm_options(cell))
    learner: Any = shared.learner
    task = SelectionProblem(shared.dataset, replace(learner, checkpoints=folder), shared.evaluator)
    unit = number_of_labels(cell.settings["refit"], task.n_states)
    steps = round(cell.settings["reach"] / cell.settings["refit"])
    env = RewardSelectionEnv(task, steps * unit, labels_per_refit=steps * unit + 1)
    order = agents.play(env, agents.make("visitation"), cell.seed).labels
    wanted = {round(share / cell.settings["refit"]): share for share in cell.settings["budgets"]}
    records: list[Record] = []
    warm: FitResult | None = None
    for step in range(1, steps + 1):
        labels = order[: step * unit]
        warm = task.learn(labels, warm)
        if step in wanted:
            records.append(
                {
                    "labels": percent(wanted[step]),
                    "return": float(np.mean(task.learning_curve(labels).returns)),
                    WARM: float(np.mean(task.evaluator.returns(warm.batch))),
                }
            )
    return records


def rows(results: list[Result]) -> list[Row]:
    """Return one row per game, budget and way of training, for the same labels and for guided."""
    found = []
    for game in GAMES:
        values: dict[tuple[str, str, str], dict[int, float]] = {}
        for result in of_game(results, game):
            same = result.cell.strategy == REFITS
            setting = "the same labels" if same else "labels of guided"
            for record in result.records:
                if same:
                    kind = WARM if "growth" in result.cell.settings else ALWAYS
                    values.setdefault((setting, record["labels"], kind), {})[result.cell.seed] = record[WARM]
                way = WARM if not same and result.cell.settings["warm"] else COLD
                # Both kinds of warm starts come with the same training from scratch.
                values.setdefault((setting, record["labels"], way), {})[result.cell.seed] = record["return"]
        found += [
            Row(game, labels, way, "return", summarise(np.array([*runs.values()])), None, setting=setting)
            for (setting, labels, way), runs in values.items()
        ]
    return found


def findings(rows: list[Row]) -> list[str]:
    """Say whether warm starts earn as much as training from scratch, budget by budget and on average."""
    sentences = []
    for setting in dict.fromkeys(row.setting for row in rows):
        for game in dict.fromkeys(row.world for row in rows):
            mine = [row for row in rows if (row.world, row.setting) == (game, setting)]
            for way, what in ((WARM, "warm starts"), (ALWAYS, "warm starts without any training from scratch")):
                found = by_budget(mine, COLD, way)
                if found is None:
                    continue
                budgets = [str(row.labels) for row in mine if row.strategy == way]
                listed = ", ".join(
                    f"{labels} {mean_of(mine, strategy=way, labels=labels):.2f} against "
                    f"{mean_of(mine, strategy=COLD, labels=labels):.2f}"
                    for labels in budgets
                )
                sentences.append(
                    f"{game}, {setting}: {what} earn as much as training from scratch: "
                    f"{is_not_better(found, found.first)}; {listed} (lost on average: {found})"
                )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw return against labels for both ways of training, one panel per game and kind of labels."""
    found = rows(results)
    settings = list(dict.fromkeys(row.setting for row in found))
    figure = new_figure(9, 3.2 * len(settings))
    for i, setting in enumerate(settings):
        for j, game in enumerate(GAMES):
            axes = figure.add_subplot(len(settings), len(GAMES), len(GAMES) * i + j + 1)
            for way in (WARM, ALWAYS, COLD):
                points = sorted(
                    (percentage(row.labels), row.ours.mean, row.ours.stderr)
                    for row in found
                    if row.ours and (row.world, row.setting, row.strategy) == (game, setting, way)
                )
                if points:
                    axes.errorbar(*zip(*points, strict=True), label=way, marker="o", markersize=3)
            axes.set_title(f"{game}, {setting}", fontsize=9)
            axes.set(xlabel="percentage of states labelled", ylabel="return")
            axes.grid(alpha=0.3)
            if axes.has_data():
                axes.legend(fontsize=7)
    return {"Return of refits with a warm start and from scratch": figure}


STUDY = replace(network_study(NAME, __doc__, cells, rows, figures, 29, findings), run_cell=run_cell)
