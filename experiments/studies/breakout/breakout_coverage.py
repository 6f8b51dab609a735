"""How many states of Breakout do data with different shares of random actions cover, and what do full labels earn?"""

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.analysis.figures import new_figure
from experiments.analysis.game_verdicts import judge_count
from experiments.analysis.row import Row, mean_of
from experiments.analysis.rules import Count
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.published import behaviour, unique_states
from experiments.studies.breakout.behaviour_mixtures import RANDOM_SHARES, expert_share, variant
from experiments.studies.game_episodes import TABLE, expert_mark, game_problem, game_study

NAME, WORLD = "breakout-coverage", "Breakout"
STATES, RETURN = "unique states", "return of full labels"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per mixture and seed."""
    settings = {"variant": "paper", "expert": expert_mark(WORLD)}
    return [
        Cell(NAME, WORLD, variant(p), seed, {**settings, "problem": {**TABLE, "expert_share": expert_share(p)}})
        for p in RANDOM_SHARES
        for seed in range(seeds)
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Count the states, and evaluate full labels and behaviour cloning with a table."""
    task, cloned = game_problem(cell), game_problem(cell, learner="adapted")
    data = task.dataset
    assert data.hidden_reward is not None
    return [
        {
            STATES: data.n_states,
            "reward in the data": float(data.hidden_reward.sum()),
            RETURN: task.score(data.labelable),
            "return of behaviour cloning": cloned.score(~data.labelable),
        }
    ]


def rows(results: list[Result]) -> list[Row]:
    """Return our metrics; the counts of states have published numbers."""
    printed = {variant(share): float(states) for share, states in unique_states().items()}
    found = []
    for name in map(variant, RANDOM_SHARES):
        mine = [r for r in results if r.cell.strategy == name]
        for metric in mine[0].records[0] if mine else ():
            ours = np.array([float(r.records[0][metric]) for r in mine])
            theirs, verdict = None, None
            if metric == STATES:
                theirs = printed[name]
                others = [count for other, count in printed.items() if other != name]
                verdict = judge_count(Count(float(ours.mean())), theirs, others, "another expert", counted=True)
            found.append(Row(WORLD, "", name, metric, summarise(ours), None, theirs, None, verdict, setting="paper"))
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise states and returns by the share of random actions, and say whether returns rise with the states."""
    parts = [
        f"{variant(p)}: {mean_of(rows, strategy=variant(p), metric=STATES):,.0f} states, "
        f"return {mean_of(rows, strategy=variant(p), metric=RETURN):.1f}"
        for p in RANDOM_SHARES
    ]
    means = [[mean_of(rows, strategy=variant(p), metric=metric) for p in RANDOM_SHARES] for metric in (STATES, RETURN)]
    theirs = [row.score.mean for row in behaviour("uds") if row.feedback == 1.0]
    published = float(spearmanr(list(unique_states().values()), theirs).statistic)
    return [
        "all states labelled, table: " + "; ".join(parts),
        f"rank correlation of unique states and the return with full labels over the five mixtures: "
        f"{float(spearmanr(*means).statistic):.2f} (published {published:.2f})",
    ]


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the number of states and the return against the share of random actions."""
    figure = new_figure(9, 3.6)
    for i, metric in enumerate((STATES, RETURN)):
        axes = figure.add_subplot(1, 2, i + 1)
        known = []
        for p in RANDOM_SHARES:
            values = [r.records[0][metric] for r in results if r.cell.strategy == variant(p)]
            known += [(p, np.mean(values))] if values else []
        axes.plot(*zip(*known, strict=True), marker="o", label="ours")
        if metric == STATES:
            axes.plot(*zip(*unique_states().items(), strict=True), "k--", marker="s", label="published")
        axes.set(xlabel="share of random actions in the data", ylabel=metric)
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
