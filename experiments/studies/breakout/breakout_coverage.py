"""How many states of Breakout do data of different expert shares cover, and what can be learned from all of it?"""

from typing import Any

import numpy as np

from experiments.analysis.figures import new_figure
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import AGREES, DIFFERS, Verdict
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Row, Study
from experiments.protocol.published import published
from experiments.studies.breakout.behaviour_mixtures import EXPERT_SHARES, SWAPPED, variant
from experiments.studies.game_episodes import SCALES, expert_mark, game_problem, mean_of

NAME, WORLD = "breakout-coverage", "Breakout"
NEAR = 0.25
"""Counts of states within this share of each other agree: they hang on the expert."""


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return a cell a scale, mixture and seed."""
    mark = expert_mark(WORLD)
    return [
        Cell(NAME, WORLD, variant(p), seed, {"variant": scale, "expert": mark, "problem": {**data, "expert_share": p}})
        for scale, data in ((scale, options["problem"]) for scale, options in SCALES.items())
        for p in EXPERT_SHARES
        for seed in range(seeds)
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Count the states, and score full labels and the data's own action frequencies."""
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
    """Return the figures; published are the states at the paper's scale."""
    printed = {
        variant(float(row["expert_ratio"])): float(row["unique_states"]) for row in published("breakout_unique_states")
    }
    found = []
    for scale in SCALES:
        for p in EXPERT_SHARES:
            mine = [r for r in results if _of(r, scale, p)]
            for figure in mine[0].records[0] if mine else ():
                ours = np.array([float(r.records[0][figure]) for r in mine])
                theirs, verdict = None, None
                if figure == "unique states" and scale == "paper":
                    theirs, other = printed[variant(p)], printed[variant(round(1 - p, 1))]
                    near = [abs(np.log(ours.mean() / count)) <= np.log(1 + NEAR) for count in (theirs, other)]
                    reason = SWAPPED.format(round(1 - p, 1)) if near[1] else "another expert"
                    verdict = Verdict(AGREES) if near[0] else Verdict(DIFFERS, reason)
                found.append(
                    Row(WORLD, "", variant(p), figure, summarise(ours), None, theirs, None, verdict, setting=scale)
                )
    return found


def _of(result: Result, scale: str, share: float) -> bool:
    return result.cell.settings["variant"] == scale and result.cell.strategy == variant(share)


def findings(rows: list[Row]) -> list[str]:
    """Say what the data decide."""
    said = []
    for scale in dict.fromkeys(row.setting for row in rows):
        parts = [
            f"{variant(p)}: {mean_of(rows, setting=scale, strategy=variant(p), figure='unique states'):,.0f} states, "
            f"return {mean_of(rows, setting=scale, strategy=variant(p), figure='return of full labels'):.1f}"
            for p in EXPERT_SHARES
        ]
        said.append(f"{scale}, all states labelled: " + "; ".join(parts))
    return said


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw states and returns against the expert share."""
    picture = new_figure(9, 3.6)
    for i, figure in enumerate(("unique states", "return of full labels")):
        axes = picture.add_subplot(1, 2, i + 1)
        for scale in SCALES:
            known = []
            for p in EXPERT_SHARES:
                values = [r.records[0][figure] for r in results if _of(r, scale, p)]
                known += [(p, np.mean(values))] if values else []
            if known:
                axes.plot(*zip(*known, strict=True), marker="o", label=scale)
        axes.set(xlabel="expert share of the data", ylabel=figure)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return {"Coverage of Breakout's data": picture}


STUDY = Study(NAME, __doc__, cells, run_cell, rows, 3, figures, place=25, solvers=("exact",), findings=findings)
