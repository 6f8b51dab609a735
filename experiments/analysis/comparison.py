"""Rows that compare our results in tabular worlds with the published ones: budget sweeps and searches."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.analysis.best_known import best_named, best_return
from experiments.analysis.row import Row
from experiments.analysis.rules import MeanOverSeeds, Rule, SingleRun
from experiments.analysis.statistics import Summary, standard_error, summarise
from experiments.analysis.verdicts import NOT_ENUMERATED, UNEXPLAINED, Verdict, allowed_returns, judge
from experiments.engine.cell import Record, Result
from experiments.protocol.budgets import labels_for
from experiments.protocol.published import PublishedMean, heuristics, initial_samples, searches
from selectenv.typing import FloatArray

DETERMINISTIC = ("brute-force", "sequential-greedy", "swap-search", "exact")
"""Deterministic searches: one seed is enough."""
MEANS_OF_SEARCHES = ("guided",)
"""Strategies in the tables of searches that are not searches: their scores are the means of the table of heuristics."""
SEEDS = 100
"""Number of seeds behind published means over seeds."""
HEURISTIC_REASONS = {
    "guided": "the configuration behind the published guided columns is not known",
    "guided-on-policy": "the configuration behind the published guided columns is not known",
    "visitation-on-policy": "the published occupancy seems to lose the mass of tied actions (occupancy='published')",
}
MORE_LABELS = "the published numbers of this share look like more labels"
SEARCH_REASONS = {
    "guided": "the published guided column uses other budgets in some worlds, and its configuration is not known",
    "brute-force": "the published row repeats sequential-greedy, which is not always optimal",
}
PLATEAU = (
    "greedy meets a plateau where all additions tie; the order of tied states decides if it gets off (ours: first)"
)
NOISY = "the published learner's noise moves the policy in FrozenLake (see solver='sampled')"

BudgetKey = tuple[str, str, str, int]
"""World, variant, strategy, number of labels."""


def published_heuristics(learner: str) -> dict[BudgetKey, PublishedMean]:
    """Return the published table of training-free strategies; the variant is the learner."""
    return {
        (row.world, learner, row.strategy, labels_for(row.world, row.feedback)): row.score
        for row in heuristics(learner)
    }


def published_initial_samples(world: str) -> dict[BudgetKey, PublishedMean]:
    """Return the published table of initial random labels; the variant is "initial" and their share."""
    return {
        (world, f"initial {row.initial_ratio:g}", row.strategy, labels_for(world, row.feedback)): row.score
        for row in initial_samples(world)
    }


def compare_budgets(results: list[Result], published: Mapping[BudgetKey, PublishedMean] | None = None) -> list[Row]:
    """Compare the mean over seeds at each budget with the published one."""
    returns: dict[BudgetKey, list[float]] = defaultdict(list)
    learners: dict[str, str] = {}
    for result in results:
        variant = result.cell.settings["variant"]
        learners[variant] = result.cell.settings.get("problem", {}).get("learner", "uds")
        for record in result.records:
            returns[result.cell.world, variant, result.cell.strategy, record["labels"]].append(record["return"])
    rows = []
    for (world, variant, strategy, labels), values in returns.items():
        summary = summarise(np.array(values), baseline_of(returns.get((world, variant, "uniform", labels)), strategy))
        gap = best_return(world, learners[variant], labels) - summary.mean
        theirs = (published or {}).get((world, variant, strategy, labels))
        if theirs is None:
            rows.append(Row(world, labels, strategy, "return", summary, gap, setting=variant))
            continue
        reason = MORE_LABELS if (world, labels) == ("Tree", 27) else HEURISTIC_REASONS.get(strategy, UNEXPLAINED)
        rule = MeanOverSeeds(summary, SEEDS, allowed_returns(world))
        verdict = judge(rule, theirs, others_of(published or {}, (world, variant, strategy, labels), 2), reason)
        rows.append(Row(world, labels, strategy, "return", summary, gap, *theirs, verdict, setting=variant))
    return rows


def compare_searches(results: list[Result], table: str) -> list[Row]:
    """Compare the scores of one learner on training and test data with a published table of searches."""
    if not results:
        return []
    found: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    learner = results[0].cell.settings["learner"]
    for result in results:
        for record in result.records:
            found[result.cell.world, result.cell.strategy, record["labels"]].append(record)
    known: dict[str, dict[tuple[str, str, int], PublishedMean]] = {"train": {}, "test": {}}
    for row in searches(table):
        key = row.world, row.strategy, labels_for(row.world, row.feedback)
        known["train"][key] = row.train
        if row.test is not None:
            known["test"][key] = row.test
    rows = []
    for (world, strategy, labels), records in found.items():
        for metric, scores in known.items():
            theirs = scores.get((world, strategy, labels))
            others = others_of(scores, (world, strategy, labels), 1)
            rows.append(_search_row(world, strategy, labels, metric, records, theirs, others, learner))
    return rows


def _search_row(
    world: str,
    strategy: str,
    labels: int,
    metric: str,
    records: list[Record],
    theirs: PublishedMean | None,
    others: list[PublishedMean],
    learner: str,
) -> Row:
    """Return the row of a search's training or test score."""
    mean, error = theirs or (None, None)
    runs = [record for record in records if metric in record]
    if not runs:
        missing = Verdict(NOT_ENUMERATED, best_named(world, learner, labels))
        return Row(world, labels, strategy, metric, None, None, mean, error, missing, NOT_ENUMERATED)
    summary = summarise(np.array([np.mean(record[metric]) for record in runs]))
    best = best_return(world, learner, labels)
    verdict = None
    if theirs is not None:
        reason = search_reason(world, strategy, best - float(np.mean([record["train"] for record in runs])))
        verdict = judge(_search_rule(world, strategy, metric, runs, summary), theirs, others, reason)
    gap = best - summary.mean if metric == "train" else None
    return Row(world, labels, strategy, metric, summary, gap, mean, error, verdict)


def _search_rule(world: str, strategy: str, metric: str, runs: list[Record], summary: Summary) -> Rule:
    """Return the rule for a published training or test score: that of a single run, or of a mean over seeds."""
    if strategy in MEANS_OF_SEARCHES:
        return MeanOverSeeds(summary, SEEDS, allowed_returns(world))
    return SingleRun(
        np.array([np.mean(record[metric]) for record in runs]),
        float(np.mean([record["noise"] for record in runs if "noise" in record] or [0.0])),
        float(np.sqrt(np.mean([standard_error(np.atleast_1d(record[metric])) ** 2 for record in runs]))),
        allowed_returns(world),
    )


def search_reason(world: str, strategy: str, gap: float) -> str:
    """Return the known reason why a search's score may differ; the gap is that of our training score to the best."""
    if strategy == "sequential-greedy" and world == "CliffWalk" and gap > 1:
        return PLATEAU
    return SEARCH_REASONS.get(strategy, NOISY if world == "FrozenLake" else UNEXPLAINED)


def others_of(published: Mapping[Any, PublishedMean], key: tuple[Any, ...], place: int) -> list[PublishedMean]:
    """Return the published numbers whose keys differ from ``key`` only in the strategy, which is at ``place``."""
    rest = key[:place], key[place + 1 :]
    return [
        score
        for other, score in published.items()
        if (other[:place], other[place + 1 :]) == rest and other[place] != key[place]
    ]


def baseline_of(uniform: list[Any] | None, strategy: str) -> FloatArray | None:
    """Return the runs of uniform to compare with, None for uniform itself and where there are none."""
    return np.array(uniform) if uniform and strategy != "uniform" else None
