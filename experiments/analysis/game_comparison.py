"""Rows that compare our results in MinAtar games with the published figures, those that were not run included."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import numpy as np

from experiments.analysis.comparison import baseline_of, others_of
from experiments.analysis.game_verdicts import NOT_RUN, FullLabels, GameVerdict, judge_game
from experiments.analysis.row import Row
from experiments.analysis.rules import HUNDREDTHS, MeanOverSeeds
from experiments.analysis.statistics import Summary, summarise
from experiments.analysis.verdicts import UNEXPLAINED
from experiments.engine.cell import Result
from experiments.protocol.budgets import percent
from experiments.protocol.published import PublishedMean, behaviour, games, reward_sums, unique_states

GAME_RETURNS = (0.0, np.inf)
"""Returns in the MinAtar games are never negative; the largest possible return is not known."""
GAME_SEEDS = 10
"""Number of seeds behind published means over seeds."""
LAST_WEIGHTS = "last weights"
"""Metric of the published protocol: one evaluation at the end of training instead of the mean of several."""
FULL = ("full labels", "")
"""Strategy and percentage of our results with full labels."""
PUBLISHED_FULL = ("reduced-brute-force", "")
"""The same of the published figures."""

GameTable = dict[tuple[str, str], PublishedMean]
"""Strategy and percentage of labels -> published mean; the percentage is "" where the table prints no share."""
Others = Callable[[str, str, str], list[PublishedMean]]
"""Variant, strategy and percentage of labels -> the published figures for the control."""


def published_game(world: str) -> GameTable:
    """Return the published figures of a game."""
    return {
        (row.strategy, "" if row.feedback is None else percent(row.feedback)): row.score
        for row in games()
        if row.world == world
    }


def number_of_figures() -> int:
    """Return the number of published figures of MinAtar games."""
    return (
        len(games())
        + sum(len(behaviour(rule)) for rule in ("uds", "adapted"))
        + len([*reward_sums(), *unique_states()])
    )


def metrics_by_cell(results: list[Result], metric: str) -> dict[tuple[str, str, str], list[float]]:
    """Return the metric of all seeds by variant, strategy and percentage of labels."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for result in results:
        for record in result.records:
            if metric in record:
                found[result.cell.settings["variant"], result.cell.strategy, record["labels"]].append(record[metric])
    return found


def compare_game(
    results: list[Result],
    published: Mapping[str, GameTable],
    *,
    metric: str = "return",
    reason: str = UNEXPLAINED,
    full: tuple[tuple[str, str], tuple[str, str]] = (FULL, PUBLISHED_FULL),
    counted: Mapping[str, Collection[str]] | None = None,
    missing: Mapping[str, str] | None = None,
    others: Others | None = None,
) -> list[Row]:
    """Compare the mean over seeds in one game with the published figures.

    Args:
        results: of one game.
        published: variant -> the published figures of it.
        metric: what to compare.
        reason: why published figures may differ.
        full: strategy and percentage with full labels, ours and published.
        counted: variant -> strategies whose published figures headlines count here; those without results get a row.
        missing: strategy -> why it was not run.
        others: the figures for the control; by default those of the other strategies of the variant.
    """
    if not results:
        return []
    world = results[0].cell.world
    found = metrics_by_cell(results, metric)
    counted = counted or {}
    rows = []
    for (variant, strategy, labels), values in found.items():
        summary = summarise(np.array(values), baseline_of(found.get((variant, "uniform", labels)), strategy))
        table = published.get(variant, {})
        theirs = table.get((strategy, labels))
        if theirs is None:
            rows.append(Row(world, labels, strategy, metric, summary, None, setting=variant))
            continue
        wrong = others(variant, strategy, labels) if others else others_of(table, (strategy, labels), 0)
        complete = found.get((variant, *full[0]))
        verdict = judge_game(
            game_rule(summary),
            theirs,
            wrong,
            reason,
            FullLabels(float(np.mean(complete)), table[full[1]].mean)
            if complete and (strategy, labels) != full[1]
            else None,
            counted=strategy in counted.get(variant, ()),
        )
        rows.append(Row(world, labels, strategy, metric, summary, None, *theirs, verdict, setting=variant))
    for variant, strategies in counted.items():
        for (strategy, labels), theirs in published[variant].items():
            if strategy in strategies and (variant, strategy, labels) not in found:
                verdict = GameVerdict(NOT_RUN, (missing or {}).get(strategy, ""), counted=True)
                rows.append(Row(world, labels, strategy, metric, None, None, *theirs, verdict, NOT_RUN, variant))
    return rows


def game_rule(ours: Summary) -> MeanOverSeeds:
    """Return our side of the comparison with a published return, which is a mean over seeds with two decimals."""
    return MeanOverSeeds(ours, GAME_SEEDS, GAME_RETURNS, HUNDREDTHS)
