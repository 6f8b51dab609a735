"""The demo: a few strategies in a small world, as a table, two figures and two sentences."""

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import agents
import selectenv
from agents.errors import SearchLimitError
from experiments.analysis.best_known import best_known
from experiments.analysis.figures import performance_figure, selections_figure
from experiments.cli.commands import AddCommand
from experiments.cli.narration import narration
from experiments.cli.tables import WIDTH, table
from experiments.studies.tabular.search_results import CERTAIN
from selectenv.checks import check_int, check_name
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError
from selectenv.problem import SelectionProblem
from selectenv.references import is_reference
from selectenv.typing import IntArray

WORLD = "Tree"
BUDGETS = (3, 9, 15)
SEEDS = 20
STRATEGIES = (
    "uniform",
    "guided",
    "terminal-guided",
    "learned",
    "auto",
    "es-200",
    "sequential-greedy",
)
"""Played by default: together with the best label sets known they are the eight curves of the figure."""
DRAWN_LABELS = 9
"""The budget whose label sets are drawn, if it is played."""
CURVES, PANELS = 8, 9
"""Maximum number of curves in one figure and of panels in the other, including the best label sets known."""
BEST = "best known"
OPTIONS: dict[str, dict[str, Any]] = {"optuna": {"max_evaluations": 40}, "swap-search": {"max_evaluations": 10_000}}
FEWER_SEEDS = {"optuna": 1}
NEXT = {
    "show CliffWalk": "draw what strategies label in another world",
    "demo --all": "play every strategy that trains within seconds",
    "list": "list the studies; the command `run NAME` runs one",
    "label --help": "label a log of your own; docs/own-data.md tells the story of one",
}


@dataclass(frozen=True)
class Score:
    """What a strategy earned with a budget."""

    strategy: str
    labels: int
    mean: float | None
    """Mean return of the learned policies; None where there are too many label sets to enumerate."""
    error: float | None
    """Standard error of the mean; None where there is only one episode."""
    gap: float
    """Distance of the mean to the best return known."""
    cost: int
    """Cost of the first episode, including training."""
    first: float
    """Return of the first episode."""
    labelled_at: IntArray
    """When each state was labelled in the first episode, 0 for never; shape [n_states]."""


@dataclass(frozen=True)
class Best:
    """The best label set known of a size."""

    mean: float
    certified: bool
    labelled_at: IntArray


def add_to(add: AddCommand) -> None:
    """Add the command to the command line."""
    command = add(
        "demo",
        run,
        f"compare strategies in {WORLD}: a table, two figures, and what they show",
        {
            "demo": f"{len(STRATEGIES)} strategies with {', '.join(map(str, BUDGETS))} labels",
            "demo --quick": "two budgets and two episodes each",
            "demo --only guided exact --budgets 5": "these strategies with 5 labels",
        },
    )
    command.add_argument("--seeds", type=int, help=f"episodes per random strategy (default: {SEEDS}; --quick: 2)")
    command.add_argument("--budgets", type=int, nargs="+", help="numbers of labels (default: 3 9 15; --quick: 3 9)")
    command.add_argument("--only", nargs="+", metavar="STRATEGY", help="play only these strategies")
    command.add_argument("--all", action="store_true", help="play every strategy that trains within seconds")
    command.add_argument("--quick", action="store_true", help="play fewer budgets and episodes")
    command.add_argument("--out", type=Path, default=Path("out"), help="directory of the figures (default: out)")


def run(options: argparse.Namespace) -> None:
    """Play the strategies, print the table and the findings, and write the figures."""
    seeds = check_int("--seeds", (2 if options.quick else SEEDS) if options.seeds is None else options.seeds)
    names = _names(options)
    given = (BUDGETS[:2] if options.quick else BUDGETS) if options.budgets is None else options.budgets
    options.out.mkdir(parents=True, exist_ok=True)  # fails before the work rather than after it
    with narration(len(names) + 2) as announce:
        announce(f"collecting the dataset of {WORLD}")
        problem = selectenv.make_problem(WORLD)
        budgets = sorted({check_int("--budgets", budget, 1, problem.n_states) for budget in given})
        best = {budget: best_set(problem, budget) for budget in budgets}
        scores = []
        for name in names:
            announce(f"playing {name}")
            scores += [play(name, budget, seeds, best[budget]) for budget in budgets]
        announce("drawing the figures")
        figures = _draw(problem, scores, best, options.out)
    scores.sort(key=lambda score: (score.labels, score.gap))
    proved = ", proved optimal by branch and bound" if all(entry.certified for entry in best.values()) else ""
    print(
        f"{WORLD}, UDS: {problem.n_states} states. The gap is the distance to the best label set known{proved}.\n"
        f"Returns are means over {seeds} episodes; a strategy that leaves nothing to chance plays one.\n"
    )
    print(score_table(scores, best))
    print("\n" + "\n".join(textwrap.fill(sentence, WIDTH) for sentence in findings(scores, best)))
    print(f"\n{figures}\n\n{next_commands()}")


def next_commands() -> str:
    """Return what to try next, with the path of the command if it is not on the search path."""
    script = Path(sys.executable).with_name("selectenv")
    command = "selectenv" if shutil.which("selectenv") or not script.exists() else os.path.relpath(script)
    width = max(map(len, NEXT)) + 2
    return "\n".join(["Next:", *(f"  {command} {words:<{width}}{what}" for words, what in NEXT.items())])


def _names(options: argparse.Namespace) -> list[str]:
    """Return the strategies to play."""
    if options.only:
        names = list(dict.fromkeys(options.only))
        for name in names:
            if is_reference(name):
                agents.make(name)  # raises now if there is no such strategy
            else:
                check_name("strategy", name, agents.AGENTS)
        return names
    return [name for name, (kind, _) in agents.AGENTS.items() if not kind.slow] if options.all else list(STRATEGIES)


def play(name: str, budget: int, seeds: int, best: Best) -> Score:
    """Train the strategy if it trains, and play one episode per seed; deterministic strategies play one."""
    episodes = []
    env = gym.make(selectenv.env_id(WORLD), budget=budget)
    inner = env.unwrapped
    assert isinstance(inner, RewardSelectionEnv)
    for seed in range(1 if name in CERTAIN else min(seeds, FEWER_SEEDS.get(name, seeds))):
        agent = agents.make(name, **OPTIONS.get(name, {}))
        try:
            agent.train(env, seed)
        except SearchLimitError:
            return Score(name, budget, None, None, float("inf"), 0, 0.0, np.zeros_like(inner.labelled_at))
        episodes.append((agents.play(env, agent, seed), inner.labelled_at.copy()))
    returns = [float(episode.performance or 0.0) for episode, _ in episodes]
    mean = float(np.mean(returns))
    error = float(np.std(returns, ddof=1) / np.sqrt(len(returns))) if len(returns) > 1 else None
    return Score(name, budget, mean, error, best.mean - mean, episodes[0][0].cost, returns[0], episodes[0][1])


def best_set(problem: SelectionProblem, budget: int) -> Best:
    """Return the best label set known; for budgets outside the published ones, search and prove it."""
    entry = best_known().get(f"{WORLD}/uds/{budget}")
    if entry is None:
        agent = agents.make("exact")
        agent.train(RewardSelectionEnv(problem, budget))
        assert isinstance(agent, agents.SearchAgent)
        memory = agent.memory
        certified = memory["notes"]["certified"]
        entry = {"return": memory["performance"], "ids": memory["ranking"][:budget], "certified": certified}
    labelled_at = np.zeros(problem.n_states, np.int64)
    labelled_at[problem.actions(sorted(entry["ids"]))] = np.arange(1, budget + 1)
    return Best(float(entry["return"]), bool(entry["certified"]), labelled_at)


def score_table(scores: Iterable[Score], best: dict[int, Best]) -> str:
    """Return one line per budget and strategy in the given order, each budget below its best return known."""
    rows: list[tuple[object, ...]] = []
    shown: set[int] = set()
    for score in scores:
        if score.labels not in shown:
            shown.add(score.labels)
            rows.append((score.labels, f"({BEST})", f"{best[score.labels].mean:.3f}", "", "", ""))
        if score.mean is None:
            rows.append((score.labels, score.strategy, "not enumerated", "", "", ""))
            continue
        error = "-" if score.error is None else f"{score.error:.3f}"
        rows.append((score.labels, score.strategy, f"{score.mean:.3f}", error, f"{score.gap:.3f}", f"{score.cost:,}"))
    return table(("labels", "strategy", "return", "std. error", "gap", "cost"), rows)


def findings(scores: Sequence[Score], best: dict[int, Best]) -> list[str]:
    """Return two sentences: the best strategy with few labels, and the best one without an evaluator."""
    few = min(best)
    ranked = sorted((score for score in scores if score.labels == few and score.mean is not None), key=lambda s: s.gap)
    if not ranked:
        return [f"None of these strategies enumerates all sets of {few} labels."]
    first, last = ranked[0], ranked[-1]
    sentence = (
        f"With {few} labels, {first.strategy} earns the most, {first.mean:.3f} of the best known {best[few].mean:.3f}"
    )
    sentences = [f"{sentence}, and {last.strategy} the least, {last.mean:.3f}." if len(ranked) > 1 else f"{sentence}."]
    gaps: dict[str, list[float]] = {}
    for score in sorted(scores, key=lambda score: score.labels):
        if not asks_evaluator(score.strategy):
            gaps.setdefault(score.strategy, []).append(score.gap)
    if not gaps:
        return [*sentences, "All of these strategies ask the evaluator."]
    name = min(gaps, key=lambda name: sum(gaps[name]))
    listed = [f"{gap:.3f} with {labels} labels" for gap, labels in zip(gaps[name], sorted(best), strict=True)]
    joined = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    return [
        *sentences,
        f"Of the strategies that never ask the evaluator, {name} comes closest to the best known on average: "
        f"its gap is {joined}.",
    ]


def asks_evaluator(name: str) -> bool:
    """Return whether the strategy asks the evaluator, in training or while playing."""
    return agents.AGENTS[name][0].taxonomy.evaluator != "never"


def _draw(problem: SelectionProblem, scores: Sequence[Score], best: dict[int, Best], folder: Path) -> str:
    """Write both figures; return a line that names them, or the reason why there are none."""
    names = list(dict.fromkeys(score.strategy for score in scores))
    names.sort(key=lambda name: name not in STRATEGIES)  # the default ones first, if there are too many
    curves = {BEST: [(budget, entry.mean, 0.0) for budget, entry in best.items()]}
    panels: dict[str, IntArray] = {}
    drawn = DRAWN_LABELS if DRAWN_LABELS in best else min(best)
    for name in names:
        played = [score for score in scores if score.strategy == name and score.mean is not None]
        if played and len(curves) < CURVES:
            curves[name] = [(score.labels, score.mean or 0.0, score.error or 0.0) for score in played]
        for score in played:
            if score.labels == drawn and len(panels) < PANELS - 1:
                panels[f"{name}: return {score.first:.2f}"] = score.labelled_at
    best_panel = f"{BEST}: return {best[drawn].mean:.2f}"
    panels[best_panel] = best[drawn].labelled_at
    paths = folder / "performance.png", folder / "selections.png"
    dashed = {name for name in names if asks_evaluator(name)}
    try:
        performance_figure(curves, dashed, BEST, f"{WORLD}: return against the number of labels", paths[0])
        selections_figure(problem, panels, paths[1], f"{WORLD}, {drawn} labels, first episode", {best_panel})
    except MissingExtraError as error:
        return f"No figures were drawn: {error}"
    return f"Figures: {paths[0]} (return against labels), {paths[1]} (which states are labelled)"


if __name__ == "__main__":
    from experiments.cli.main import main

    sys.exit(main(["demo", *sys.argv[1:]]))
