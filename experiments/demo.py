"""The demo: a few episodes of Tree with a labeller by chance and one that looks one step ahead; a table, a picture."""

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import selectenv
from experiments.lookahead import lookahead_label, uniform_label
from experiments.tables import table
from selectenv.env import RewardSelectionEnv
from selectenv.rendering import draw
from selectenv.streams import generator
from selectenv.typing import IntArray

WORLD = "Tree"
BUDGETS = (3, 9, 15)
LABELLERS = {"uniform": uniform_label, "lookahead": lookahead_label}


def play(budget: int, labeller: str, seed: int) -> tuple[float, int, IntArray]:
    """Play one episode; return the performance, the evaluator calls asked for, and when each state was labelled."""
    env = gym.make(selectenv.env_id(WORLD), budget=budget)
    rng = generator(seed, "selection", labeller, budget)
    _, info = env.reset(seed=seed)
    terminated, total = False, 0.0
    while not terminated:
        _, reward, terminated, _, info = env.step(LABELLERS[labeller](env, info, rng))
        total += float(reward)
    inner = env.unwrapped
    assert isinstance(inner, RewardSelectionEnv)
    return total, inner.calls.asked, inner.labelled_at


def main(arguments: list[str] | None = None) -> None:
    """Play, print the table and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--episodes", type=int, default=20, help="episodes a budget of the random labeller (default 20)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/demo.png"), help="where the picture goes (default out/demo.png)"
    )
    options = parser.parse_args(arguments)
    if options.episodes < 1:
        parser.error("--episodes must be 1 or more")
    best = selectenv.make_problem(WORLD).performance(range(31))
    rows, pictures = [], []
    for budget in BUDGETS:
        for labeller in LABELLERS:
            seeds = range(options.episodes if labeller == "uniform" else 1)
            returns, calls, selections = zip(*(play(budget, labeller, seed) for seed in seeds), strict=True)
            error = f"{np.std(returns, ddof=1) / np.sqrt(len(returns)):.3f}" if len(returns) > 1 else "exact"
            rows.append(
                (budget, labeller, f"{np.mean(returns):.3f}", error, f"{best - np.mean(returns):.3f}", calls[0])
            )
            if budget == BUDGETS[1]:
                pictures.append((f"{labeller}: {returns[0]:.2f} with {budget} labels", selections[0]))
    header = ("labels", "labeller", "return", "std. error", "short of all 31 labels", "evaluator calls")
    print(f"{WORLD}: {len(BUDGETS)} budgets, {options.episodes} random episodes each; all 31 labels earn {best:.3f}\n")
    print(table(header, rows))
    save_picture(pictures, options.out)
    print(f"\nWhat was labelled, in which order: {options.out}")


def save_picture(pictures: list[tuple[str, Any]], path: Path) -> None:
    """Draw selections side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4 * len(pictures), 3.4), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    problem = selectenv.make_problem(WORLD)
    for i, (title, labelled_at) in enumerate(pictures):
        draw(figure.add_subplot(1, len(pictures), i + 1), problem, labelled_at, title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main()
