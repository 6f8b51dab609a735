"""Benchmark of one `env.step`, of collecting data and of the sampled learner."""

import time

import gymnasium as gym
import numpy as np

import selectenv
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table
from selectenv.datasets import collect
from selectenv.env import RewardSelectionEnv


def bench_steps() -> None:
    """Print the time of one `env.step` of Tree without Gymnasium's wrappers."""
    rows = []
    for title, refit, limit in (("without a refit", 1000, 50), ("with a refit and fresh features", 1, 200)):
        env = gym.make(selectenv.env_id("Tree"), budget=31, labels_per_refit=refit).unwrapped
        assert isinstance(env, RewardSelectionEnv)
        seconds = []
        for seed in range(50):
            env.reset(seed=seed)
            began = time.perf_counter()
            for action in range(30):  # the last label would also be evaluated
                env.step(action)
            seconds.append((time.perf_counter() - began) / 30)
        rows.append((title, f"{1e6 * float(np.median(seconds)):.0f}", limit))
    print("\nOne env.step of Tree, unwrapped\n")
    print(table(("step", "microseconds", "limit"), rows))


def bench_parts() -> None:
    """Print the time of collecting data and of the sampled learner."""
    rows = []
    world = selectenv.TABULAR["TwoRooms"].make()
    spec = dict(selectenv.make_problem("TwoRooms").dataset.spec)
    rows.append(("collect 100,000 transitions of TwoRooms", f"{1e3 * best_of(5, lambda: collect(world, spec)):.1f}"))
    for name in ("Graph", "CliffWalk"):
        sampled = selectenv.make_problem(name, solver="sampled")
        masks = np.random.default_rng(0).random((20, sampled.n_states)) < 0.5
        sampled.performance_many(masks)
        seconds = best_of(2, lambda p=sampled, m=masks: p.performance_many(m)) / len(masks)  # type: ignore[misc]
        rows.append((f"one label set of {name} by the sampled learner", f"{1e3 * seconds:.1f}"))
    print("\nOther parts\n")
    print(table(("part", "milliseconds"), rows))
