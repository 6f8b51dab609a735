"""How many states of Breakout do data with different expert shares cover, and what return do full labels reach?"""

from typing import Any

import numpy as np

from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row, mean_of
from experiments.analysis.rules import Count
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import AGREES, judge, outcome
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.published import PublishedMean, unique_states
from experiments.studies.breakout.behaviour_mixtures import EXPERT_SHARES, SWAPPED, variant
from experiments.studies.game_episodes import SCALES, expert_mark, game_problem, game_study

NAME, WORLD = "breakout-coverage", "Breakout"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per scale, mixture and seed."""
    mark = expert_mark(WORLD)
    return [
        Cell(NAME, WORLD, variant(p), seed, {"variant": scale, "expert": mark, "problem": {**data, "expert_share": p}})
        for scale, data in ((scale, options["problem"]) for scale, options in SCALES.items())
        for p in EXPERT_SHARES
        for seed in range(seeds)
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Count the states, and evaluate full labels and behaviour cloning."""
    task, cloned = game_problem(cell), game_problem(cell, learner="adapted")
    data = task.dataset
    assert data.hidden_reward is not None
    return [
        {
            "unique states": data.n_states,
            "reward in the data": float(data.hidden_reward.sum()),
            "return of full labels": task.score(data.labelable),
            "return of behaviour cloning": cloned.score(~data.labelable),
        }
    ]


def rows(results: list[Result]) -> list[Row]:
    """Return our metrics; the counts of states at the paper's scale have published numbers."""
    printed = {variant(ratio): PublishedMean(float(states), None) for ratio, states in unique_states().items()}
    found = []
    for scale in SCALES:
        for p in EXPERT_SHARES:
            mine = [r for r in results if _of(r, scale, p)]
            for metric in mine[0].records[0] if mine else ():
                ours = np.array([float(r.records[0][metric]) for r in mine])
                theirs, verdict = None, None
                if metric == "unique states" and scale == "paper":
                    rule, opposite = Count(float(ours.mean())), round(1 - p, 1)
                    swapped = outcome(rule, printed[variant(opposite)]) == AGREES
                    reason = SWAPPED.format(opposite) if swapped else "another expert"
                    others = [count for name, count in printed.items() if name != variant(p)]
                    theirs = printed[variant(p)].mean
                    verdict = judge(rule, printed[variant(p)], others, reason)
                found.append(
                    Row(WORLD, "", variant(p), metric, summarise(ours), None, theirs, None, verdict, setting=scale)
                )
    return found


def _of(result: Result, scale: str, share: float) -> bool:
    return result.cell.settings["variant"] == scale and result.cell.strategy == variant(share)


def findings(rows: list[Row]) -> list[str]:
    """Summarise states and returns by expert share."""
    sentences = []
    for scale in dict.fromkeys(row.setting for row in rows):
        parts = [
            f"{variant(p)}: {mean_of(rows, setting=scale, strategy=variant(p), metric='unique states'):,.0f} states, "
            f"return {mean_of(rows, setting=scale, strategy=variant(p), metric='return of full labels'):.1f}"
            for p in EXPERT_SHARES
        ]
        sentences.append(f"{scale}, all states labelled: " + "; ".join(parts))
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the number of states and the return against the expert share."""
    figure = new_figure(9, 3.6)
    for i, metric in enumerate(("unique states", "return of full labels")):
        axes = figure.add_subplot(1, 2, i + 1)
        for scale in SCALES:
            known = []
            for p in EXPERT_SHARES:
                values = [r.records[0][metric] for r in results if _of(r, scale, p)]
                known += [(p, np.mean(values))] if values else []
            if known:
                axes.plot(*zip(*known, strict=True), marker="o", label=scale)
        axes.set(xlabel="expert share of the data", ylabel=metric)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return {"Coverage of Breakout's data": figure}


STUDY = game_study(
    NAME,
    __doc__,
    cells,
    run_cell,
    rows,
    3,
    figures=figures,
    place=25,
    findings=findings,
)
