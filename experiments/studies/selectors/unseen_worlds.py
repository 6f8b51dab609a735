"""Selectors and their rivals where selectors were never trained: published worlds, fresh random worlds, Breakout."""

import hashlib
from functools import cache
from typing import Any

import numpy as np

import agents
from agents.learned.selector import SHIPPED, selector_path
from experiments.engine.cell import Cell, Record
from experiments.engine.problems import problem
from experiments.protocol.budgets import BUDGETS, FEEDBACK, WORLDS, percent
from experiments.studies.game_episodes import FRESH_EPISODES, FRESH_SEED, HEURISTICS, SHARES, expert_mark, game_problem
from experiments.studies.game_episodes import OPTIONS as GAME_OPTIONS
from experiments.studies.tabular.search_results import CERTAIN
from selectenv.budget import number_of_labels
from selectenv.domains.tabular.random_worlds import KINDS
from selectenv.env import RewardSelectionEnv
from selectenv.options import TEST_SHARES
from selectenv.problem import SelectionProblem
from selectenv.random_problems import RandomProblems
from selectenv.streams import generator
from selectenv.worlds import GAME_DEFAULTS

LEARNERS = ("uds", "adapted")
SELECTORS = {
    "learned": tuple(f"seed-{seed}" for seed in range(5)),
    "learned-without-termination": tuple(f"without-termination-{seed}" for seed in range(3)),
}
"""Selector -> names of the weights of its training seeds."""
SEARCHES = ("es-50", "es-200", "es-1000", "sequential-greedy")
SEARCH_SEEDS = 10
PER_WORLD = {"maskable-ppo": 10_000}
"""Trained in the very world that it labels, under UDS: agent -> steps, for one seed."""
RANDOM = "Random"
RANDOM_WORLDS = 120
GAME, GAME_SEEDS, GAME_SEARCHES = "Breakout", 3, ("es-50", "es-200")


def zero_shot_cells(study: str, seeds: int) -> list[Cell]:
    """Return a cell a world, learner and strategy; budgets of the published worlds are cells of their own."""
    found = []
    for learner in LEARNERS:
        for world in WORLDS:
            for budget in BUDGETS[world]:
                task = {"learner": learner, "budget": budget}
                for strategy, seed, weights in _runs(seeds):
                    found.append(Cell(study, world, strategy, seed, {**task, **weights}))
                for strategy, steps in PER_WORLD.items() if learner == "uds" else ():
                    found.append(Cell(study, world, strategy, 0, {**task, "steps": steps}))
        for number in range(min(RANDOM_WORLDS, 6 * seeds)):
            for strategy, _, weights in _runs(1):
                found.append(Cell(study, RANDOM, strategy, number, {"learner": learner, **weights}))
        for seed in range(min(seeds, GAME_SEEDS)):
            data = {"variant": learner, "problem": {"scale": "laptop", "learner": learner}, "expert": expert_mark(GAME)}
            found += [Cell(study, GAME, strategy, seed, data) for strategy in (*HEURISTICS, *GAME_SEARCHES)]
            for strategy, name in (("learned", SHIPPED), ("learned-without-termination", "without-termination-0")):
                found.append(Cell(study, GAME, strategy, seed, {**data, **_weights(name)}))
    return found


def _runs(seeds: int) -> list[tuple[str, int, dict[str, Any]]]:
    """Return strategies with seeds and, for selectors, whose seed is that of their training, their weights."""
    found: list[tuple[str, int, dict[str, Any]]] = []
    for name in (*HEURISTICS, *SEARCHES):
        most = 1 if name in CERTAIN else min(seeds, SEARCH_SEEDS) if name in SEARCHES else seeds
        found += [(name, seed, {}) for seed in range(most)]
    for strategy, names in SELECTORS.items():
        found += [(strategy, seed, _weights(name)) for seed, name in enumerate(names)]
    return found


def _weights(name: str) -> dict[str, Any]:
    """Name the weights of a cell, and mark them: results of others are other results."""
    return {"weights": name, "mark": _mark(name)}


@cache
def _mark(name: str) -> str:
    return hashlib.blake2b(selector_path(name).read_bytes(), digest_size=8).hexdigest()


def run_zero_shot(cell: Cell) -> list[Record]:
    """Label, and score what is learned."""
    return {RANDOM: _run_random, GAME: _run_game}.get(cell.world, _run_published)(cell)


def _agent(cell: Cell, **options: Any) -> agents.Agent:
    if cell.strategy in SELECTORS:
        return agents.make("learned", weights=cell.settings["weights"])
    if cell.strategy in PER_WORLD:
        from agents.learned.scorer import one_thread

        one_thread()
        options["steps"] = cell.settings["steps"]
    return agents.make(cell.strategy, **options)


def _run_published(cell: Cell) -> list[Record]:
    """Label the training data; score there, on the test data, and on labels that are chosen anew for each of those."""
    budget, options = cell.settings["budget"], {"learner": cell.settings["learner"]}
    task = problem(cell.world, options)
    episode = _play(task, budget, _agent(cell), cell.seed)
    tests = [problem(cell.world, {"dataset": f"test-{share}", **options}) for share in TEST_SHARES]
    record: Record = {
        "labels": budget,
        "train": episode.performance,
        "test": float(np.mean([test.score(test.actions(episode.ids)) for test in tests])),
        "asked": episode.asked,
        "ids": episode.ids.tolist(),
    }
    if not episode.asked:  # who needs no evaluator can look at every dataset
        again = [_play(t, min(budget, int(t.dataset.labelable.sum())), _agent(cell), cell.seed) for t in tests]
        record["anew"] = float(np.mean([other.performance for other in again if other.performance is not None]))
    return [record]


def _run_random(cell: Cell) -> list[Record]:
    """Label a world that no selector was trained in, which may be larger than all of those; 0 is no label, 1 is all."""
    kind = list(KINDS)[cell.seed % len(KINDS)]
    source = RandomProblems(kinds=(kind,), learner=cell.settings["learner"])
    task = source(generator(cell.seed, "zero-shot worlds"))
    low = task.score(np.zeros(task.n_states, bool))
    span = task.score(task.dataset.labelable) - low
    found = []
    for share in FEEDBACK:
        budget = max(1, round(share * task.budget_states))
        episode = _play(task, budget, _agent(cell), cell.seed)
        found.append(
            {"labels": percent(share), "kind": kind, "states": task.budget_states, "asked": episode.asked,
             "return": ((episode.performance or 0.0) - low) / span}
        )  # fmt: skip
    return found


def _run_game(cell: Cell) -> list[Record]:
    """Label a game, an episode for every budget; what is learned plays episodes that no search has seen."""
    task, fresh = game_problem(cell), game_problem(cell, evaluation_seed=FRESH_SEED, rollouts=FRESH_EPISODES)
    found = []
    for share in SHARES:
        budget = number_of_labels(share, task.n_states)
        agent = _agent(cell, **GAME_OPTIONS.get(cell.strategy, {}))
        episode = _play(task, budget, agent, cell.seed, labels_per_refit=GAME_DEFAULTS.labels_per_refit)
        found.append({"labels": percent(share), "return": fresh.score(episode.labels), "asked": episode.asked})
    return found


def _play(task: SelectionProblem, budget: int, agent: agents.Agent, seed: int, **options: Any) -> agents.Episode:
    env = RewardSelectionEnv(task, budget, **options)
    agent.train(env, seed)
    return agents.play(env, agent, seed)
