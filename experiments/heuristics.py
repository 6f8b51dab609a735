"""Training-free strategies on the published budgets: what the studies of heuristics share."""

from collections import defaultdict

import numpy as np

import agents
from experiments.best_known import best_return
from experiments.cells import Cell, Record, Result
from experiments.protocol import BUDGETS, FEEDBACK, WORLDS, allowed_returns, number, prefix_masks, problem, published
from experiments.statistics import summarise
from experiments.study import Row
from experiments.verdicts import judge
from selectenv.env import RewardSelectionEnv

STRATEGIES = (
    "uniform", "visitation", "visitation-on-policy", "guided", "guided-on-policy", "terminal", "terminal-guided",
)  # fmt: skip
REASONS = {
    "guided": "the configuration behind the published guided columns is not known",
    "guided-on-policy": "the configuration behind the published guided columns is not known",
    "visitation-on-policy": "the published occupancy seems to lose the mass of tied actions (occupancy='published')",
}


def heuristic_cells(study: str, learner: str, seeds: int, solver: str) -> list[Cell]:
    """Return a cell a world, strategy and seed; one episode gives all budgets."""
    settings = {"learner": learner, "solver": solver}
    return [
        Cell(study, world, strategy, seed, settings)
        for world in WORLDS
        for seed in range(seeds)
        for strategy in STRATEGIES
    ]


def run_heuristic(cell: Cell) -> list[Record]:
    """Play one episode of the largest budget on data of its own seed, and score the first labels of each budget."""
    budgets = BUDGETS[cell.world]
    task = problem(cell.world, dataset_seed=cell.seed, **cell.settings)
    env = RewardSelectionEnv(task, budgets[-1])
    episode = agents.play(env, agents.make(cell.strategy), cell.seed)
    returns = task.performance_many(prefix_masks(episode.labels, budgets, task.n_states))
    labels = episode.ids.tolist()
    return [{"labels": b, "return": float(r), "ids": labels[:b]} for b, r in zip(budgets, returns, strict=True)]


def heuristic_rows(results: list[Result], table: str) -> list[Row]:
    """Set the mean over seeds beside the published one."""
    returns: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    learner = results[0].cell.settings["learner"] if results else "uds"
    for result in results:
        for record in result.records:
            returns[result.cell.world, result.cell.strategy, record["labels"]].append(record["return"])
    known = {
        (row["domain"], row["strategy"], BUDGETS[row["domain"]][FEEDBACK.index(float(row["feedback"]))]): row
        for row in published(table)
    }
    rows = []
    for (world, strategy, labels), values in returns.items():
        ours = np.array(values)
        baseline = returns.get((world, "uniform", labels))
        summary = summarise(ours, np.array(baseline) if baseline and strategy != "uniform" else None)
        gap = best_return(world, learner, labels) - summary.mean
        theirs = known.get((world, strategy, labels))
        if theirs is None:
            rows.append(Row(world, labels, strategy, "return", summary, gap))
            continue
        mean, error = float(theirs["mean"]), number(theirs["stderr"])
        reason = REASONS.get(strategy, "unexplained")
        verdict = judge(mean, error or 1e-9, ours, 0.0, stochastic=True, allowed=allowed_returns(world), reason=reason)
        rows.append(Row(world, labels, strategy, "return", summary, gap, mean, error, verdict))
    return rows
