"""Cells of the study `zero-call`: published worlds, larger worlds, and random worlds of fixed seeds."""

from functools import lru_cache
from math import comb
from typing import Any

import numpy as np

import agents
from experiments.engine.agent_versions import with_agent_version
from experiments.engine.cell import Cell, Record
from experiments.engine.problems import problem
from experiments.protocol.budgets import BUDGETS, FEEDBACK, WORLDS
from selectenv.budget import number_of_labels
from selectenv.domains.tabular.random_worlds import KINDS
from selectenv.env import RewardSelectionEnv
from selectenv.problem import SelectionProblem
from selectenv.random_problems import RandomProblems
from selectenv.streams import generator
from selectenv.typing import IntArray

LEARNERS = ("uds", "adapted")
DEVELOPMENT, TEST = "development worlds", "test worlds"
"""Names of the random streams of random worlds: `imagine` was developed on the former and is tested on the latter."""
RANDOM_WORLDS = {DEVELOPMENT: 24, TEST: 100}
DEVELOPED_ON = ("Tree", "FrozenLake", "CliffWalk")
"""Published worlds that strategies may be developed on; the others are for tests."""
LAKE_10 = (
    "SFFFFFFFFF",
    "FFFHFFFFHF",
    "FFFFFFHFFF",
    "FHFFFFFFFF",
    "FFFFHFFFHF",
    "FFHFFFFFFF",
    "FFFFFFFHFF",
    "FHFFHFFFFF",
    "FFFFFFHFFF",
    "FFFHFFFFFG",
)
LARGER: dict[str, tuple[str, dict[str, Any]]] = {
    "FrozenLake 8x8": ("FrozenLake", {"map_name": "8x8"}),
    "FrozenLake 10x10": ("FrozenLake", {"desc": list(LAKE_10)}),
    "Tree of depth 7": ("Tree", {"depth": 7}),
}
LARGER_SHARES = (0.1, 0.3, 0.6)
USUAL = "usual data"
VARIANTS: dict[str, dict[str, Any]] = {
    **{f"share {share:g}": {"expert_share": share} for share in (0.0, 0.25, 0.75, 1.0)},
    **{f"size {size}": {"expert_share": 0.5, "dataset_size": size} for size in (1_000, 10_000)},
}
"""Data that differ in one thing from an expert share of 0.5 and 100,000 transitions."""
VARIANT_SEEDS = 5
FREE = (
    "uniform",
    "visitation",
    "visitation-on-policy",
    "guided",
    "guided-on-policy",
    "terminal",
    "terminal-guided",
    "learned-v1",
    "learned",
    "imagine",
    "auto",
)
"""Strategies that ask no evaluator."""
SEARCHES = ("es-200", "es-1000")
REFERENCE = "best-known"
"""All label sets where there are few, else swap-search."""
FIRST = ("uniform", "learned-v1", "learned", "auto", "es-200", REFERENCE)
"""Strategies that the main questions are about: they run first."""
ABLATIONS: dict[str, dict[str, Any]] = {
    "imagine without behaviour": {"observations": 0},
    "imagine without planning": {"planning": False},
    "imagine without dense families": {"families": "sparse"},
    "imagine without sparse families": {"families": "dense"},
}
"""Strategy -> options of `imagine`."""
UNIFORM_SETS = 200
"""Random label sets whose mean return stands for `uniform`."""
REFERENCE_EVALUATIONS = 20_000
"""Evaluator calls of swap-search."""
FEW_SETS = 20_000
"""Most label sets that are all evaluated, which proves the best of them."""


def zero_call_cells(study: str, seeds: int) -> list[Cell]:
    """Return one cell per place, dataset, learner and strategy, the most telling first; each cell runs all budgets."""
    found = []
    for learner in LEARNERS:
        every = (*FREE, *SEARCHES, REFERENCE)
        for world in WORLDS:
            for seed in range(seeds):
                more = tuple(ABLATIONS) if seed < VARIANT_SEEDS else ()
                found += _cells(study, world, seed, learner, USUAL, (*every, *more))
            for variant in VARIANTS:
                for seed in range(min(seeds, VARIANT_SEEDS)):
                    found += _cells(study, world, seed, learner, variant, every)
        for place in LARGER:
            for seed in range(min(seeds, VARIANT_SEEDS)):
                found += _cells(study, place, seed, learner, USUAL, every)
        for place, count in RANDOM_WORLDS.items():
            for seed in range(min(count, 5 * seeds)):
                found += _cells(study, place, seed, learner, USUAL, every)
    return sorted(found, key=lambda cell: (cell.strategy not in FIRST, cell.settings["variant"] != USUAL))


def _cells(study: str, place: str, seed: int, learner: str, variant: str, names: tuple[str, ...]) -> list[Cell]:
    cells = [Cell(study, place, name, seed, {"learner": learner, "variant": variant}) for name in names]
    return [with_agent_version(cell, "imagine") if cell.strategy in ABLATIONS else cell for cell in cells]


def task_of(cell: Cell) -> tuple[SelectionProblem, list[int]]:
    """Return the problem of a cell, and its budgets."""
    learner, variant = cell.settings["learner"], cell.settings["variant"]
    if cell.world in RANDOM_WORLDS:
        task = _random(cell.world, cell.seed, learner)
        return task, sorted({max(1, round(share * task.budget_states)) for share in FEEDBACK})
    world, options = LARGER.get(cell.world, (cell.world, {}))
    data = {**options, **VARIANTS.get(variant, {}), "dataset_seed": cell.seed, "learner": learner}
    task = problem(world, data)
    if cell.world in LARGER:
        return task, [number_of_labels(share, task.n_states) for share in LARGER_SHARES]
    most = int(task.dataset.labelable.sum())
    return task, [budget for budget in BUDGETS[world] if budget <= most]


@lru_cache(maxsize=4)
def _random(stream: str, number: int, learner: str) -> SelectionProblem:
    kind = list(KINDS)[number % len(KINDS)]
    return RandomProblems(kinds=(kind,), learner=learner)(generator(number, stream))


def run_zero_call(cell: Cell) -> list[Record]:
    """Play a strategy with every budget; returns without labels and with all labels stand beside its own."""
    task, budgets = task_of(cell)
    task = task.with_calls()
    labelable = task.dataset.labelable
    none, full = task.score(np.zeros(task.n_states, bool)), task.score(labelable)
    found: list[Record] = []
    agent: agents.Agent | None = None
    for budget in budgets:
        ids: list[Any] = []
        cost = 0
        if cell.strategy == "uniform":
            earned = _mean_of_random_sets(task, budget, cell.seed)
        else:
            env = RewardSelectionEnv(task, budget)
            if agent is None or agent.taxonomy.training != "none":  # others keep what they know about the data
                agent = _agent(cell.strategy, int(labelable.sum()), budget)
            agent.train(env, cell.seed)
            episode = agents.play(env, agent, cell.seed)
            assert episode.performance is not None
            earned, cost, ids = episode.performance, episode.cost, episode.ids.tolist()
        found.append({"labels": budget, "return": earned, "cost": cost, "none": none, "all": full, "ids": ids})
    return found


def _mean_of_random_sets(task: SelectionProblem, budget: int, seed: int) -> float:
    """Return the mean return of label sets drawn uniformly."""
    rng, states = generator(seed, "uniform sets", budget), np.flatnonzero(task.dataset.labelable)
    masks = np.zeros((UNIFORM_SETS, task.n_states), bool)
    for mask in masks:
        mask[_drawn(states, budget, rng)] = True
    return float(task.with_calls().performance_many(masks).mean())


def _drawn(states: IntArray, budget: int, rng: np.random.Generator) -> IntArray:
    return rng.choice(states, min(budget, len(states)), replace=False)


def _agent(strategy: str, states: int, budget: int) -> agents.Agent:
    if strategy in ABLATIONS:
        return agents.make("imagine", **ABLATIONS[strategy])
    if strategy != REFERENCE:
        return agents.make(strategy)
    if comb(states, budget) <= FEW_SETS:
        return agents.make("brute-force", max_evaluations=FEW_SETS)
    return agents.make("swap-search", max_evaluations=REFERENCE_EVALUATIONS)
