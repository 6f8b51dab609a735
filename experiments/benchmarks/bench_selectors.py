"""Benchmark of learned selectors: the time of one label, and training steps per second."""

import time
from typing import Any

import numpy as np

import agents
import selectenv
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table

STEPS = 4096
SYNC = "4, one after the other"
RUNS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("maskable-ppo", SYNC, {}),
    ("maskable-ppo", "4, native", {}),
    ("maskable-ppo", "64, native", {"n_envs": 64, "sb3": {"n_steps": 16}}),
    ("maskable-ppo", "256, native", {"n_envs": 256, "sb3": {"n_steps": 4}}),
    ("ppo", SYNC, {}),
    ("ppo", "4, native", {}),
    ("ppo", "256, native", {"n_envs": 256, "sb3": {"n_steps": 4}}),
    ("dqn", SYNC, {}),
    ("dqn", "4, native", {}),
)
"""Agent, environments and options; with more environments, a rollout has fewer steps of each and as many in all."""
TRAININGS, DECISIONS = 3, 40
"""Rounds of training, of which the fastest counts, and of decisions of `train-selector`."""
LEAST_TRAINING, LEAST_ROLLOUT = 2.5, 5
IMAGINED: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("FrozenLake", {"map_name": "8x8"}, 50.0),
    ("Sparse", {"n_states": 500}, 500.0),
)
"""World, options, and milliseconds that one label may take of the agents that imagine."""
IMAGINING = ("imagine", "auto")
IMAGINED_LABELS = 10
LIMIT = 1.0
"""Milliseconds that one label may take."""


def bench_labels() -> None:
    """Print the time of one label of the shipped selector."""
    rows = []
    for world in ("Graph", "TwoRooms", "CliffWalk"):
        env = selectenv.make_env(world, budget=10)
        agent = agents.make("learned")
        obs, info = env.reset(seed=0)
        agent.begin(env.view())
        label = best_of(200, lambda a=agent, o=obs, i=info: a.select(o, i, np.random.default_rng(0)))  # type: ignore[misc]
        rows.append((world, env.problem.n_states, f"{1e3 * label:.3f}", f"{LIMIT:.0f}"))
    print("\nOne label of the shipped selector, one core\n")
    print(table(("world", "states", "milliseconds", "limit"), rows))


def bench_imagination() -> None:
    """Print the time of one label, after the first, which takes the start-up and makes the first plan."""
    rows = []
    for world, options, limit in IMAGINED:
        n = selectenv.make_problem(world, **options).n_states
        for name in IMAGINING:
            _imagination_seconds(name, world, options, 2)  # compiles
            first, *others = _imagination_seconds(name, world, options, IMAGINED_LABELS + 1)
            rows.append((name, world, n, f"{first:.2f}", f"{1e3 * float(np.mean(others)):.0f}", f"{limit:.0f}"))
    print("\nOne label of the agents that imagine, all cores\n")
    print(table(("agent", "world", "states", "start-up, seconds", "milliseconds", "limit"), rows))


def _imagination_seconds(name: str, world: str, options: dict[str, Any], labels: int) -> list[float]:
    """Return the seconds of every label of an agent in one episode; the first includes the start-up."""
    env = selectenv.make_env(world, budget=labels, **options)
    agent, rng = agents.make(name), np.random.default_rng(0)
    obs, info = env.reset(seed=0)
    seconds: list[float] = []
    for _ in range(labels):
        began = time.perf_counter()
        if not seconds:
            agent.begin(env.view())
        choice = agent.select(obs, info, rng)
        seconds.append(time.perf_counter() - began)
        obs, _, _, _, news = env.step(choice)
        info = {**info, **news}
    return seconds


def bench_training() -> None:
    """Print training steps per second on Tree, one environment after the other and over the native vector."""
    rows, rollouts, totals = [], {}, {}
    for name, title, options in RUNS:
        total, rollout = _training_seconds(name, title == SYNC, options)
        rollouts[name, title], totals[name, title] = rollout, total
        faster = (totals[name, SYNC] / total, rollouts[name, SYNC] / rollout)
        rows.append(
            (
                name,
                title,
                f"{1 / total:,.0f}",
                f"{faster[0]:.1f}",
                f"{1 / rollout:,.0f}",
                f"{faster[1]:.1f}",
                f"{100 * (1 - rollout / total):.0f} %",
            )
        )
    print(
        f"\nTraining on Tree, 9 labels, {STEPS:,} steps; batch size and epochs are the same in all runs of an agent\n"
    )
    print(table(("agent", "environments", "steps/s", "times", "rollout steps/s", "times", "updates take"), rows))
    print(
        f"\ntimes: compared with {SYNC}, in this run; with many environments, the whole training of"
        f"\nmaskable-ppo should be {LEAST_TRAINING} times, and its rollouts {LEAST_ROLLOUT} times as fast."
    )


def _training_seconds(name: str, sync: bool, options: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds that a training step takes, and those of it that collecting transitions takes."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Rollouts(BaseCallback):
        """Sums the seconds from the start to the end of collecting transitions."""

        seconds, _began = 0.0, 0.0

        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            self._began = time.perf_counter()

        def _on_rollout_end(self) -> None:
            self.seconds += time.perf_counter() - self._began

    agent = agents.make(name, **options)
    assert isinstance(agent, agents.Sb3Agent)
    env: Any = selectenv.make_env("Tree", budget=9, reward_mode="marginal")
    if sync:
        env = [env.twin() for _ in range(agent.n_envs)]
    agent.train(env, steps=STEPS // 4)
    found = []
    for _ in range(TRAININGS):
        clock = Rollouts()
        began = time.perf_counter()
        agent.train(env, steps=STEPS, callback=clock)
        total, steps = time.perf_counter() - began, agent._model.num_timesteps
        found.append((total / steps, clock.seconds / steps))
    return min(found)


def bench_decisions() -> None:
    """Print decisions per second of `selectenv train-selector`."""
    from experiments.training.selector_training import SIDE_BY_SIDE, SelectorSettings, SelectorTraining

    run = SelectorTraining(SelectorSettings(), 0)
    while not run.advance():  # the first decisions only fill the buffer
        pass
    began = time.perf_counter()
    for _ in range(DECISIONS):
        run.advance()
    each = (time.perf_counter() - began) / (DECISIONS * SIDE_BY_SIDE)
    print(
        f"\ntrain-selector: {1 / each:,.0f} decisions per second in random worlds; the teacher tries all labels at each"
    )


def bench_selectors() -> None:
    """Run all benchmarks of selectors."""
    bench_labels()
    bench_imagination()
    bench_training()
    bench_decisions()
