"""How well can states be labelled without any evaluator call, in worlds that nobody has seen?

Strategies that ask no evaluator are compared with evolution strategies, and all of them with the best return that any
strategy of the study reached with the same data, rule and budget. The "normalised gap" is the gap to that return,
summed over the budgets of a dataset and divided by that of uniform (the mean of 200 random sets); the "gap per budget"
divides first and averages over budgets. Budgets at which uniform's gap is below 1 % of the way from no labels to all
labels are left out of the latter. Tree, FrozenLake, CliffWalk, larger worlds and the development worlds were used to
develop `imagine`; Graph, TwoRooms, TwoRoomsTrap and the 100 test worlds were not.
"""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import WORLDS
from experiments.studies.selectors.zero_call_cells import (
    ABLATIONS,
    DEVELOPED_ON,
    FREE,
    LARGER,
    LEARNERS,
    RANDOM_WORLDS,
    SEARCHES,
    TEST,
    USUAL,
    run_zero_call,
    task_of,
    zero_call_cells,
)
from selectenv.typing import FloatArray

NAME, SEEDS = "zero-call", 20
GAP, PER_BUDGET, ALL = "normalised gap", "gap per budget", "all"
SIX, SEEN, UNSEEN = "six worlds", "three development worlds", "three test worlds"
GROUPS = {
    SIX: WORLDS,
    SEEN: DEVELOPED_ON,
    UNSEEN: tuple(world for world in WORLDS if world not in DEVELOPED_ON),
}
NEGLIGIBLE = 0.01
"""Share of the way from no labels to all labels below which uniform's gap is left out of "gap per budget"."""
WORSE = 0.05
"""A strategy is below uniform if it leaves more than this much more than uniform's gap."""
STRATEGIES = (*FREE, *SEARCHES, *ABLATIONS)
Place = tuple[str, str, str]
"""Learner, variant and world."""


class Gaps(NamedTuple):
    """What a strategy leaves of uniform's gap on each dataset [datasets]."""

    summed: FloatArray
    per_budget: FloatArray


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of all strategies."""
    return zero_call_cells(NAME, seeds)


def gaps_of(results: list[Result]) -> tuple[dict[Place, dict[str, Gaps]], list[str]]:
    """Return the gaps of every strategy at every place, and the budgets that are left out."""
    earned: dict[Place, dict[int, dict[int, dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(dict))
    )
    span: dict[tuple[Place, int, int], float] = {}
    for result in results:
        settings = result.cell.settings
        place = settings["learner"], settings["variant"], result.cell.world
        for record in result.records:
            earned[place][result.cell.seed][record["labels"]][result.cell.strategy] = record["return"]
            span[place, result.cell.seed, record["labels"]] = abs(record["all"] - record["none"])
    found: dict[Place, dict[str, Gaps]] = {}
    left_out = []
    for place, by_seed in earned.items():
        summed, per_budget = defaultdict(list), defaultdict(list)
        for seed, by_budget in sorted(by_seed.items()):
            gap = {b: {s: max(v.values()) - r for s, r in v.items()} for b, v in by_budget.items() if "uniform" in v}
            total = sum(v["uniform"] for v in gap.values())
            kept = [b for b, v in gap.items() if v["uniform"] > NEGLIGIBLE * span[place, seed, b]]
            left_out += [f"{' '.join(place)}, dataset {seed}, {b} labels" for b in sorted(gap) if b not in kept]
            if not kept:
                continue
            for strategy in STRATEGIES:
                if all(strategy in v for v in gap.values()):
                    summed[strategy].append(sum(v[strategy] for v in gap.values()) / total)
                    shares = [gap[b][strategy] / gap[b]["uniform"] for b in kept]
                    per_budget[strategy].append(float(np.mean(shares)))
        found[place] = {s: Gaps(np.array(summed[s]), np.array(per_budget[s])) for s in STRATEGIES if summed[s]}
    return found, left_out


def _groups(gaps: dict[Place, dict[str, Gaps]]) -> dict[Place, dict[str, Gaps]]:
    """Return the means [datasets] over the worlds of each group, for strategies that were run in all of them."""
    found: dict[Place, dict[str, Gaps]] = {}
    for learner, variant in dict.fromkeys(place[:2] for place in gaps):
        for group, worlds in GROUPS.items():
            parts = [gaps.get((learner, variant, world), {}) for world in worlds]
            for strategy in STRATEGIES:
                if all(strategy in part for part in parts):
                    runs = min(len(part[strategy].summed) for part in parts)
                    means = (np.mean([part[strategy][i][:runs] for part in parts], axis=0) for i in range(2))
                    found.setdefault((learner, variant, group), {})[strategy] = Gaps(*means)
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return the gaps of groups of worlds, then those of all worlds."""
    gaps, _ = gaps_of(results)
    found = []
    for (learner, variant, world), by_strategy in {**_groups(gaps), **gaps}.items():
        setting = learner if variant == USUAL else f"{learner}, {variant}"
        for strategy, values in by_strategy.items():
            for metric, numbers in ((GAP, values.summed), (PER_BUDGET, values.per_budget)):
                found.append(Row(world, ALL, strategy, metric, summarise(numbers), None, setting=setting))
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise the gaps of all strategies in the six worlds, in the test worlds alone and in random worlds."""
    sentences = []
    for learner in LEARNERS:
        for world in (SIX, UNSEEN, *RANDOM_WORLDS):
            for metric in (GAP, PER_BUDGET):
                left = {
                    r.strategy: r.ours
                    for r in rows
                    if r.ours and (r.world, r.metric, r.setting) == (world, metric, learner)
                }
                if left:
                    order = sorted(left, key=lambda name: left[name].mean)
                    parts = [f"{s} {left[s].mean:.3f} ({left[s].low:.3f} to {left[s].high:.3f})" for s in order]
                    sentences.append(f"{learner}, {world}, {metric}, uniform = 1: {', '.join(parts)}")
    return sentences


def compared(results: list[Result], strategy: str, rival: str) -> dict[str, tuple[float, float, float, int, int]]:
    """Compare two strategies in the test random worlds.

    Returns:
        Learner -> mean difference of the gaps (negative if ``strategy`` is better), its 95 % interval, the number of
        worlds in which ``strategy`` is below uniform, and the number of worlds.
    """
    gaps, _ = gaps_of(results)
    found = {}
    for learner in LEARNERS:
        here = gaps.get((learner, USUAL, TEST), {})
        if strategy in here and rival in here:
            mine, other = here[strategy].summed, here[rival].summed
            difference = summarise(mine - other)
            below = int((mine > 1 + WORSE).sum())
            found[learner] = difference.mean, difference.low, difference.high, below, len(mine)
    return found


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw what strategies leave of uniform's gap in each group of worlds."""
    gaps, _ = gaps_of(results)
    every = {**_groups(gaps), **gaps}
    places = [SIX, UNSEEN, *RANDOM_WORLDS, *LARGER]
    figure = new_figure(10, 7)
    for i, learner in enumerate(LEARNERS):
        axes = figure.add_subplot(2, 1, i + 1)
        names = [s for s in (*FREE, *SEARCHES) if any(s in every.get((learner, USUAL, place), {}) for place in places)]
        for j, strategy in enumerate(names):
            at = np.arange(len(places)) + (j - len(names) / 2) * 0.8 / max(len(names), 1)
            here = [every.get((learner, USUAL, place), {}).get(strategy) for place in places]
            heights = [np.nan if one is None else float(one.summed.mean()) for one in here]
            axes.bar(at, heights, 0.8 / max(len(names), 1), label=strategy)
        axes.set_xticks(range(len(places)), places, fontsize=7)
        axes.set(ylabel="normalised gap (uniform = 1)", title=learner)
        axes.grid(alpha=0.3, axis="y")
        if names:
            axes.legend(fontsize=6, ncols=3)
    return {"Gap left without evaluator calls": figure}


STUDY = Study(
    NAME,
    __doc__,
    cells,
    run_zero_call,
    rows,
    SEEDS,
    figures,
    place=34,
    solvers=("exact",),
    findings=findings,
    problem_of=lambda cell: task_of(cell)[0],
    cells_per_task=1,
)
