"""Benchmark of large worlds: time against the number of states of Sparse, a search and whole episodes there.

All times are CPU time, so that other work on the machine hardly changes them.
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import agents
import selectenv
from experiments.analysis.figures import new_figure, save
from experiments.benchmarks import timing
from experiments.benchmarks.timing import peak_memory
from experiments.cli.tables import table
from selectenv.observation import learned_features

SIZES = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Numbers of states."""
LIMITS = {5_000: 0.1, 10_000: 0.25, 100_000: 5.0}
"""Seconds that a performance call, and the learned features, may take on one thread."""
MEMORY_LIMIT = 1024
"""MiB that a process may use."""
GREEDY_STATES, GREEDY_LABELS, GREEDY_LIMIT = 1_000, 20, 100
"""Sequential-greedy: states, labels, and seconds of all threads: a fifth of what learning every set by sweeps takes."""
EPISODE_STATES, EPISODE_LABELS, REFIT, EPISODE_LIMIT = 100_000, 1_000, 100, 300
"""Episodes: states, labels, labels between two refits, and seconds that an episode may take."""
STRATEGIES = ("uniform", "visitation", "guided", "terminal-guided", "learned")
FIGURE = Path("docs/scaling.png")
best_of = partial(timing.best_of, clock=time.process_time)


@dataclass(frozen=True)
class Scaling:
    """What a world of one size costs on one thread."""

    n: int
    unique_transitions: int
    """Number of distinct transitions of the data."""
    making: float
    """Seconds to make the world, its expert and its data."""
    performance: float
    """Seconds of one performance call: learning from a label set, and the exact return of the policy."""
    features: float
    """Seconds to learn from a label set and to compute the features that depend on it."""
    memory: float
    """Peak memory of the process in MiB."""


def measure(n: int) -> Scaling:
    """Return what a world of ``n`` states costs, with random halves of the states labelled."""
    selectenv.make_problem("Sparse", n_states=200, cache=False).performance([0])  # compile first
    began = time.process_time()
    problem = selectenv.make_problem("Sparse", n_states=n, cache=False)
    making = time.process_time() - began
    rng = np.random.default_rng(0)
    halves = iter(rng.random((8, n)) < 0.5)  # a label set is learned once only
    problem.performance(next(halves))
    performance = best_of(3, lambda: problem.performance(next(halves)))
    features = best_of(3, lambda: learned_features(problem, next(halves), 1.0, "normalised", "best"))
    count = len(problem.dataset.unique_transitions.count)
    return Scaling(n, count, making, performance, features, peak_memory())


def bench_scaling() -> None:
    """Print time against the number of states, draw it, and print the time of a search and of episodes."""
    # A process of its own for each size has one thread, and a peak memory of its own.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        found = list(pool.map(measure, SIZES))
    rows = [
        (
            f"{one.n:,}",
            f"{one.unique_transitions:,}",
            f"{one.making:.2f}",
            f"{one.performance:.4f}",
            f"{one.features:.4f}",
            LIMITS.get(one.n, ""),
            f"{one.memory:.0f}",
            MEMORY_LIMIT if one.n == max(SIZES) else "",
        )
        for one in found
    ]
    header = ("states", "distinct transitions", "world and data", "performance", "features", "limit", "MiB", "limit")
    print("\nSparse: CPU seconds of one performance call and of the learned features against the number of states\n")
    print(table(header, rows))
    draw(found, FIGURE)
    print(f"\nDrawn as {FIGURE}")
    bench_greedy()
    bench_episodes()


def bench_greedy() -> None:
    """Print the time of sequential-greedy, and of its label sets if none starts from the solution of another one."""
    problem = selectenv.make_problem("Sparse", n_states=GREEDY_STATES)
    agent = agents.make("sequential-greedy")
    problem.performance_with([0], np.arange(2))  # compile first
    seconds = best_of(1, lambda: agent.train(selectenv.RewardSelectionEnv(problem, GREEDY_LABELS)))
    calls = agent.training_calls.cost
    masks = np.zeros((min(400, GREEDY_STATES), GREEDY_STATES), bool)
    masks[:, :10] = True
    np.fill_diagonal(masks, True)
    cold = best_of(1, lambda: problem.performance_many(masks)) / len(masks)
    rows = [
        ("sequential-greedy", f"{seconds:.1f}", GREEDY_LIMIT, f"{1e3 * seconds / calls:.2f}"),
        ("the same number of sets from scratch", f"{cold * calls:.1f}", "", f"{1e3 * cold:.2f}"),
    ]
    print(f"\n{GREEDY_LABELS} labels in Sparse with {GREEDY_STATES:,} states: {calls:,} evaluations\n")
    print(table(("search", "CPU seconds", "limit", "ms per label set"), rows))


def bench_episodes() -> None:
    """Print the time of one episode per strategy in the largest world."""
    env = selectenv.make_env("Sparse", n_states=EPISODE_STATES, budget=EPISODE_LABELS, labels_per_refit=REFIT)
    rows = []
    for name in STRATEGIES:
        seconds = best_of(1, lambda name=name: agents.play(env, agents.make(name)))  # type: ignore[misc]
        rows.append((name, f"{seconds:.1f}", EPISODE_LIMIT))
    print(f"\n{EPISODE_LABELS:,} labels in Sparse with {EPISODE_STATES:,} states, a refit every {REFIT} labels\n")
    print(table(("strategy", "CPU seconds", "limit"), rows))


def draw(found: list[Scaling], path: Path) -> None:
    """Draw seconds against the number of states on logarithmic axes, with the limits and the slope of linear cost."""
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    sizes = [one.n for one in found]
    for label, marker, seconds in (
        ("world, expert and data", "s", [one.making for one in found]),
        ("learned features", "^", [one.features for one in found]),
        ("performance call", "o", [one.performance for one in found]),
    ):
        axes.plot(sizes, seconds, marker=marker, label=label)
    axes.plot(
        sizes, [found[0].performance * n / sizes[0] for n in sizes], color="#808080", ls="--", label="linear in n"
    )
    axes.plot(
        list(LIMITS), list(LIMITS.values()), color="black", ls="", marker="_", ms=16, mew=2, label="limit of a call"
    )
    axes.set(xscale="log", yscale="log", xlabel="states", ylabel="CPU seconds", title="Sparse: time against size")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    save(figure, path)
