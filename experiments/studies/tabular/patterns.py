"""What do the best label sets contain: optimal paths, their neighbours, penalties?"""

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
    """Return one cell per world."""
    return [Cell(NAME, world, "best known", 0, {"solver": solver, "budgets": BUDGETS[world]}) for world in WORLDS]


def pattern_states(world: TabularWorld) -> dict[str, BoolArray]:
    """Return the mask [n] of the states of each pattern.

    On optimal paths: visited by the optimal policy if every action has its most likely outcome. Next to them: one step
    away, in either direction. At penalties: states with an outcome that pays the smallest reward of the world, if that
    is below the median, or that terminates with a reward of at most 0 while other terminations pay more.
    """
    on_path, inside = _likeliest_path(world), world.next_state >= 0
    near = np.zeros(world.n_states, bool)
    near[world.next_state[inside][on_path[world.state[inside]]]] = True
    near[world.state[inside][on_path[world.next_state[inside]]]] = True
    terminal = ~inside
    bad = (world.reward == world.reward.min()) & (world.reward < np.median(world.reward))
    if terminal.any():
        bad |= terminal & (world.reward < world.reward[terminal].max()) & (world.reward <= 0)
    penalty = np.zeros(world.n_states, bool)
    penalty[world.state[bad]] = True
    return dict(zip(PATTERNS, (on_path, near & ~on_path, penalty), strict=True))


def _likeliest_path(world: TabularWorld) -> BoolArray:
    """Return the mask [n] of states that the optimal policy visits with the most likely outcomes, from any start."""
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
    """Compute the share of labels in each pattern, for the best known set of each budget and for uniform labels."""
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
    """Return the share of labels in each pattern; the setting gives the share that uniform labels would have."""
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
    """Draw the best known sets, one figure per world and one panel per budget."""
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
        found[f"Best known sets in {world}"] = figure
    return found


STUDY = Study(NAME, __doc__, cells, run_cell, rows, 1, figures, place=11)
