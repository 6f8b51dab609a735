"""Benchmark of learned selectors: the time of one label, training steps per second, and the environment's share."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

import agents
import selectenv
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table

STEPS = 4096
ROUNDS = 40
LIMIT = 1.0
"""Milliseconds that one label may take."""


class Timed(gym.Wrapper[Any, Any, Any, Any]):
    """Sums the seconds that are spent inside an environment."""

    seconds = 0.0

    def reset(self, **options: Any) -> Any:
        """Start an episode, timed."""
        began = time.perf_counter()
        found = self.env.reset(**options)
        self.seconds += time.perf_counter() - began
        return found

    def step(self, action: Any) -> Any:
        """Take a step, timed."""
        began = time.perf_counter()
        found = self.env.step(action)
        self.seconds += time.perf_counter() - began
        return found


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


def bench_training() -> None:
    """Print training steps per second on Tree, and where the time is spent."""
    rows = []
    for name in ("maskable-ppo", "ppo", "dqn"):
        agent = agents.make(name)
        assert isinstance(agent, agents.Sb3Agent)
        envs = [Timed(selectenv.make_env("Tree", budget=9, reward_mode="marginal")) for _ in range(4)]
        agent.train(envs, steps=STEPS // 4)
        before = sum(env.seconds for env in envs)
        began = time.perf_counter()
        agent.train(envs, steps=STEPS)
        total = time.perf_counter() - began
        share = (sum(env.seconds for env in envs) - before) / total
        rows.append((name, f"{STEPS / total:,.0f}", f"{100 * share:.0f} %", f"{100 * (1 - share):.0f} %"))
    print(f"\nTraining on Tree, 9 labels, {STEPS:,} steps, 4 environments\n")
    print(table(("agent", "steps/s", "environment", "features, network, SB3"), rows))


def bench_decisions() -> None:
    """Print decisions per second of `selectenv train-selector`."""
    from experiments.training.selector_training import SIDE_BY_SIDE, SelectorSettings, SelectorTraining

    run = SelectorTraining(SelectorSettings(), 0)
    for _ in range(10):
        run.advance()
    began = time.perf_counter()
    for _ in range(ROUNDS):
        run.advance()
    each = (time.perf_counter() - began) / (ROUNDS * SIDE_BY_SIDE)
    print(
        f"\ntrain-selector: {1 / each:,.0f} decisions per second in random worlds; the teacher tries all labels at each"
    )


def bench_selectors() -> None:
    """Run all benchmarks of selectors."""
    bench_labels()
    bench_training()
    bench_decisions()
