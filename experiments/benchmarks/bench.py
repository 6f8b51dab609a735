"""The benchmark: label sets a second in every world, the published way beside it, and what one step costs.

All figures come from one run, so that the ratios hold whatever the machine is doing.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import gymnasium as gym
import numpy as np

import agents
import selectenv
from experiments.benchmarks.bench_minatar import bench_minatar
from experiments.benchmarks.reference_qlearning import plain_performance
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table
from experiments.engine.runner import run_cells
from experiments.engine.store import ResultsStore
from experiments.studies import find_studies
from selectenv.datasets import collect
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError
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
"""Label sets a second that two cores must reach."""
RELEASED_SECONDS = {"Graph": 2.6, "Tree": 2.3, "TwoRooms": 5, "TwoRoomsTrap": 5, "FrozenLake": 17, "CliffWalk": 35}
"""What one call of the paper's released code takes on one core."""
SETS = 100_000


@kernel
def multiply_add(out: FloatArray, a: FloatArray, b: FloatArray, times: int) -> None:
    """Multiply and add within the first cache, over and over."""
    for i in range(times):
        x = a[i % len(a)]
        y = b[i % len(b)]
        for w in range(len(out)):
            out[w] += x[w] * y[w]


def multiply_add_rate() -> float:
    """Return multiply-adds a second of one core on data in its first cache: the limit of lane-wise arithmetic."""
    a, b, out = np.ones((8, LANES)), np.full((8, LANES), 1e-9), np.zeros(LANES)
    multiply_add(out, a, b, 1)
    times = 1_000_000
    return times * LANES / best_of(3, lambda: multiply_add(out, a, b, times))


def bench_sets() -> dict[str, float]:
    """Print label sets a second in every world; return them."""
    rate, rows, speeds = multiply_add_rate(), [], {}
    memory = []
    for name, floor in FLOORS.items():
        problem = selectenv.make_problem(name)
        world = selectenv.TABULAR[name].make()
        masks = np.random.default_rng(0).random((SETS, problem.n_states)) < 0.5
        problem.performance_many(masks[:1000])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        speeds[name] = SETS / best_of(5, lambda p=problem, m=masks: p.performance_many(m))  # type: ignore[misc]
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        some = masks[: problem.learner.chunk_size(problem.dataset)]
        data, rewards = problem.dataset, problem.dataset.all_rewards
        policies = problem.learner.fit_many(data, rewards, some)
        learn = best_of(20, lambda p=problem, m=some: p.learner.fit_many(p.dataset, p.dataset.all_rewards, m))  # type: ignore[misc]
        learn /= len(some)
        evaluate = best_of(20, lambda p=problem, m=policies: p.evaluator.returns(m)) / len(some)  # type: ignore[misc]
        steps = 1 if world.model.acyclic else world.horizon
        share = steps * len(world.chain.successor) / (rate * evaluate)
        rows.append(
            (name, problem.n_states, f"{speeds[name]:,.0f}", f"{floor:,}", f"{speeds[name] / floor:.1f}",
             f"{speeds[name] * RELEASED_SECONDS[name]:,.0f}", f"{1e6 * learn:.2f}", f"{1e6 * evaluate:.2f}",
             f"{100 * share:.0f} %")
        )  # fmt: skip
    print(f"Label sets a second, half of the states labelled, UDS exact, {thread_count()} threads\n")
    header = ("world", "states", "sets/s", "floor", "ratio", "x released", "learn us", "evaluate us", "of limit")
    print(table(header, rows))
    print(
        f"\nThe limit: {rate / 1e9:.1f} billion multiply-adds a second and core on data in the first cache; the last"
        "\ncolumn is the evaluation's share of it. x released: times faster than a call of the released code, one core."
        f"\nMemory: the peak grew by {max(memory) / 1024:.1f} MiB at most over {5 * SETS:,} label sets a world."
    )
    return speeds


def bench_plain(speeds: dict[str, float]) -> None:
    """Print how much faster than the published way, on one label set of Graph and Tree."""
    rows = []
    for name in ("Graph", "Tree"):
        problem, row = selectenv.make_problem(name), selectenv.TABULAR[name]
        labels = np.random.default_rng(1).random(problem.n_states) < 0.5
        world = row.make()
        began = time.perf_counter()
        plain = plain_performance(world, problem.dataset, labels, row.defaults.learning.passes)
        seconds = time.perf_counter() - began
        exact = problem.performance(labels)
        rows.append((name, f"{seconds:.2f}", f"{plain:.3f}", f"{exact:.3f}", f"{seconds * speeds[name]:,.0f}"))
    print("\nThe published way, plainly: 100,000 samples a pass of Q-learning, 10,000 episodes; one set on one core\n")
    print(table(("world", "seconds", "its return", "exact return", "times faster"), rows))


def bench_steps() -> None:
    """Print what one env.step of Tree costs beyond Gymnasium's wrappers."""
    rows = []
    for title, refit, limit in (("without a refit", 1000, 50), ("with a refit and fresh features", 1, 200)):
        env = gym.make(selectenv.env_id("Tree"), budget=31, labels_per_refit=refit).unwrapped
        assert isinstance(env, RewardSelectionEnv)
        seconds = []
        for seed in range(50):
            env.reset(seed=seed)
            began = time.perf_counter()
            for action in range(30):  # the last label would be scored too
                env.step(action)
            seconds.append((time.perf_counter() - began) / 30)
        rows.append((title, f"{1e6 * float(np.median(seconds)):.0f}", limit))
    print("\nOne env.step of Tree, unwrapped\n")
    print(table(("step", "microseconds", "limit"), rows))


def bench_parts() -> None:
    """Print what the other parts cost."""
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


def bench_agents() -> None:
    """Print what the searches of the strategies cost, compiled and after a first call."""
    rows = []

    def row(title: str, world: str, budget: int, name: str, allowed: str, **options: object) -> None:
        problem = selectenv.make_problem(world)
        agent = agents.make(name, **options)
        agent.train(selectenv.RewardSelectionEnv(problem, 1 if name == "brute-force" else budget))
        env = selectenv.RewardSelectionEnv(problem, budget)
        seconds = best_of(1 if name == "brute-force" else 3, lambda: agent.train(env))
        asked = agent.training_calls[0]
        rows.append((title, f"{seconds:.2f}", allowed, f"{asked:,}", f"{asked / seconds:,.0f}"))

    for world in ("Graph", "Tree", "TwoRooms", "CliffWalk"):
        n = selectenv.make_problem(world).n_states
        row(f"sequential-greedy, {world}, all budgets", world, n, "sequential-greedy", "0.2")
    row("es-200, Tree, 9 labels", "Tree", 9, "es-200", "0.1")
    row("brute-force, Tree, 9 labels", "Tree", 9, "brute-force", "300", max_evaluations=30_000_000)
    row("exact, Tree, 9 labels, certified", "Tree", 9, "exact", "")
    graph = selectenv.make_problem("Graph")
    everything = (np.arange(2**15)[:, None] >> np.arange(15)) % 2 == 1
    seconds = best_of(3, lambda: graph.performance_many(everything))
    rows.append(("all sets of Graph", f"{seconds:.2f}", "2", f"{2**15:,}", f"{2**15 / seconds:,.0f}"))
    print("\nSearches\n")
    print(table(("search", "seconds", "limit", "evaluations", "a second"), rows))
    print(f"Peak memory of the whole run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def bench_studies(everything: bool) -> None:
    """Print how long studies take from scratch, on all cores."""
    studies, rows = find_studies(), []

    def timed(names: Iterable[str], seeds: int | None, solver: str) -> float:
        with tempfile.TemporaryDirectory() as folder, ResultsStore(Path(folder) / "results.sqlite") as store:
            began = time.perf_counter()
            for name in names:
                study = studies[name]
                run_cells(
                    study.cells(seeds or study.seeds, solver),
                    study.run_cell,
                    store,
                    jobs=thread_count(),
                    title=name,
                    cells_per_task=study.cells_per_task,
                )
            return time.perf_counter() - began

    rows.append(("heuristics-uds, 100 seeds", f"{timed(['heuristics-uds'], None, 'exact'):.0f}", "60"))
    sampled = 50 * timed(["heuristics-uds"], 2, "sampled")
    rows.append(("heuristics-uds, sampled, 100 seeds (50 times 2 seeds)", f"{sampled:.0f}", "3600"))
    if everything:
        short = [name for name, study in studies.items() if study.cpu_hours is None]
        games = [name for name in short if name.startswith("breakout")]
        tabular = [name for name in short if name not in games]
        rows.append(("all tabular studies", f"{timed(tabular, None, 'exact'):.0f}", "1200"))
        rows.append(("all studies of Breakout, both scales", f"{timed(games, None, 'exact'):.0f}", "1800"))
    print("\nStudies from scratch\n")
    print(table(("study", "seconds", "limit"), rows))


def _bench_networks() -> None:
    """Time the training of networks; PyTorch, which it is compared with, takes seconds to import."""
    from experiments.benchmarks.bench_networks import bench_networks

    bench_networks()


def _bench_selectors() -> None:
    """Time selectors, which are trained with PyTorch."""
    from experiments.benchmarks.bench_selectors import bench_selectors

    bench_selectors()


def main(arguments: list[str] | None = None) -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(prog="selectenv bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out searches and studies")
    parser.add_argument("--minatar", action="store_true", help="only the MinAtar worlds")
    parser.add_argument("--networks", action="store_true", help="only the training of networks")
    parser.add_argument("--selectors", action="store_true", help="only learned selectors and their training")
    parser.add_argument("--all-studies", action="store_true", help="time all studies too, about forty minutes")
    options = parser.parse_args(arguments)
    parts = {"minatar": bench_minatar, "networks": _bench_networks, "selectors": _bench_selectors}
    chosen = [run for name, run in parts.items() if getattr(options, name)]
    for run in chosen:
        run()
    if chosen:
        return
    bench_plain(bench_sets())
    bench_steps()
    bench_parts()
    if not options.quick:
        bench_agents()
        for name, run in parts.items():
            try:
                run()
            except MissingExtraError as error:
                print(f"\nNOT timed, {name}: {error}")
        bench_studies(options.all_studies)


if __name__ == "__main__":
    main()
