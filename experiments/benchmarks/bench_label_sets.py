"""Benchmark of label sets per second in every tabular world, beside the published procedure."""

import time

import numpy as np

import selectenv
from experiments.benchmarks.reference_qlearning import reference_performance
from experiments.benchmarks.timing import best_of, peak_memory
from experiments.cli.tables import table
from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.solve import LANES
from selectenv.kernels.threads import thread_count
from selectenv.typing import FloatArray

FLOORS = {
    "Graph": 400_000,
    "Tree": 250_000,
    "TwoRooms": 80_000,
    "TwoRoomsTrap": 80_000,
    "FrozenLake": 50_000,
    "CliffWalk": 60_000,
}
"""Label sets per second that two cores must reach."""
RELEASED_SECONDS = {"Graph": 2.6, "Tree": 2.3, "TwoRooms": 5, "TwoRoomsTrap": 5, "FrozenLake": 17, "CliffWalk": 35}
"""Seconds that one call of the paper's released code takes on one core."""
SETS, ROUNDS = 50_000, 15
"""Short rounds, so that the fastest one is likely to have had the machine to itself."""


@kernel
def multiply_add(out: FloatArray, a: FloatArray, b: FloatArray, times: int) -> None:
    """Multiply and add arrays that fit into the first-level cache, many times."""
    for i in range(times):
        x = a[i % len(a)]
        y = b[i % len(b)]
        for w in range(len(out)):
            out[w] += x[w] * y[w]


def multiply_add_rate() -> float:
    """Return multiply-adds per second of one core on cached data: the upper limit of lane-wise arithmetic."""
    a, b, out = np.ones((8, LANES)), np.full((8, LANES), 1e-9), np.zeros(LANES)
    multiply_add(out, a, b, 1)
    times = 50_000
    return times * LANES / best_of(60, lambda: multiply_add(out, a, b, times))


def bench_label_sets() -> dict[str, float]:
    """Print label sets per second in every tabular world; return them by world."""
    rate, rows, speeds = multiply_add_rate(), [], {}
    memory = []
    for name, floor in FLOORS.items():
        problem = selectenv.make_problem(name)
        world = selectenv.TABULAR[name].make()
        masks = np.random.default_rng(0).random((SETS, problem.n_states)) < 0.5
        problem.performance_many(masks[:1000])
        before = peak_memory()
        speeds[name] = SETS / best_of(ROUNDS, lambda p=problem, m=masks: p.performance_many(m))  # type: ignore[misc]
        memory.append(peak_memory() - before)
        some = masks[: problem.learner.chunk_size(problem.dataset)]
        data, rewards = problem.dataset, problem.dataset.all_rewards
        policies = problem.learner.fit_many(data, rewards, some)
        learn = best_of(20, lambda p=problem, m=some: p.learner.fit_many(p.dataset, p.dataset.all_rewards, m))  # type: ignore[misc]
        learn /= len(some)
        evaluate = best_of(20, lambda p=problem, m=policies: p.evaluator.returns(m)) / len(some)  # type: ignore[misc]
        steps = 1 if world.model.acyclic else world.horizon
        share = steps * len(world.chain.successor) / (rate * evaluate)
        rows.append(
            (
                name,
                problem.n_states,
                f"{speeds[name]:,.0f}",
                f"{floor:,}",
                f"{speeds[name] / floor:.1f}",
                f"{speeds[name] * RELEASED_SECONDS[name]:,.0f}",
                f"{1e6 * learn:.2f}",
                f"{1e6 * evaluate:.2f}",
                f"{100 * share:.0f} %",
            )
        )
    print(f"Label sets per second, half of the states labelled, UDS exact, {thread_count()} threads\n")
    header = ("world", "states", "sets/s", "floor", "ratio", "x released", "learn us", "evaluate us", "of limit")
    print(table(header, rows))
    print(
        f"\nof limit: the evaluation's share of the {rate / 1e9:.1f} billion multiply-adds per second that one core"
        "\nreaches on cached data. x released: speed-up over one call of the released code on one core."
        f"\nMemory: the peak grew by at most {max(memory):.1f} MiB over {ROUNDS * SETS:,} label sets per world."
    )
    return speeds


def bench_reference(speeds: dict[str, float]) -> None:
    """Print the speed-up over the published procedure in plain Python, on one label set of Graph and Tree.

    Args:
        speeds: Label sets per second by world, from `bench_label_sets`.
    """
    rows = []
    for name in ("Graph", "Tree"):
        problem, row = selectenv.make_problem(name), selectenv.TABULAR[name]
        labels = np.random.default_rng(1).random(problem.n_states) < 0.5
        world = row.make()
        began = time.perf_counter()
        sampled = reference_performance(world, problem.dataset, labels, row.defaults.learning.passes)
        seconds = time.perf_counter() - began
        exact = problem.performance(labels)
        rows.append((name, f"{seconds:.2f}", f"{sampled:.3f}", f"{exact:.3f}", f"{seconds * speeds[name]:,.0f}"))
    print(
        "\nThe published procedure in plain Python: Q-learning passes over 100,000 samples, 10,000 episodes; one core\n"
    )
    print(table(("world", "seconds", "sampled return", "exact return", "times faster"), rows))
