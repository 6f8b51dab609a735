"""Shared by the studies of searches, which use the training data and are evaluated there and on the test data."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import agents
from agents.errors import SearchLimitError
from experiments.analysis.comparison import DETERMINISTIC
from experiments.analysis.verdicts import NOT_ENUMERATED
from experiments.engine.cell import Cell, Record
from experiments.engine.problems import problem
from experiments.protocol.budgets import WORLDS
from selectenv.env import RewardSelectionEnv
from selectenv.evaluation import RolloutReturns
from selectenv.options import TEST_SHARES
from selectenv.worlds import find_world

EPISODES = 10_000
"""Number of episodes behind a published return."""
CERTAIN = frozenset(
    {
        *DETERMINISTIC,
        "terminal",
        "terminal-guided",
        "learned",
        "learned-v1",
        "imagine",
        "auto",
        "beam",
        "reduced-brute-force",
    }
)
"""All deterministic strategies: one seed is enough."""
OPTIONS: Mapping[str, dict[str, Any]] = {
    "exact": {
        "max_evaluations": 300_000,
        "seconds": 1e9,
    },  # unlike a time limit, a limit on evaluations is reproducible
    "swap-search": {"max_evaluations": 50_000},
}


def trained_cells(
    study: str, learner: str, strategies: Iterable[str], budgets: Mapping[str, Sequence[int]], seeds: int, solver: str
) -> list[Cell]:
    """Return one cell per world, budget, strategy and seed; deterministic strategies have one seed."""
    return [
        Cell(study, world, strategy, seed, {"learner": learner, "solver": solver, "budget": budget})
        for world in WORLDS
        for budget in budgets[world]
        for strategy in strategies
        for seed in range(1 if strategy in DETERMINISTIC else seeds)
    ]


def make_agent(strategy: str) -> agents.Agent:
    """Return a strategy by name; "es-8x20" is an evolution strategy with 8 iterations and a population of 20."""
    if strategy.startswith("es-") and "x" in strategy:
        iterations, population = strategy.removeprefix("es-").split("x")
        return agents.make("es", iterations=int(iterations), population=int(population))
    return agents.make(strategy, **OPTIONS.get(strategy, {}))


def run_trained(cell: Cell) -> list[Record]:
    """Search on the training data, then evaluate the resulting set there and on the test data."""
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
        "cost": episode.cost,
    }
    if cell.seed == 0:  # the noise of one run is representative
        record["noise"] = noise(cell.world, task.learn(episode.labels).policy)
    if agent.search_notes:
        record["notes"] = agent.search_notes
    return [record]


def noise(world: str, policy: Any) -> float:
    """Return the standard error of the mean return over the published number of episodes."""
    returns, _ = RolloutReturns(find_world(world, {}), EPISODES).episode_returns(policy)  # type: ignore[arg-type]
    return float(returns.std() / np.sqrt(EPISODES))
