"""Strategies played on the published budgets, one episode for all of them: what most studies share."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import agents
from experiments.analysis.best_known import best_return
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import judge
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import prefix_masks, problem
from experiments.engine.study import Row
from experiments.protocol.budgets import BUDGETS, FEEDBACK, WORLDS
from experiments.protocol.published import allowed_returns, number, published
from selectenv.env import RewardSelectionEnv

STRATEGIES = (
    "uniform", "visitation", "visitation-on-policy", "guided", "guided-on-policy", "terminal", "terminal-guided",
)  # fmt: skip
REASONS = {
    "guided": "the configuration behind the published guided columns is not known",
    "guided-on-policy": "the configuration behind the published guided columns is not known",
    "visitation-on-policy": "the published occupancy seems to lose the mass of tied actions (occupancy='published')",
}
MORE_LABELS = "the published figures of this share look like more labels"
Lookup = Callable[[str, str, str, int], tuple[float, float | None] | None]
"""World, variant, strategy, labels -> published mean and error, if there are any."""


def play_cells(
    study: str, seeds: int, solver: str, variants: Mapping[str, dict[str, Any]], *,
    strategies: Iterable[str] = STRATEGIES, worlds: Iterable[str] = WORLDS,
) -> list[Cell]:  # fmt: skip
    """Return a cell a world, variant, seed and strategy.

    A variant has a name and options under "problem", "env" and "agent"; seeds of the data follow the cell's own.
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
    """Play one episode of the largest budget on data of its own seed, and score the first labels of each budget."""
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


def play_rows(results: list[Result], lookup: Lookup | None = None) -> list[Row]:
    """Set the mean over seeds beside the published one."""
    returns: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    learners: dict[str, str] = {}
    for result in results:
        variant = result.cell.settings["variant"]
        learners[variant] = result.cell.settings.get("problem", {}).get("learner", "uds")
        for record in result.records:
            returns[result.cell.world, variant, result.cell.strategy, record["labels"]].append(record["return"])
    rows = []
    for (world, variant, strategy, labels), values in returns.items():
        ours = np.array(values)
        baseline = returns.get((world, variant, "uniform", labels))
        summary = summarise(ours, np.array(baseline) if baseline and strategy != "uniform" else None)
        gap = best_return(world, learners[variant], labels) - summary.mean
        theirs = lookup(world, variant, strategy, labels) if lookup else None
        if theirs is None:
            rows.append(Row(world, labels, strategy, "return", summary, gap, setting=variant))
            continue
        mean, error = theirs
        verdict = judge(
            mean, error, ours, 0.0, stochastic=True, allowed=allowed_returns(world), noisy_mean=True,
            reason=MORE_LABELS if (world, labels) == ("Tree", 27) else REASONS.get(strategy, "unexplained"),
        )  # fmt: skip
        rows.append(Row(world, labels, strategy, "return", summary, gap, mean, error, verdict, setting=variant))
    return rows


def table_lookup(table: str) -> Lookup:
    """Return the look-up of a published table of heuristics."""
    known = {
        (row["domain"], row["strategy"], BUDGETS[row["domain"]][FEEDBACK.index(float(row["feedback"]))]): row
        for row in published(table)
    }

    def lookup(world: str, variant: str, strategy: str, labels: int) -> tuple[float, float | None] | None:
        row = known.get((world, strategy, labels))
        return (float(row["mean"]), number(row["stderr"])) if row else None

    return lookup
