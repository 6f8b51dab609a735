"""Counts, winners and the sentences at the top of the report, all derived from the rows of the studies."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from experiments.analysis.row import Row
from experiments.analysis.verdicts import AGREES
from experiments.protocol.budgets import WORLDS

GATED = ("uniform", "visitation", "brute-force", "sequential-greedy")
"""The strategies whose published metrics must agree: their configuration is known."""


class Winner(NamedTuple):
    """The strategy with the highest mean over the budgets of a world."""

    world: str
    strategy: str
    mean: float


def count_verdicts(rows: Iterable[Row], only: Iterable[str] | None = None) -> Counter[str]:
    """Count the outcomes of the rows that were judged, of some strategies or of all."""
    wanted = None if only is None else set(only)
    return Counter(row.judged.outcome for row in rows if row.judged and (wanted is None or row.strategy in wanted))


def counts_by_strategy(rows: Iterable[Row]) -> dict[str, Counter[str]]:
    """Count the outcomes of the rows that were judged, strategy by strategy."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        if row.judged:
            counts.setdefault(row.strategy, Counter())[row.judged.outcome] += 1
    return counts


def winners(rows: Iterable[Row]) -> list[Winner]:
    """Return the best strategy on average over the budgets, world by world; the first of several equally good ones."""
    means: dict[str, dict[str, list[float]]] = {world: {} for world in WORLDS}
    for row in rows:
        if row.world in means and row.ours:
            means[row.world].setdefault(row.strategy, []).append(row.ours.mean)
    found = []
    for world, strategies in means.items():
        averages = {strategy: float(np.mean(values)) for strategy, values in strategies.items()}
        if averages:
            best = max(averages, key=averages.__getitem__)
            found.append(Winner(world, best, averages[best]))
    return found


def winners_sentence(rows: Iterable[Row]) -> str:
    """Return a sentence that names the winner of every world and its mean."""
    named = ", ".join(f"{world} {strategy} ({mean:.2f})" for world, strategy, mean in winners(rows))
    return f"best on average over the budgets: {named}"


def agreement_sentence(rows: Iterable[Row]) -> str:
    """Return a sentence that counts the agreeing published metrics: of gated strategies in tabular worlds, of all."""
    rows = list(rows)
    gated = count_verdicts((row for row in rows if row.world in WORLDS), GATED)
    everything = count_verdicts(rows)
    return (
        f"{gated[AGREES]} of {gated.total()} published metrics of {', '.join(GATED)} agree with ours; of all "
        f"strategies {everything[AGREES]} of {everything.total()}."
    )


def proof_sentence(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a sentence about how many of the best label sets known are proved optimal."""
    proved = sum(entry["certified"] for entry in entries.values())
    return f"Of the best label sets known, {proved} of {len(entries)} are proved optimal by branch and bound."


def verdict_sentence(rows: Iterable[Row]) -> str:
    """Return the counts of a study's verdicts, for example "agrees: 3, differs: 1"."""
    counts = count_verdicts(rows)
    return ", ".join(f"{outcome}: {count}" for outcome, count in counts.items()) or "nothing was published"


def listed_means(means: Mapping[str, float]) -> str:
    """Return means by name, for example "uniform 2.74, guided 3.10"."""
    return ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
