"""Benchmark of strategies that search."""

import numpy as np

import agents
import selectenv
from experiments.benchmarks.timing import best_of, peak_memory
from experiments.cli.tables import table


def bench_searches() -> None:
    """Print the time of searches, after a first call has compiled them."""
    rows = []

    def row(title: str, world: str, budget: int, name: str, allowed: str, **options: object) -> None:
        problem = selectenv.make_problem(world)
        agent = agents.make(name, **options)
        agent.train(selectenv.RewardSelectionEnv(problem, 1 if name == "brute-force" else budget))
        env = selectenv.RewardSelectionEnv(problem, budget)
        seconds = best_of(1 if name == "brute-force" else 3, lambda: agent.train(env))
        cost = agent.training_calls.cost
        rows.append((title, f"{seconds:.2f}", allowed, f"{cost:,}", f"{cost / seconds:,.0f}"))

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
    print(table(("search", "seconds", "limit", "evaluations", "per second"), rows))
    print(f"Peak memory of all benchmarks so far: {peak_memory():.0f} MiB")
