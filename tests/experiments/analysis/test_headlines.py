"""Counts, winners and sentences say what the rows say."""

from collections import Counter

import pytest

from experiments.analysis.headlines import (
    Winner,
    agreement_sentence,
    count_verdicts,
    counts_by_strategy,
    listed_means,
    proof_sentence,
    verdict_sentence,
    winners,
    winners_sentence,
)
from experiments.analysis.verdicts import AGREES, DIFFERS, IMPOSSIBLE, NOT_ENUMERATED, Verdict
from tests.experiments.analysis.synthetic_rows import row


def judged(outcome, strategy="uniform", world="Graph", mean=1.0):
    return row(world, strategy=strategy, mean=mean, verdict=Verdict(outcome), published=1.0)


ROWS = [
    judged(AGREES),
    judged(AGREES, "guided"),
    judged(DIFFERS, "guided"),
    judged(IMPOSSIBLE, "brute-force"),
    judged(NOT_ENUMERATED, "brute-force", mean=None),
    judged(AGREES, "brute-force", mean=None),
    judged(AGREES, "uniform", "Breakout"),
    row(mean=1.0),
]


def test_only_what_was_judged_is_counted():
    assert count_verdicts(ROWS) == Counter({AGREES: 3, DIFFERS: 1, IMPOSSIBLE: 1})
    assert count_verdicts(iter(ROWS), ["guided", "brute-force"]) == Counter({AGREES: 1, DIFFERS: 1, IMPOSSIBLE: 1})
    assert count_verdicts(ROWS, []) == Counter()


def test_counts_by_strategy():
    assert counts_by_strategy(ROWS) == {
        "uniform": Counter({AGREES: 2}),
        "guided": Counter({AGREES: 1, DIFFERS: 1}),
        "brute-force": Counter({IMPOSSIBLE: 1}),
    }


def test_the_sentence_of_agreement_counts_gated_strategies_in_tabular_worlds_only():
    assert agreement_sentence(iter(ROWS)) == (
        "1 of 2 published metrics of uniform, visitation, brute-force, sequential-greedy agree with ours; of all "
        "strategies 3 of 5."
    )


MEANS = [
    row("Graph", 3, "uniform", mean=2.0),
    row("Graph", 6, "uniform", mean=5.0),
    row("Graph", 3, "guided", mean=4.0),
    row("Graph", 6, "guided", mean=3.0001),
    row("CliffWalk", 3, "guided", mean=-90.0),
    row("CliffWalk", 3, "uniform", mean=-80.5),
    row("CliffWalk", 12, "terminal"),
    row("Breakout", "15 %", "guided", mean=99.0),
]


def test_the_winner_has_the_highest_mean_over_the_budgets():
    assert winners(MEANS) == [
        Winner("Graph", "guided", pytest.approx(3.50005)),
        Winner("CliffWalk", "uniform", -80.5),
    ]


def test_a_winner_changes_with_its_rows():
    changed = [*MEANS, row("Graph", 9, "uniform", mean=8.0), row("Graph", 9, "guided", mean=7.0)]
    assert winners(changed)[0] == Winner("Graph", "uniform", 5.0)


def test_of_equally_good_strategies_the_first_wins():
    assert winners([row(strategy="b", mean=1.0), row(strategy="a", mean=1.0)]) == [Winner("Graph", "b", 1.0)]


def test_winners_stand_in_the_order_of_the_worlds():
    assert winners(MEANS[::-1])[0].world == "Graph"


def test_the_sentence_of_winners_says_what_the_rows_say():
    assert winners_sentence(MEANS) == (
        "best on average over the budgets: Graph guided (3.50), CliffWalk uniform (-80.50)"
    )


def test_the_sentence_of_proofs():
    entries = {"a": {"certified": True}, "b": {"certified": False}, "c": {"certified": True}}
    assert proof_sentence(entries) == ("Of the best label sets known, 2 of 3 are proved optimal by branch and bound.")


def test_the_sentence_of_a_study():
    assert verdict_sentence(ROWS) == "agrees: 3, differs: 1, impossible: 1"
    assert verdict_sentence([row(mean=1.0)]) == "nothing was published"


def test_means_are_listed_with_two_decimals():
    assert listed_means({"uniform": 2.744, "guided": -3.0}) == "uniform 2.74, guided -3.00"
