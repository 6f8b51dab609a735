"""Shared by the studies of the control worlds: problems, references and records of label sets over groups.

Every return is that of 200 fresh episodes, which no search has seen, and "normalised" sets random actions to 0 and the
expert that collected the data to 1.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np

import selectenv
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import large_problem
from experiments.protocol.budgets import percent
from experiments.studies.game_episodes import file_mark
from selectenv.domains.gym_experts import FOLDER, load_gym_expert
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray

WORLDS = ("CartPole", "Acrobot", "LunarLander", "MountainCar")
"""The worlds in the order in which they are run; the two with networks come first."""
GROUPS = 200
SHARES = (0.05, 0.10, 0.20, 0.40)
"""Budgets, as shares of the groups."""
FRESH_SEED, FRESH_EPISODES = 1, 200
"""Seed and number of the episodes that results are measured in."""
FULL, NONE = "full labels", "no labels"
REFERENCES = (FULL, NONE)
METRICS = ("return", "normalised")
PLAYING = {"CartPole": 0.01, "Acrobot": 0.02, "LunarLander": 0.4, "MountainCar": 0.01}
"""Seconds on one core per evaluation, 50 episodes."""
COLLECTING, CLUSTERING = 3.0, 0.3
"""Seconds on one core to collect 100,000 transitions, and to find 200 clusters of them."""
TABLE, NETWORK = "table", "network"
"""Variants of cells: what learns."""


def control_cell(
    study: str,
    world: str,
    strategy: str,
    seed: int,
    groups: int | str,
    variant: str = TABLE,
    learning: Mapping[str, Any] | None = None,
    **more: Any,
) -> Cell:
    """Return a cell; other data, or another preset of networks, give another cell.

    Args:
        study: the study it belongs to.
        world: the world.
        strategy: what it is compared as.
        seed: seed of the data, of the selection and of the learner.
        groups: what a label covers.
        variant: `TABLE` or `NETWORK`.
        learning: options of the learner that are not the defaults.
        **more: more settings of the cell.
    """
    defaults = selectenv.CONTROL[world].defaults
    options: dict[str, Any] = {"groups": groups, "expert_share": defaults.expert_share, **(learning or {})}
    if variant == NETWORK:
        options |= {"learner": "iql", "learner_seed": seed}
        more["preset"] = asdict(defaults.learning.preset(None))
    return Cell(
        study, world, strategy, seed, {"variant": variant, "expert": expert_mark(world), "problem": options, **more}
    )


def expert_mark(world: str) -> str:
    """Return the hash of the expert that collects the data, so that another expert gives other cells.

    The world itself is not made: cells are listed also where its extra is not installed.
    """
    (path,) = FOLDER.glob(f"{world.lower()}-v*.npz")
    return file_mark(path)


def control_problem(cell: Cell, **more: Any) -> SelectionProblem:
    """Return the problem of a cell; the seed of the data is that of the cell."""
    options = {"dataset_seed": cell.seed, **cell.settings.get("problem", {}), **more}
    return large_problem(cell.world, options)


def fresh_problem(cell: Cell, **more: Any) -> SelectionProblem:
    """Return the same problem with an evaluator that plays fresh episodes."""
    return control_problem(cell, evaluation_seed=FRESH_SEED, rollouts=FRESH_EPISODES, **more)


@cache
def return_range(world: str) -> tuple[float, float]:
    """Return what random actions and the shipped expert earn, by the expert's card."""
    expert: Any = load_gym_expert(selectenv.CONTROL[world].make(), "published")
    return float(expert.card["random_return"]), float(expert.card["return"])


def record(world: str, task: SelectionProblem, labels: BoolArray, share: float | None, **more: Any) -> Record:
    """Return the return of a label set [n], with the share of transitions whose rewards it reveals."""
    low, high = return_range(world)
    earned = task.score(labels)
    return {
        "labels": "" if share is None else percent(share),
        "share": share,
        "return": earned,
        "normalised": (earned - low) / (high - low),
        "transitions": float(labels[task.dataset.state].mean()),
        "groups": task.n_states,
        **more,
    }


def reference_labels(task: SelectionProblem, strategy: str) -> BoolArray:
    """Return all labels or none."""
    return task.dataset.labelable.copy() if strategy == FULL else np.zeros(task.n_states, bool)


def control_rows(results: list[Result]) -> list[Row]:
    """Return one row per world, variant, strategy, budget and metric; there is nothing published to compare with."""
    found: dict[tuple[str, str, str, str, str], list[float]] = defaultdict(list)
    for result in results:
        for one in result.records:
            for metric in METRICS:
                key = result.cell.world, result.cell.settings["variant"], result.cell.strategy, one["labels"], metric
                found[key].append(one[metric])
    return [
        Row(world, labels, strategy, metric, summarise(np.array(values)), None, setting=variant)
        for (world, variant, strategy, labels, metric), values in found.items()
    ]


def panels(worlds: Iterable[str], results: list[Result]) -> tuple[Any, dict[str, Any]]:
    """Return a figure with one panel per world that has results, and its axes by world."""
    present = [world for world in worlds if any(result.cell.world == world for result in results)]
    figure = new_figure(4.2 * min(2, max(1, len(present))), 3.2 * max(1, -(-len(present) // 2)))
    axes = {}
    for i, world in enumerate(present):
        axes[world] = figure.add_subplot(-(-len(present) // 2), min(2, len(present)), i + 1)
        axes[world].set_title(world, fontsize=10)
        axes[world].grid(alpha=0.3)
        axes[world].tick_params(labelsize=8)
    return figure, axes
