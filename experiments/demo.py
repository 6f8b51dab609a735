"""The demo: every strategy on Tree, a few budgets and seeds; one table, and two pictures."""

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np

import agents
import selectenv
from agents.errors import SearchLimitError
from experiments.analysis.figures import performance_figure, selections_figure
from experiments.cli.tables import table
from experiments.studies.tabular.search_results import CERTAIN
from selectenv.env import RewardSelectionEnv
from selectenv.io.progress import progress
from selectenv.typing import IntArray

WORLD = "Tree"
BUDGETS = (3, 9, 15)
DRAWN = 9
OPTIONS = {"optuna": {"max_evaluations": 40}, "swap-search": {"max_evaluations": 10_000}}
FEWER_SEEDS = {"optuna": 1}


def play(name: str, budget: int, seed: int) -> tuple[agents.Episode, IntArray] | None:
    """Train where the strategy trains, and play; None where it refuses because there are too many sets."""
    env = gym.make(selectenv.env_id(WORLD), budget=budget)
    agent = agents.make(name, **OPTIONS.get(name, {}))
    try:
        agent.train(env, seed)
    except SearchLimitError:
        return None
    episode = agents.play(env, agent, seed)
    inner = env.unwrapped
    assert isinstance(inner, RewardSelectionEnv)
    return episode, inner.labelled_at


def main(arguments: list[str] | None = None) -> None:
    """Play everything, print the table and write the pictures."""
    parser = argparse.ArgumentParser(prog="selectenv demo", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="episodes of strategies that leave something to chance")
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS), help="numbers of labels, 1 to 31")
    parser.add_argument("--only", nargs="+", choices=sorted(agents.AGENTS), help="only these strategies")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures (default: out)")
    options = parser.parse_args(arguments)
    if options.seeds < 1 or not all(1 <= budget <= 31 for budget in options.budgets):
        parser.error("--seeds must be 1 or more, --budgets from 1 to 31")
    names = options.only or [name for name, (kind, _) in agents.AGENTS.items() if not kind.slow]
    curves: dict[str, list[tuple[int, float, float]]] = {name: [] for name in names}
    drawn, rows = {}, []
    best = {budget: best_return(budget) for budget in options.budgets}
    work = [(name, budget) for name in names for budget in options.budgets]
    for name, budget in progress(work, len(work), "playing"):
        seeds = 1 if name in CERTAIN else min(options.seeds, FEWER_SEEDS.get(name, options.seeds))
        played = [found for seed in range(seeds) if (found := play(name, budget, seed)) is not None]
        if not played:
            rows.append((name, budget, "not enumerated", "", "", ""))
            continue
        returns = [float(episode.performance or 0.0) for episode, _ in played]
        mean, error = float(np.mean(returns)), standard_error(returns)
        curves[name].append((budget, mean, error))
        shown = f"{error:.3f}" if len(returns) > 1 else "-"
        rows.append((name, budget, f"{mean:.3f}", shown, f"{best[budget] - mean:.3f}", f"{played[0][0].asked:,}"))
        if budget == DRAWN or name not in drawn:
            drawn[name] = (f"{name}: {returns[0]:.2f}, {budget} labels", played[0][1])
    print(f"{WORLD}, UDS. The gap is to the best set of so many labels, proved optimal by branch and bound.\n")
    print(table(("strategy", "labels", "return", "std. error", "gap", "evaluator calls"), rows))
    asks = {name for name in names if agents.AGENTS[name][0].taxonomy.evaluator != "never"}
    shown_curves = {name: points for name, points in curves.items() if points}
    performance_figure(shown_curves, asks, f"{WORLD}: performance against labels", options.out / "performance.png")
    selections_figure(selectenv.make_problem(WORLD), dict(drawn.values()), options.out / "selections.png")
    print(f"\nPictures: {options.out / 'performance.png'}, {options.out / 'selections.png'}")


def best_return(budget: int) -> float:
    """Return the best return of so many labels, and insist on the proof."""
    env = gym.make(selectenv.env_id(WORLD), budget=budget)
    agent = agents.make("exact")
    agent.train(env)
    assert isinstance(agent, agents.SearchAgent)
    assert agent.memory["notes"]["certified"]
    return float(agent.memory["performance"])


def standard_error(values: list[float]) -> float:
    """Return the standard error of the mean; 0 for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
