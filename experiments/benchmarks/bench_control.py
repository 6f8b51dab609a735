"""Benchmark of the control worlds: learning a table over groups, and evaluating a policy."""

import time
from typing import Any

import numpy as np

import selectenv
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table
from selectenv.errors import MissingExtraError

REPETITIONS = 5
OPTIONS: dict[str, Any] = {}
"""Options of the problems that differ from the defaults."""


def bench_control() -> None:
    """Print the CPU time of learning with 200 groups, and of 50 evaluation episodes with every group labelled."""
    rows = []
    for world in selectenv.CONTROL:
        try:
            problem = selectenv.make_problem(world, **OPTIONS)
        except MissingExtraError as error:
            print(f"\nNOT timed, {world}: {error}")
            continue
        data = problem.dataset
        result = problem.learn(data.labelable)
        problem.evaluator.returns(result.batch)  # compiles
        learning = best_of(20, lambda p=problem: _learn(p), time.process_time)  # type: ignore[misc]
        playing = best_of(
            REPETITIONS,
            lambda p=problem, r=result: p.evaluator.returns(r.batch),  # type: ignore[misc]
            time.process_time,
        )
        earned = float(problem.evaluator.returns(result.batch)[0])
        rows.append((world, data.n_states, f"{1e3 * learning:.2f}", f"{1e3 * playing:.0f}", f"{earned:.1f}"))
    print("\nControl worlds, milliseconds of CPU time\n")
    print(table(("world", "groups", "learn (limit: 1)", "50 episodes (CartPole's limit: 200)", "return"), rows))


def _learn(problem: selectenv.SelectionProblem) -> None:
    """Learn from random labels, past the cache of the problem."""
    labels = np.random.default_rng(0).random(problem.n_states) < 0.3
    problem.learner.fit(problem.dataset, problem.dataset.all_rewards, labels & problem.dataset.labelable)
