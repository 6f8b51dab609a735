"""How well does a selector label that was trained only on random worlds and makes no evaluator calls?

It is tested on the published worlds, on random worlds that were not used in training, some of them larger, and on
Breakout, with five training seeds. The "normalised gap" is the gap to the best known set, averaged over the budgets of
a world and divided by that of uniform, then averaged over the six worlds. "test" evaluates the labels that were chosen
on the training data on the five test mixtures; for "anew", strategies without evaluator calls choose labels on each
test mixture. maskable-ppo is trained in the world that it labels, for each budget.
"""

from collections import defaultdict
from typing import Any

import numpy as np

from agents.learned.state_features import LARGE
from experiments.analysis.best_known import best_return
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import WORLDS, percentage
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
SIX, GAP, COST, ALL = "six worlds", "normalised gap", "cost", "all"
LARGER = "worlds larger than any in training"
SHOWN = (
    "uniform",
    "guided",
    "terminal",
    "terminal-guided",
    "es-50",
    "es-200",
    "learned",
    "learned-without-termination",
)
Runs = dict[tuple[str, str, str, Any], dict[str, list[float]]]
"""Learner, world, strategy, labels -> metric -> values of the runs, in the order of their seeds."""


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of selectors and of the strategies they are compared with."""
    return zero_shot_cells(NAME, seeds)


def _places(result: Result, record: Record) -> list[str]:
    """Return the worlds that a record counts for; random worlds are grouped by kind, and large ones also by size."""
    if result.cell.world != RANDOM:
        return [result.cell.world]
    return [f"{RANDOM} {record['kind']}", *([LARGER] if record["states"] > LARGE else [])]


def _runs(results: list[Result]) -> Runs:
    """Group the records; in a random world, where the seed is its number, training seeds of a selector are averaged."""
    gathered: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda r: r.cell.seed):
        settings = result.cell.settings
        learner = str(settings.get("learner", settings.get("variant")))
        for record in result.records:
            for world in _places(result, record):
                place = learner, world, result.cell.strategy, record["labels"]
                for metric in ("train", "test", "anew", "return", "cost"):
                    if metric in record:
                        gathered[place, metric][result.cell.seed].append(record[metric])
    found: Runs = defaultdict(dict)
    for (place, metric), by_seed in gathered.items():
        found[place][metric] = [float(np.mean(values)) for values in by_seed.values()]
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return the normalised gaps and the costs first, then all metrics."""
    runs = _runs(results)
    found = []
    for learner in LEARNERS:
        costs = mean_costs(runs, learner)
        for strategy, world, values in normalised_gaps(runs, learner):
            found.append(Row(world, ALL, strategy, GAP, summarise(values), None, setting=learner))
            if world == SIX:
                found.append(
                    Row(SIX, ALL, strategy, COST, summarise(np.array([costs[strategy]])), None, setting=learner)
                )
    for (learner, world, strategy, labels), metrics in runs.items():
        for metric, returns in metrics.items():
            if metric == COST:
                continue
            baseline = runs.get((learner, world, "uniform", labels), {}).get(metric)
            ours = np.array(returns, float)
            summary = summarise(ours, np.array(baseline) if baseline and strategy != "uniform" else None)
            gap = best_return(world, learner, labels) - summary.mean if metric == "train" else None
            found.append(Row(world, labels, strategy, metric, summary, gap, setting=learner))
    return found


def mean_costs(runs: Runs, learner: str) -> dict[str, float]:
    """Return the mean cost of each strategy over the six worlds and their budgets."""
    costs: dict[str, list[float]] = defaultdict(list)
    for (mine, world, strategy, _), metrics in runs.items():
        if mine == learner and world in WORLDS:
            costs[strategy].append(float(np.mean(metrics[COST])))
    return {strategy: float(np.mean(values)) for strategy, values in costs.items()}


def normalised_gaps(runs: Runs, learner: str) -> list[tuple[str, str, FloatArray]]:
    """Return strategy, world and normalised gaps [runs]; the mean over the six worlds comes last."""
    gaps: dict[tuple[str, str], list[FloatArray]] = defaultdict(list)
    for (mine, world, strategy, labels), metrics in runs.items():
        if mine == learner and world in WORLDS:
            gaps[strategy, world].append(best_return(world, learner, labels) - np.array(metrics["train"]))
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
    """Return the mean [runs] over budgets of each run."""
    runs = min(map(len, values))
    return np.asarray(np.mean([one[:runs] for one in values], axis=0))


def findings(rows: list[Row]) -> list[str]:
    """Summarise the gaps of all strategies, and which of them the selector beats."""
    sentences = []
    for learner in LEARNERS:
        left = {r.strategy: r.ours for r in rows if r.ours and (r.world, r.metric, r.setting) == (SIX, GAP, learner)}
        if "learned" not in left:
            continue
        mine = left["learned"]
        parts = [f"{name} {left[name].mean:.3f}" for name in sorted(left, key=lambda n: left[n].mean)]
        beaten = [name for name, summary in left.items() if name not in SELECTORS and mine.high < summary.low]
        sentences.append(f"{learner}, gap left on the six worlds, uniform = 1: {', '.join(parts)}")
        sentences.append(
            f"{learner}: learned leaves {mine.mean:.3f} ({mine.low:.3f} to {mine.high:.3f} over {mine.runs} training "
            f"seeds), less than {', '.join(beaten) or 'no other strategy'} beyond the intervals"
        )
    for learner in LEARNERS:
        for world, what in ((RANDOM, "random worlds"), (LARGER, LARGER), (GAME, GAME)):
            means: dict[str, list[float]] = defaultdict(list)
            for row in rows:
                if row.world.startswith(world) and row.metric == "return" and row.setting == learner and row.ours:
                    means[row.strategy].append(row.ours.mean)
            order = sorted(means, key=lambda name: -float(np.mean(means[name])))
            if order:
                sentences.append(
                    f"{learner}, mean return in {what}: "
                    + ", ".join(f"{name} {np.mean(means[name]):.2f}" for name in order)
                )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw gaps against cost and by world, and returns in random worlds and Breakout."""
    runs = _runs(results)
    found: dict[str, Any] = {}
    if any(world in WORLDS for _, world, _, _ in runs):
        found["Gap to the best known sets against cost: six worlds"] = cost_figure(runs)
        found["Gap to the best known sets by world, under UDS"] = _worlds_figure(runs)
    for world, title in ((RANDOM, "random worlds"), (GAME, GAME)):
        if any(place.startswith(world) for _, place, _, _ in runs):
            found[f"Return against labels in {title}"] = _curves_figure(runs, world)
    return found


def cost_figure(runs: Runs) -> Any:
    """Return a figure of the normalised gap against cost, one panel per learner."""
    figure = new_figure(10, 4.2)
    for i, learner in enumerate(LEARNERS):
        axes, costs = figure.add_subplot(1, 2, i + 1), mean_costs(runs, learner)
        for strategy, world, values in normalised_gaps(runs, learner):
            if world != SIX:
                continue
            summary, x = summarise(values), costs[strategy]
            bars = [[max(summary.mean - summary.low, 0.0)], [max(summary.high - summary.mean, 0.0)]]
            mine = strategy in SELECTORS
            axes.errorbar(x, summary.mean, bars, fmt="*" if mine else "o", markersize=10 if mine else 4)
            axes.annotate(strategy, (x, summary.mean), fontsize=6, xytext=(4, 2), textcoords="offset points")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("log")
        axes.set(
            xlabel="cost (performances disclosed)",
            ylabel="normalised gap (uniform = 1)",
            title=learner,
            xlim=(-0.3, 50_000),
        )
        axes.grid(alpha=0.3)
    return figure


def _worlds_figure(runs: Runs) -> Any:
    figure = new_figure(10, 4)
    axes = figure.add_subplot()
    gaps = {(s, w): float(v.mean()) for s, w, v in normalised_gaps(runs, "uds")}
    places = [*WORLDS, SIX]
    shown = [name for name in SHOWN if any((name, place) in gaps for place in places)]
    for i, strategy in enumerate(shown):
        at = np.arange(len(places)) + (i - len(shown) / 2) * 0.8 / len(shown)
        axes.bar(at, [gaps.get((strategy, place), np.nan) for place in places], 0.8 / len(shown), label=strategy)
    axes.set_xticks(range(len(places)), places)
    axes.set(ylabel="normalised gap (uniform = 1)")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8, ncols=2)
    return figure


def _curves_figure(runs: Runs, world: str) -> Any:
    figure = new_figure(10, 4)
    for i, learner in enumerate(LEARNERS):
        axes = figure.add_subplot(1, 2, i + 1)
        for strategy in SHOWN:
            curve: dict[str, list[float]] = defaultdict(list)
            for (mine, place, name, labels), metrics in runs.items():
                if mine == learner and name == strategy and place.startswith(world):
                    curve[labels] += metrics["return"]
            if curve:
                style = "-" if strategy in SELECTORS else "--"
                x = [percentage(labels) for labels in curve]
                axes.plot(x, [np.mean(values) for values in curve.values()], style, marker="o", ms=3, label=strategy)
        axes.set(xlabel="percentage of states labelled", ylabel="return", title=learner)
        axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return figure


STUDY = Study(
    NAME,
    __doc__,
    cells,
    run_zero_shot,
    rows,
    SEEDS,
    figures,
    place=33,
    solvers=("exact",),
    findings=findings,
    cells_per_task=1,
)
