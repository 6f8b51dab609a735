"""Cells of selectors and other strategies in worlds that selectors were not trained in: published, random, Breakout."""

import hashlib
from functools import cache
from typing import Any

import numpy as np

import agents
from agents.learned.selector import FIRST, selector_path
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
"""Selector -> names of the weights, one per training seed; "learned" are those of the first round."""
SEARCHES = ("es-50", "es-200", "es-1000", "sequential-greedy")
SEARCH_SEEDS = 10
PER_WORLD = {"maskable-ppo": 10_000}
"""Agents trained in the world that they label, under UDS and for one seed: name -> training steps."""
RANDOM = "Random"
RANDOM_WORLDS = 120
GAME, GAME_SEEDS, GAME_SEARCHES = "Breakout", 3, ("es-50", "es-200")


def zero_shot_cells(study: str, seeds: int) -> list[Cell]:
    """Return one cell per world, learner, strategy and seed; in published worlds, also one per budget."""
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
            data = {"variant": learner, "problem": {"scale": "fast", "learner": learner}, "expert": expert_mark(GAME)}
            found += [Cell(study, GAME, strategy, seed, data) for strategy in (*HEURISTICS, *GAME_SEARCHES)]
            for strategy, name in (("learned", FIRST), ("learned-without-termination", "without-termination-0")):
                found.append(Cell(study, GAME, strategy, seed, {**data, **_weights(name)}))
    return found


def _runs(seeds: int) -> list[tuple[str, int, dict[str, Any]]]:
    """Return strategies, seeds and, for selectors, weights; the seed of a selector is its training seed."""
    found: list[tuple[str, int, dict[str, Any]]] = []
    for name in (*HEURISTICS, *SEARCHES):
        most = 1 if name in CERTAIN else min(seeds, SEARCH_SEEDS) if name in SEARCHES else seeds
        found += [(name, seed, {}) for seed in range(most)]
    for strategy, names in SELECTORS.items():
        found += [(strategy, seed, _weights(name)) for seed, name in enumerate(names)]
    return found


def _weights(name: str) -> dict[str, Any]:
    """Return the name and the hash of the weights of a cell, so that other weights give other cells."""
    return {"weights": name, "mark": _mark(name)}


@cache
def _mark(name: str) -> str:
    return hashlib.blake2b(selector_path(name).read_bytes(), digest_size=8).hexdigest()


def run_zero_shot(cell: Cell) -> list[Record]:
    """Play a strategy, and evaluate the learned policies."""
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
    """Label the training data; evaluate there, on the test data, and with labels chosen on each test dataset."""
    budget, options = cell.settings["budget"], {"learner": cell.settings["learner"]}
    task = problem(cell.world, options)
    episode = _play(task, budget, _agent(cell), cell.seed)
    tests = [problem(cell.world, {"dataset": f"test-{share}", **options}) for share in TEST_SHARES]
    record: Record = {
        "labels": budget,
        "train": episode.performance,
        "test": float(np.mean([test.score(test.actions(episode.ids)) for test in tests])),
        "cost": episode.cost,
        "ids": episode.ids.tolist(),
    }
    if not episode.cost:  # at cost 0, labels can be chosen on every dataset
        again = [_play(t, min(budget, int(t.dataset.labelable.sum())), _agent(cell), cell.seed) for t in tests]
        record["anew"] = float(np.mean([other.performance for other in again if other.performance is not None]))
    return [record]


def _run_random(cell: Cell) -> list[Record]:
    """Label a random world not used in training, possibly larger; returns are 0 without labels and 1 with all."""
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
            {
                "labels": percent(share),
                "kind": kind,
                "states": task.budget_states,
                "cost": episode.cost,
                "return": ((episode.performance or 0.0) - low) / span,
            }
        )
    return found


def _run_game(cell: Cell) -> list[Record]:
    """Label a game, one episode per budget; learned policies are evaluated on episodes that no search used."""
    task, fresh = game_problem(cell), game_problem(cell, evaluation_seed=FRESH_SEED, rollouts=FRESH_EPISODES)
    found = []
    for share in SHARES:
        budget = number_of_labels(share, task.n_states)
        agent = _agent(cell, **GAME_OPTIONS.get(cell.strategy, {}))
        # Selectors were trained with the predecessors of the best state: the games' own default is another feature.
        options = {"labels_per_refit": GAME_DEFAULTS.labels_per_refit, "exploit": "best"}
        episode = _play(task, budget, agent, cell.seed, **options)
        found.append({"labels": percent(share), "return": fresh.score(episode.labels), "cost": episode.cost})
    return found


def _play(task: SelectionProblem, budget: int, agent: agents.Agent, seed: int, **options: Any) -> agents.Episode:
    env = RewardSelectionEnv(task, budget, **options)
    agent.train(env, seed)
    return agents.play(env, agent, seed)
