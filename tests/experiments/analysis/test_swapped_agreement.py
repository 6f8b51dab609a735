"""The control is computed right: with the former rule it gives the counts that were found independently of this code.

The former rule accepted published numbers within three combined standard errors of our mean and, where no error was
published, numbers in the central 99 % of our runs; it agreed with most numbers of the wrong strategy.
"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments.analysis.comparison import compare_searches
from experiments.analysis.headlines import Agreement, agreement, discriminating
from experiments.analysis.row import Row
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, allowed_returns, judge
from experiments.protocol.budgets import labels_for
from experiments.protocol.published import PublishedMean, heuristics, searches
from tests.experiments.analysis.synthetic_rows import result, summary

SPREAD = Path(__file__).with_name("es_iterations_spread.csv")
"""The distribution of our runs in es-iterations: mean, error, central 99 %, and the noise of 10,000 episodes."""

HUNDRED_SEEDS = Path(__file__).with_name("heuristics_100_seeds.csv")
"""Means and errors of the heuristics over 100 seeds."""


@dataclass(frozen=True)
class Former:
    """The former rule."""

    mean: float
    stderr: float
    low: float
    high: float
    noise: float
    allowed: tuple[float, float]
    single_runs: bool = False

    def slack(self, published):
        return 4 * self.noise + 0.0005 + (0.0 if self.single_runs else 3 * (published.stderr or 0.0))

    def agrees(self, published):
        if self.single_runs and not published.stderr:
            slack = 4 * self.noise + 0.0005
            return self.low - slack <= published.mean <= self.high + slack
        return abs(published.mean - self.mean) <= 3 * math.hypot(published.stderr, self.stderr) + 0.0005


def swapped(rules, published):
    """Judge every rule by world, labels, metric and strategy, with the other strategies as the control."""
    rows = []
    for (*cell, strategy), rule in rules.items():
        known = {key[-1]: score for key, score in published.items() if key[:-1] == tuple(cell)}
        right = known.pop(strategy, None)
        if right is not None:
            verdict = judge(rule, right, list(known.values()))
            rows.append(Row(cell[0], cell[1], strategy, "", summary(0.0), None, verdict=verdict))
    return agreement(rows)


@pytest.mark.parametrize(
    ("learner", "expected"),
    [("uds", Agreement(132, 150, 307, 600)), ("adapted", Agreement(80, 90, 76, 180))],
)
def test_heuristics(learner, expected):
    published = {
        (row.world, str(labels_for(row.world, row.feedback)), row.strategy): row.score for row in heuristics(learner)
    }
    with HUNDRED_SEEDS.open(newline="") as file:
        rules = {
            (line["world"], line["labels"], line["strategy"]): Former(
                float(line["mean"]), float(line["stderr"]), 0.0, 0.0, 0.0, allowed_returns(line["world"])
            )
            for line in csv.DictReader(file)
            if line["learner"] == learner
        }
    assert swapped(rules, published) == expected


def test_iterations_of_evolution_strategies():
    published = {
        (row.world, str(labels_for(row.world, row.feedback)), metric, row.strategy): score
        for row in searches("es_iterations_ablation")
        for metric, score in (("train", row.train), ("test", row.test))
    }
    with SPREAD.open(newline="") as file:
        rules = {
            tuple(line[key] for key in ("world", "labels", "metric", "strategy")): Former(
                *(float(line[key]) for key in ("mean", "stderr", "low", "high", "noise")),
                allowed_returns(line["world"]),
                single_runs=True,
            )
            for line in csv.DictReader(file)
        }
    assert swapped(rules, published) == Agreement(231, 240, 689, 720)


def test_two_strategies_with_the_same_runs_cannot_be_told():
    """Where all strategies find equally good sets, agreement with the right one means nothing."""
    records = [{"labels": 15, "train": 8.0, "test": [8.0] * 5, "noise": 0.0}]
    results = [result(records, "Graph", strategy, 0, learner="uds") for strategy in ("es-10x20", "es-8x20")]
    rows = compare_searches(results, "es_iterations_ablation")
    assert {row.verdict.by_rule for row in rows} == {AGREES}
    assert {row.verdict.outcome for row in rows} == {CANNOT_BE_TOLD}
    assert agreement(rows) == Agreement(4, 4, 12, 12)
    assert discriminating(rows) == []


def test_the_former_rule_is_not_the_present_one():
    rule = Former(5.0, 0.1, 5.0, 5.0, 0.0, (0.0, 8.0))
    assert rule.agrees(PublishedMean(5.42, 0.1))
    assert not rule.agrees(PublishedMean(5.43, 0.1))
