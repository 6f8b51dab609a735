"""Benchmark of the environments: steps per second of many at once and of one, and what limits them."""

import math
import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

import selectenv
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table
from selectenv.kernels.threads import thread_count
from selectenv.options import FEATURES
from selectenv.typing import IntArray
from selectenv.vector_env import RewardSelectionVectorEnv

NUM_ENVS, BUDGET = 256, 5
OCCUPANCY = "on_policy_visitation"
LEAST = 25
"""Per cent of the rate of label sets that the steps of the vector environment must reach."""
EPISODES, ROUNDS = 10, 20
EARLIER = {
    "Graph": 24_000,
    "Tree": 19_200,
    "TwoRooms": 8_790,
    "TwoRoomsTrap": 7_870,
    "FrozenLake": 11_300,
    "CliffWalk": 8_950,
}
"""Steps per second of one environment before its steps were compiled, measured beside the present ones."""
LEAST_TIMES = 2


def bench_vector(speeds: dict[str, float]) -> None:
    """Print steps per second of many environments at once, and of one, in every tabular world.

    Args:
        speeds: label sets per second by world, from `bench_label_sets`.
    """
    rows, single_rows = [], []
    for name, sets in speeds.items():
        (seconds, passed), (_, without) = _seconds(name, FEATURES, [one for one in FEATURES if one != OCCUPANCY])
        parts = without, max(passed - without, 0.0), seconds - passed
        rows.append(
            (
                name,
                f"{sets:,.0f}",
                f"{NUM_ENVS / seconds:,.0f}",
                f"{100 * NUM_ENVS / seconds / sets:.0f} %",
                f"{LEAST} %",
                f"{1e6 * seconds:.0f}",
                *(f"{100 * part / seconds:.0f} %" for part in parts),
            )
        )
        single = _single_rate(name)
        single_rows.append(
            (
                name,
                f"{single:,.0f}",
                f"{EARLIER[name]:,}",
                f"{single / EARLIER[name]:.1f}",
                LEAST_TIMES,
                f"{NUM_ENVS / seconds / single:.0f}",
            )
        )
    threads = thread_count()
    print(f"\nSteps per second of {NUM_ENVS} environments at once, {BUDGET} labels, all features, {threads} threads\n")
    header = ("world", "sets/s", "steps/s", "share", "at least", "us", "learning", "occupancy", "Python")
    print(table(header, rows))
    print(
        "\nshare: steps beside the label sets of performance_many in this run. us: one step of all environments."
        "\nLearning, with returns and labels, and the occupancy of the policies are one compiled pass; Python is the"
        "\nrest: checks, copies and infos."
    )
    print("\nSteps per second of one environment, unwrapped, one thread\n")
    print(table(("world", "steps/s", "earlier", "times", "at least", "many at once, times"), single_rows))
    print("\nearlier: before steps were compiled, on the machine of docs/speed.md.")


def _episodes(n: int, count: int) -> list[IntArray]:
    """Return the actions of episodes: different states, and one more for the step that resets."""
    rng = np.random.default_rng(0)
    many = rng.permuted(np.tile(np.arange(n), (EPISODES, count, 1)), axis=2)[:, :, : BUDGET + 1]
    return [np.ascontiguousarray(step) for episode in many for step in episode.T]


def _seconds(name: str, *features: Sequence[str]) -> list[tuple[float, float]]:
    """Return the seconds of one step of all environments, resets included, and of its compiled pass.

    Args:
        name: the world.
        *features: the features of environments that are measured in turns.
    """
    made = [
        gym.make_vec(selectenv.env_id(name), NUM_ENVS, "vector_entry_point", budget=BUDGET, features=some).unwrapped
        for some in features
    ]
    best = [(math.inf, math.inf)] * len(made)
    for _ in range(1 + ROUNDS):
        for i, envs in enumerate(made):
            assert isinstance(envs, RewardSelectionVectorEnv)
            envs.reset(seed=0)
            actions = _episodes(envs.single_action_space.n, NUM_ENVS)  # type: ignore[attr-defined]  # Discrete
            best[i] = min(best[i], _play(envs, actions))
    steps = EPISODES * BUDGET
    return [(seconds / steps, passed / steps) for seconds, passed in best]


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
