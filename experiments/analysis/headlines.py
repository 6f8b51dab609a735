"""Counts, winners and the sentences at the top of the report, all derived from the rows of the studies."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from experiments.analysis.game_comparison import LAST_WEIGHTS, number_of_figures
from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE, GameVerdict
from experiments.analysis.row import Row
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, DIFFERS
from experiments.protocol.budgets import WORLDS

GATED = ("uniform", "visitation", "brute-force", "sequential-greedy")
"""The strategies whose published numbers must agree: their configuration is known."""


class Winner(NamedTuple):
    """The strategy with the highest mean over the budgets of a world."""

    world: str
    strategy: str
    mean: float


class Agreement(NamedTuple):
    """How many published numbers agree with ours by the rule alone, and how many of them do with strategies swapped."""

    agree: int
    cells: int
    swapped_agree: int
    swapped_cells: int

    def __str__(self) -> str:
        control = f"(swapped: {self.swapped_agree:,} of {self.swapped_cells:,})"
        return f"{self.agree:,} of {self.cells:,} agree {control}"


def agreement(rows: Iterable[Row]) -> Agreement:
    """Count the agreement of the rows that were judged, and their control."""
    verdicts = [row.judged for row in rows if row.judged]
    return Agreement(
        sum(verdict.by_rule == AGREES for verdict in verdicts),
        len(verdicts),
        sum(verdict.control.agreeing for verdict in verdicts),
        sum(verdict.control.others for verdict in verdicts),
    )


def discriminating(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that were judged and whose control rejects at least half of the wrong strategies."""
    return [row for row in rows if row.judged and row.judged.control.discriminates]


def with_verdict(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that were judged, and those of published figures of games that were not run.

    The second reading of a network, that of its last weights, is left out: every figure is judged once.
    """
    return [row for row in rows if row.metric != LAST_WEIGHTS and (row.judged or isinstance(row.verdict, GameVerdict))]


def of_games(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with verdicts on published figures of games."""
    return [row for row in rows if isinstance(row.verdict, GameVerdict)]


def count_verdicts(rows: Iterable[Row]) -> Counter[str]:
    """Count the outcomes of the rows with a verdict."""
    return Counter(row.verdict.outcome for row in with_verdict(rows) if row.verdict)


def by_strategy(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows with a verdict, strategy by strategy."""
    found: dict[str, list[Row]] = {}
    for row in with_verdict(rows):
        found.setdefault(row.strategy, []).append(row)
    return found


def winners(rows: Iterable[Row]) -> list[Winner]:
    """Return the best strategy on average over the budgets, world by world; the first of several equally good ones.

    Worlds with results of a single strategy are left out.
    """
    means: dict[str, dict[str, list[float]]] = {world: {} for world in WORLDS}
    for row in rows:
        if row.world in means and row.ours:
            means[row.world].setdefault(row.strategy, []).append(row.ours.mean)
    found = []
    for world, strategies in means.items():
        averages = {strategy: float(np.mean(values)) for strategy, values in strategies.items()}
        if len(averages) > 1:
            best = max(averages, key=averages.__getitem__)
            found.append(Winner(world, best, averages[best]))
    return found


def winners_sentence(rows: Iterable[Row]) -> str:
    """Return a sentence that names the winner of every world with several strategies and its mean; "" without any."""
    named = ", ".join(f"{world} {strategy} ({mean:.2f})" for world, strategy, mean in winners(rows))
    return f"best on average over the budgets: {named}" if named else ""


def agreement_sentence(rows: Iterable[Row]) -> str:
    """Return two sentences that count agreement in tabular worlds: of gated strategies, and of all.

    A sentence without a published number to compare with is left out.
    """
    rows = [row for row in rows if row.world in WORLDS]
    gated = by_strategy(row for row in rows if row.strategy in GATED)
    names = ", ".join(sorted(gated, key=GATED.index))
    parts = {names: [row for some in gated.values() for row in some], "all strategies": rows}
    return " ".join(f"Published numbers of {of}: {_told(some)}." for of, some in parts.items() if agreement(some).cells)


def _told(rows: list[Row]) -> str:
    """Return in how many cells the rule discriminates, and the agreement in these and in all cells."""
    told = discriminating(rows)
    everything = agreement(rows)
    return (
        f"{len(told):,} of {everything.cells:,} can be told from other strategies, and of these {agreement(told)}; "
        f"with those that cannot be told {everything}"
    )


def games_sentence(rows: Iterable[Row]) -> str:
    """Return how many published figures of games agree in level or in share; "" if none was run."""
    rows = of_games(rows)
    counted = [row for row in rows if isinstance(row.verdict, GameVerdict) and row.verdict.counted]
    found = count_verdicts(counted)
    run = found.total() - found[NOT_RUN]
    if not run:
        return ""
    told, figures = agreement(counted), {_figure(row) for row in counted}
    last = [row.verdict for row in rows if row.metric == LAST_WEIGHTS and row.verdict and _figure(row) in figures]
    agreeing = sum(verdict.outcome in (AGREES, SAME_SHARE) for verdict in last)
    return (
        f"Of the {number_of_figures()} published figures of MinAtar, {run} were run, and of these {found[AGREES]} "
        f"agree in level, {found[SAME_SHARE]} more in their share of the return with full labels (together "
        f"{found[AGREES] + found[SAME_SHARE]} of {run}); differ: {found[DIFFERS]}, cannot be told: "
        f"{found[CANNOT_BE_TOLD]}. Figures of other strategies or data agree in level in {told.swapped_agree:,} of "
        f"{told.swapped_cells:,} cases."
        + f" With the last weights of each run, as published, {agreeing} of {len(last)} agree."
        * bool(last)
    )


def _figure(row: Row) -> tuple[object, ...]:
    """Return what tells the published figure of a row from others."""
    return row.world, row.setting, row.strategy, row.labels


def proof_sentence(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a sentence about how many of the best label sets known are proved optimal."""
    proved = sum(entry["certified"] for entry in entries.values())
    how = "by branch and bound or enumeration"
    return f"Of the best label sets known, {proved} of {len(entries)} are proved optimal, {how}."


def verdict_sentence(rows: Iterable[Row]) -> str:
    """Return the counts of a study's verdicts, and the agreement by the rule alone with its control."""
    rows = with_verdict(rows)
    counts = count_verdicts(rows)
    if not counts:
        return "No published numbers to compare with"
    listed = ", ".join(f"{outcome}: {count}" for outcome, count in counts.items())
    return f"{listed}; {'in level' if of_games(rows) else 'by the rule alone'} {agreement(rows)}"


def listed_means(means: Mapping[str, float]) -> str:
    """Return means by name, for example "uniform 2.74, guided 3.10"; strategies that were not run are left out."""
    return ", ".join(f"{name} {mean:.2f}" for name, mean in means.items() if not np.isnan(mean))
