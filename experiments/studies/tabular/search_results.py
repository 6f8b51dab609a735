"""Strategies that search on the training data, scored there and on the five test mixtures: what these studies share."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import agents
import selectenv
from agents.errors import SearchLimitError
from experiments.analysis.best_known import best_named, best_return
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import Verdict, judge
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import problem
from experiments.engine.study import Row
from experiments.protocol.budgets import WORLDS
from experiments.protocol.published import allowed_returns, number, published
from selectenv.env import RewardSelectionEnv
from selectenv.evaluation import RolloutReturns
from selectenv.options import TEST_SHARES

EPISODES = 10_000
"""Episodes behind a published figure."""
DETERMINISTIC = ("brute-force", "sequential-greedy", "swap-search", "exact")
CERTAIN = frozenset({*DETERMINISTIC, "terminal", "terminal-guided", "learned", "beam", "reduced-brute-force"})
"""All strategies that leave nothing to chance: one seed of them is enough."""
OPTIONS: Mapping[str, dict[str, Any]] = {
    "exact": {"max_evaluations": 300_000, "seconds": 1e9},  # a limit on evaluations gives the same result everywhere
    "swap-search": {"max_evaluations": 50_000},
}
NOT_ENUMERATED = "not enumerated"
REASONS = {
    "guided": "the published guided column uses other budgets in some worlds, and its configuration is not known",
    "brute-force": "the published row repeats sequential-greedy, which is not always optimal",
}
PLATEAU = (
    "greedy meets a plateau where all additions tie; the order of tied states decides if it gets off (ours: first)"
)
NOISY = "the published learner's noise moves the policy in FrozenLake (see solver='sampled')"


def reason_for(world: str, strategy: str, gap: float) -> str:
    """Return why a figure may differ, as far as we know; the gap is that of our training score to the best set."""
    if strategy == "sequential-greedy" and world == "CliffWalk" and gap > 1:
        return PLATEAU
    return REASONS.get(strategy, NOISY if world == "FrozenLake" else "unexplained")


def trained_cells(
    study: str, learner: str, strategies: Iterable[str], budgets: Mapping[str, Sequence[int]], seeds: int, solver: str
) -> list[Cell]:
    """Return a cell a world, budget, strategy and seed; strategies without chance have one seed."""
    return [
        Cell(study, world, strategy, seed, {"learner": learner, "solver": solver, "budget": budget})
        for world in WORLDS
        for budget in budgets[world]
        for strategy in strategies
        for seed in range(1 if strategy in DETERMINISTIC else seeds)
    ]


def make_agent(strategy: str) -> agents.Agent:
    """Return a strategy by name; "es-8x20" is an evolution strategy of 8 iterations of 20."""
    if strategy.startswith("es-") and "x" in strategy:
        iterations, population = strategy.removeprefix("es-").split("x")
        return agents.make("es", iterations=int(iterations), population=int(population))
    return agents.make(strategy, **OPTIONS.get(strategy, {}))


def run_trained(cell: Cell) -> list[Record]:
    """Search on the training data, then score the found set there and on the test data."""
    options = {name: value for name, value in cell.settings.items() if name != "budget"}
    budget = cell.settings["budget"]
    task = problem(cell.world, options)
    env, agent = RewardSelectionEnv(task, budget), make_agent(cell.strategy)
    try:
        agent.train(env, cell.seed)
    except SearchLimitError as error:
        return [{"labels": budget, "note": NOT_ENUMERATED, "why": str(error)}]
    episode = agents.play(env, agent, cell.seed)
    tests = [problem(cell.world, {"dataset": f"test-{share}", **options}) for share in TEST_SHARES]
    record: Record = {
        "labels": budget,
        "train": episode.performance,
        "test": [test.score(test.actions(episode.ids)) for test in tests],
        "ids": episode.ids.tolist(),
        "asked": episode.asked,
    }
    if cell.seed == 0:  # the noise of one run stands for all
        record["noise"] = noise(cell.world, task.learn(episode.labels).policy)
    if agent.search_notes:
        record["notes"] = agent.search_notes
    return [record]


def noise(world: str, policy: Any) -> float:
    """Return the standard error of the mean return of so many episodes as were published."""
    returns, _ = RolloutReturns(selectenv.TABULAR[world].make(), EPISODES).episode_returns(policy)
    return float(returns.std() / np.sqrt(EPISODES))


def trained_rows(results: list[Result], table: str, budgets: Mapping[str, Sequence[int]]) -> list[Row]:
    """Set train and test scores beside the published ones."""
    found: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    learner = results[0].cell.settings["learner"] if results else "uds"
    for result in results:
        for record in result.records:
            found[result.cell.world, result.cell.strategy, record["labels"]].append(record)
    shares: dict[str, list[str]] = defaultdict(list)
    for row in published(table):
        if row["feedback"] not in shares[row["domain"]]:
            shares[row["domain"]].append(row["feedback"])
    known = {
        (row["domain"], row["strategy"], budgets[row["domain"]][shares[row["domain"]].index(row["feedback"])]): row
        for row in published(table)
    }
    rows = []
    for (world, strategy, labels), records in found.items():
        theirs = known.get((world, strategy, labels))
        best = best_return(world, learner, labels)
        for figure in ("train", "test"):
            mean = number(theirs[f"{figure}_mean"]) if theirs else None
            error = number(theirs["test_stderr"]) if theirs and figure == "test" else None
            runs = [record for record in records if figure in record]
            if not runs:
                missing = Verdict(NOT_ENUMERATED, best_named(world, learner, labels))
                rows.append(Row(world, labels, strategy, figure, None, None, mean, error, missing, NOT_ENUMERATED))
                continue
            ours = np.array([np.mean(record[figure]) for record in runs])
            summary = summarise(ours)
            gap = best - summary.mean if figure == "train" else None
            verdict = None
            if mean is not None:
                spread = float(np.mean([record["noise"] for record in runs if "noise" in record] or [0.0]))
                verdict = judge(
                    mean, error, ours, spread, stochastic=strategy not in DETERMINISTIC,
                    allowed=allowed_returns(world),
                    reason=reason_for(world, strategy, best - float(np.mean([r["train"] for r in runs]))),
                )  # fmt: skip
            rows.append(Row(world, labels, strategy, figure, summary, gap, mean, error, verdict))
    return rows
