"""Benchmark of the vector environment: steps per second beside label sets per second, and what limits them."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

import selectenv
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table
from selectenv.kernels.threads import thread_count
from selectenv.typing import IntArray
from selectenv.vector_env import RewardSelectionVectorEnv

NUM_ENVS, BUDGET = 256, 5
LEAST = 25
"""Per cent of the rate of label sets that the steps of the vector environment must reach."""
EPISODES, ROUNDS = 10, 5


def bench_vector(speeds: dict[str, float]) -> None:
    """Print steps per second in every tabular world.

    Args:
        speeds: Label sets per second by world, from `bench_label_sets`.
    """
    rows = []
    for name, sets in speeds.items():
        envs = gym.make_vec(selectenv.env_id(name), NUM_ENVS, "vector_entry_point", budget=BUDGET).unwrapped
        assert isinstance(envs, RewardSelectionVectorEnv)
        actions = _episodes(envs.single_action_space.n, NUM_ENVS)  # type: ignore[attr-defined]  # Discrete
        envs.reset(seed=0)
        seconds, passed = min(_play(envs, actions) for _ in range(1 + ROUNDS))
        steps, calls = EPISODES * BUDGET * NUM_ENVS, EPISODES * (BUDGET + 1)
        single = _single_rate(name)
        rows.append(
            (
                name,
                f"{steps / seconds:,.0f}",
                f"{100 * steps / seconds / sets:.0f} %",
                f"{LEAST} %",
                f"{1e6 * seconds / calls:.0f}",
                f"{1e6 * passed / calls:.0f}",
                f"{1e6 * (seconds - passed) / calls:.0f}",
                f"{single:,.0f}",
                f"{steps / seconds / single:.0f}",
            )
        )
    threads = thread_count()
    print(f"\nSteps per second of {NUM_ENVS} environments at once, {BUDGET} labels, all features, {threads} threads\n")
    header = ("world", "steps/s", "of sets/s", "at least", "step us", "pass us", "rest us", "single steps/s", "times")
    print(table(header, rows))
    print(
        "\nof sets/s: beside the rate of performance_many in this run. A step takes a compiled pass over all"
        "\nenvironments, and the rest in Python: checks, copies and infos. single: one environment, unwrapped; times:"
        "\nthe ratio of both."
    )


def _episodes(n: int, count: int) -> list[IntArray]:
    """Return the actions of episodes: different states, and one more for the step that resets."""
    rng = np.random.default_rng(0)
    many = rng.permuted(np.tile(np.arange(n), (EPISODES, count, 1)), axis=2)[:, :, : BUDGET + 1]
    return [np.ascontiguousarray(step) for episode in many for step in episode.T]


def _play(envs: RewardSelectionVectorEnv, actions: list[IntArray]) -> tuple[float, float]:
    """Return the seconds of all steps, and those of them that their compiled passes take."""
    batch, passed = envs._batch, 0.0
    step = batch.step

    def timed(*given: Any) -> Any:
        nonlocal passed
        began = time.perf_counter()
        result = step(*given)
        passed += time.perf_counter() - began
        return result

    vars(batch)["step"] = timed
    began = time.perf_counter()
    for action in actions:
        envs.step(action)
    seconds = time.perf_counter() - began
    del vars(batch)["step"]
    return seconds, passed


def _single_rate(name: str) -> float:
    """Return the steps per second of one environment."""
    env = selectenv.make_env(name, budget=BUDGET)
    actions = [int(step[0]) for step in _episodes(env.problem.n_states, 1)]

    def play() -> None:
        for first in range(0, len(actions), BUDGET + 1):
            env.reset()
            for action in actions[first : first + BUDGET]:
                env.step(action)

    play()
    return EPISODES * BUDGET / best_of(10 * ROUNDS, play)
