"""How well does a selector label that was trained on random worlds only, and asks no evaluator?

The published worlds, random worlds that it was not trained in, some of them larger, and Breakout; five training seeds.
"normalised gap" is the distance to the best set known, averaged over the budgets of a world, as a share of what uniform
leaves there, and averaged over the six worlds. "test" scores the labels that were chosen on the training data on the
five test mixtures; "anew" lets those who ask no evaluator choose on each of those themselves. maskable-ppo is trained
in the very world that it labels, for each budget.
"""

from collections import defaultdict
from typing import Any

import numpy as np

from agents.learned.state_features import LARGE
from experiments.analysis.best_known import best_return
from experiments.analysis.figures import new_figure
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Row, Study
from experiments.protocol.budgets import WORLDS
from experiments.studies.selectors.unseen_worlds import (
    GAME,
    LEARNERS,
    RANDOM,
    SELECTORS,
    run_zero_shot,
    zero_shot_cells,
)
from selectenv.typing import FloatArray

NAME, SEEDS = "learned", 20
SIX, GAP, ALL = "six worlds", "normalised gap", "all"
LARGER = "worlds larger than any in training"
SHOWN = ("uniform", "guided", "terminal", "terminal-guided", "es-50", "es-200", "learned", "learned-without-termination")
Runs = dict[tuple[str, str, str, Any], dict[str, list[float]]]
"""Learner, world, strategy, labels -> figure -> runs, in the order of their seeds."""


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells."""
    return zero_shot_cells(NAME, seeds)


def _places(result: Result, record: Record) -> list[str]:
    """Return where a figure belongs; those of random worlds stand by kind, and those of the larger ones once more."""
    if result.cell.world != RANDOM:
        return [result.cell.world]
    return [f"{RANDOM} {record['kind']}", *([LARGER] if record["states"] > LARGE else [])]


def _runs(results: list[Result]) -> Runs:
    """Sort the figures; in a random world, whose number is the seed, a selector's is the mean of its trainings."""
    gathered: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda r: r.cell.seed):
        settings = result.cell.settings
        learner = str(settings.get("learner", settings.get("variant")))
        for record in result.records:
            for world in _places(result, record):
                place = learner, world, result.cell.strategy, record["labels"]
                for figure in ("train", "test", "anew", "return", "asked"):
                    if figure in record:
                        gathered[place, figure][result.cell.seed].append(record[figure])
    found: Runs = defaultdict(dict)
    for (place, figure), by_seed in gathered.items():
        found[place][figure] = [float(np.mean(values)) for values in by_seed.values()]
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return the normalised gaps first, then everything."""
    runs = _runs(results)
    found = []
    for learner in LEARNERS:
        for strategy, world, values in normalised_gaps(runs, learner):
            found.append(Row(world, ALL, strategy, GAP, summarise(values), None, setting=learner))
    for (learner, world, strategy, labels), figures in runs.items():
        for figure, returns in figures.items():
            if figure == "asked":
                continue
            baseline = runs.get((learner, world, "uniform", labels), {}).get(figure)
            ours = np.array(returns, float)
            summary = summarise(ours, np.array(baseline) if baseline and strategy != "uniform" else None)
            gap = best_return(world, learner, labels) - summary.mean if figure == "train" else None
            found.append(Row(world, labels, strategy, figure, summary, gap, setting=learner))
    return found


def normalised_gaps(runs: Runs, learner: str) -> list[tuple[str, str, FloatArray]]:
    """Return strategy, world and the gaps of its runs, the mean over all six worlds last."""
    gaps: dict[tuple[str, str], list[FloatArray]] = defaultdict(list)
    for (mine, world, strategy, labels), figures in runs.items():
        if mine == learner and world in WORLDS:
            gaps[strategy, world].append(best_return(world, learner, labels) - np.array(figures["train"]))
    found = []
    for strategy in dict.fromkeys(name for name, _ in gaps):
        means = []
        for world in WORLDS:
            if (strategy, world) in gaps and ("uniform", world) in gaps:
                means.append(_over_budgets(gaps[strategy, world]) / _over_budgets(gaps["uniform", world]).mean())
                found.append((strategy, world, means[-1]))
        if len(means) == len(WORLDS):
            found.append((strategy, SIX, _over_budgets(means)))
    return found


def _over_budgets(values: list[FloatArray]) -> FloatArray:
    """Return the mean of each run."""
    runs = min(map(len, values))
    return np.asarray(np.mean([one[:runs] for one in values], axis=0))


def findings(rows: list[Row]) -> list[str]:
    """Say who leaves how much, and whether the selector beats its rivals."""
    said = []
    for learner in LEARNERS:
        left = {r.strategy: r.ours for r in rows if r.ours and (r.world, r.figure, r.setting) == (SIX, GAP, learner)}
        if "learned" not in left:
            continue
        mine = left["learned"]
        parts = [f"{name} {left[name].mean:.3f}" for name in sorted(left, key=lambda n: left[n].mean)]
        beaten = [name for name, summary in left.items() if name not in SELECTORS and mine.high < summary.low]
        said.append(f"{learner}, gap left on the six worlds, uniform = 1: {', '.join(parts)}")
        said.append(
            f"{learner}: learned leaves {mine.mean:.3f} ({mine.low:.3f} to {mine.high:.3f} over {mine.runs} training "
            f"seeds), less than {', '.join(beaten) or 'nobody'} beyond the intervals"
        )
    for learner in LEARNERS:
        for world, what in ((RANDOM, "random worlds"), (LARGER, LARGER), (GAME, GAME)):
            means: dict[str, list[float]] = defaultdict(list)
            for row in rows:
                if row.world.startswith(world) and row.figure == "return" and row.setting == learner and row.ours:
                    means[row.strategy].append(row.ours.mean)
            order = sorted(means, key=lambda name: -float(np.mean(means[name])))
            if order:
                said.append(
                    f"{learner}, mean return in {what}: "
                    + ", ".join(f"{name} {np.mean(means[name]):.2f}" for name in order)
                )
    return said


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw what is left against what it cost, world by world, and the curves in random worlds and Breakout."""
    runs = _runs(results)
    found: dict[str, Any] = {}
    if any(world in WORLDS for _, world, _, _ in runs):
        found["What strategies leave, against the evaluator calls they ask for: six worlds"] = cost_figure(runs)
        found["What strategies leave, world by world, under UDS"] = _worlds_figure(runs)
    for world, title in ((RANDOM, "random worlds"), (GAME, GAME)):
        if any(place.startswith(world) for _, place, _, _ in runs):
            found[f"Return against labels in {title}"] = _curves_figure(runs, world)
    return found


def cost_figure(runs: Runs) -> Any:
    """Draw the gap that is left against evaluator calls, a panel a learner."""
    picture = new_figure(10, 4.2)
    for i, learner in enumerate(LEARNERS):
        axes = picture.add_subplot(1, 2, i + 1)
        for strategy, world, values in normalised_gaps(runs, learner):
            if world != SIX:
                continue
            calls = [
                np.mean(f["asked"])
                for (mine, w, s, _), f in runs.items()
                if (mine, s) == (learner, strategy) and w in WORLDS
            ]
            summary, x = summarise(values), float(np.mean(calls))
            bars = [[max(summary.mean - summary.low, 0.0)], [max(summary.high - summary.mean, 0.0)]]
            mine = strategy in SELECTORS
            axes.errorbar(x, summary.mean, bars, fmt="*" if mine else "o", markersize=10 if mine else 4)
            axes.annotate(strategy, (x, summary.mean), fontsize=6, xytext=(4, 2), textcoords="offset points")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("log")
        axes.set(xlabel="evaluator calls", ylabel="gap left (uniform = 1)", title=learner, xlim=(-0.3, 50_000))
        axes.grid(alpha=0.3)
    return picture


def _worlds_figure(runs: Runs) -> Any:
    picture = new_figure(10, 4)
    axes = picture.add_subplot()
    gaps = {(s, w): float(v.mean()) for s, w, v in normalised_gaps(runs, "uds")}
    places = [*WORLDS, SIX]
    shown = [name for name in SHOWN if any((name, place) in gaps for place in places)]
    for i, strategy in enumerate(shown):
        at = np.arange(len(places)) + (i - len(shown) / 2) * 0.8 / len(shown)
        axes.bar(at, [gaps.get((strategy, place), np.nan) for place in places], 0.8 / len(shown), label=strategy)
    axes.set_xticks(range(len(places)), places)
    axes.set(ylabel="gap left (uniform = 1)")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8, ncols=2)
    return picture


def _curves_figure(runs: Runs, world: str) -> Any:
    picture = new_figure(10, 4)
    for i, learner in enumerate(LEARNERS):
        axes = picture.add_subplot(1, 2, i + 1)
        for strategy in SHOWN:
            curve: dict[str, list[float]] = defaultdict(list)
            for (mine, place, name, labels), figures in runs.items():
                if mine == learner and name == strategy and place.startswith(world):
                    curve[labels] += figures["return"]
            if curve:
                style = "-" if strategy in SELECTORS else "--"
                x = [float(labels.split()[0]) for labels in curve]
                axes.plot(x, [np.mean(values) for values in curve.values()], style, marker="o", ms=3, label=strategy)
        axes.set(xlabel="percentage of states labelled", ylabel="return", title=learner)
        axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return picture


STUDY = Study(
    NAME, __doc__, cells, run_zero_shot, rows, SEEDS, figures, place=33, solvers=("exact",), findings=findings
)
