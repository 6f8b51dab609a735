"""What do the best label sets contain: optimal paths, what lies next to them, penalties?"""

from typing import Any

import numpy as np

import selectenv
from experiments.analysis.best_known import best_known
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import problem
from experiments.engine.study import Study
from experiments.protocol.budgets import BUDGETS, WORLDS
from selectenv.domains.tabular import TabularWorld, optimal_policy
from selectenv.rendering.selection import draw
from selectenv.typing import BoolArray

NAME = "patterns"
PATTERNS = ("on optimal paths", "next to them", "at penalties")


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return a cell a world."""
    return [Cell(NAME, world, "best known", 0, {"solver": solver, "budgets": BUDGETS[world]}) for world in WORLDS]


def pattern_states(world: TabularWorld) -> dict[str, BoolArray]:
    """Return which states [n] belong to each pattern.

    On optimal paths: reached by the best policy if every move has its likeliest outcome. Next to them: one step away in
    either direction. At penalties: where some outcome pays the world's smallest reward, if that is worse than what most
    outcomes pay, or ends without the reward that other ends pay.
    """
    on_path, inside = _likeliest_path(world), world.next_state >= 0
    near = np.zeros(world.n_states, bool)
    near[world.next_state[inside][on_path[world.state[inside]]]] = True
    near[world.state[inside][on_path[world.next_state[inside]]]] = True
    ends = ~inside
    bad = (world.reward == world.reward.min()) & (world.reward < np.median(world.reward))
    if ends.any():
        bad |= ends & (world.reward < world.reward[ends].max()) & (world.reward <= 0)
    penalty = np.zeros(world.n_states, bool)
    penalty[world.state[bad]] = True
    return dict(zip(PATTERNS, (on_path, near & ~on_path, penalty), strict=True))


def _likeliest_path(world: TabularWorld) -> BoolArray:
    """Return the states on the way of the best policy, from any start, with the likeliest outcomes only."""
    pair = world.state * world.n_actions + world.action
    likeliest = np.zeros(world.n_states * world.n_actions)
    np.maximum.at(likeliest, pair, world.probability)
    follow = (optimal_policy(world)[world.state, world.action] > 0) & (world.probability >= likeliest[pair] - 1e-12)
    follow &= world.next_state >= 0
    reached = world.start > 0
    for _ in range(world.horizon):
        reached[world.next_state[follow][reached[world.state[follow]]]] = True
    return reached


def run_cell(cell: Cell) -> list[Record]:
    """Measure the shares of each budget's best set, and what uniform labels would give."""
    patterns = pattern_states(selectenv.TABULAR[cell.world].make())
    task = problem(cell.world)
    records = []
    for labels in cell.settings["budgets"]:
        entry = best_known()[f"{cell.world}/uds/{labels}"]
        chosen = task.actions(entry["ids"])
        for name, states in patterns.items():
            share, chance = float(states[chosen].mean()), float(states.mean())
            records.append({"labels": labels, "pattern": name, "share": share, "uniform": chance, "ids": entry["ids"]})
    return records


def rows(results: list[Result]) -> list[Row]:
    """Return the share of labels in each pattern; the gap is what uniform would give."""
    found = []
    for result in results:
        for r in result.records:
            summary = Summary(1, r["share"], 0.0, r["share"], r["share"], r["share"])
            setting = f"{r['pattern']} (uniform {r['uniform']:.2f})"
            found.append(
                Row(result.cell.world, r["labels"], "best known", "share of labels", summary, None, setting=setting)
            )
    return found


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the best sets, world by world and budget by budget."""
    found = {}
    for world in WORLDS:
        task, budgets = problem(world), BUDGETS[world]
        figure = new_figure(3.2 * len(budgets), 2.4)
        for i, labels in enumerate(budgets):
            entry = best_known()[f"{world}/uds/{labels}"]
            labelled_at = np.zeros(task.n_states, np.int64)
            labelled_at[task.actions(entry["ids"])] = np.arange(1, labels + 1)
            draw(
                figure.add_subplot(1, len(budgets), i + 1), task, labelled_at, f"{labels} labels: {entry['return']:.2f}"
            )
        found[f"Best sets known in {world}"] = figure
    return found


STUDY = Study(NAME, __doc__, cells, run_cell, rows, 1, figures, place=11)
