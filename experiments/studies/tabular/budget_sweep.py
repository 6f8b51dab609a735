"""Shared by most tabular studies: strategies evaluated at all published budgets of a world in one episode."""

from collections.abc import Iterable, Mapping
from typing import Any

import agents
from experiments.engine.cell import Cell, Record
from experiments.engine.problems import prefix_masks, problem
from experiments.protocol.budgets import BUDGETS, WORLDS
from selectenv.env import RewardSelectionEnv

STRATEGIES = (
    "uniform",
    "visitation",
    "visitation-on-policy",
    "guided",
    "guided-on-policy",
    "terminal",
    "terminal-guided",
)


def play_cells(
    study: str,
    seeds: int,
    solver: str,
    variants: Mapping[str, dict[str, Any]],
    *,
    strategies: Iterable[str] = STRATEGIES,
    worlds: Iterable[str] = WORLDS,
) -> list[Cell]:
    """Return one cell per combination of world, variant, seed and strategy.

    A variant has a name, and options under "problem", "env" and "agent"; the seed of the data is that of the cell.
    """
    strategies = tuple(strategies)
    return [
        Cell(study, world, strategy, seed, {"variant": name, "solver": solver, "budgets": BUDGETS[world], **options})
        for world in worlds
        for name, options in variants.items()
        for seed in range(seeds)
        for strategy in strategies
    ]


def run_play(cell: Cell) -> list[Record]:
    """Play one episode with the largest budget, and evaluate the first labels at each budget."""
    settings = cell.settings
    task = problem(cell.world, {"dataset_seed": cell.seed, "solver": settings["solver"], **settings.get("problem", {})})
    seen = int(task.dataset.labelable.sum())
    budgets = tuple(b for b in settings["budgets"] if b <= seen)
    if not budgets:
        return []
    env = RewardSelectionEnv(task, budgets[-1], **settings.get("env", {}))
    agent = agents.make(cell.strategy, **settings.get("agent", {}))
    agent.train(env, cell.seed)
    episode = agents.play(env, agent, cell.seed)
    initial = len(env.reset(seed=cell.seed)[1]["initial"])
    kept = tuple(b for b in budgets if b > initial)
    returns = task.performance_many(prefix_masks(episode.labels, kept, task.n_states))
    labels = episode.ids.tolist()
    return [{"labels": b, "return": float(r), "ids": labels[:b]} for b, r in zip(kept, returns, strict=True)]
