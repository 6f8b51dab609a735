"""Counts, winners and sentences say what the rows say."""

from collections import Counter
from dataclasses import replace

import pytest

from experiments.analysis.game_comparison import number_of_figures
from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE, GameVerdict
from experiments.analysis.headlines import (
    Agreement,
    Winner,
    agreement,
    agreement_sentence,
    by_strategy,
    count_verdicts,
    discriminating,
    games_sentence,
    listed_means,
    proof_sentence,
    verdict_sentence,
    winners,
    winners_sentence,
)
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, DIFFERS, IMPOSSIBLE, NOT_ENUMERATED, Control, Verdict
from tests.experiments.analysis.synthetic_rows import TOLD, UNTOLD, row


def judged(by_rule, strategy="uniform", world="Graph", mean=1.0, control=TOLD):
    return row(world, strategy=strategy, mean=mean, verdict=Verdict(by_rule, control=control), published=1.0)


ROWS = [
    judged(AGREES),
    judged(AGREES, "guided"),
    judged(DIFFERS, "guided"),
    judged(AGREES, "guided", control=UNTOLD),
    judged(DIFFERS, "guided", control=UNTOLD),
    judged(AGREES, "visitation", control=Control(0, 0)),
    judged(IMPOSSIBLE, "brute-force"),
    judged(NOT_ENUMERATED, "brute-force", mean=None),
    judged(AGREES, "brute-force", mean=None),
    judged(AGREES, "uniform", "Tree"),
    row(mean=1.0),
]


def of_game(outcome, strategy="guided", control=TOLD, mean=1.0, counted=True):
    verdict = GameVerdict(outcome, control=control, counted=counted)
    return row("Breakout", "15 %", strategy, mean=None if outcome == NOT_RUN else mean, verdict=verdict, published=1.0)


GAME_ROWS = [
    of_game(AGREES),
    of_game(AGREES, control=UNTOLD),
    of_game(SAME_SHARE),
    of_game(DIFFERS, "es-1000"),
    of_game(CANNOT_BE_TOLD),
    of_game(NOT_RUN, "es-1000"),
    of_game(AGREES, counted=False),
    row("Breakout", "15 %", "uniform", mean=1.0),
]


def test_only_what_was_judged_is_counted():
    assert count_verdicts(iter(ROWS)) == Counter({AGREES: 3, DIFFERS: 1, IMPOSSIBLE: 1, CANNOT_BE_TOLD: 3})
    assert count_verdicts([]) == Counter()


def test_agreement_stands_beside_its_control():
    assert agreement(iter(ROWS)) == Agreement(5, 8, 5 * 1 + 2 * 3, 7 * 4)
    assert str(agreement(ROWS)) == "5 of 8 agree (swapped: 11 of 28)"
    assert str(Agreement(1234, 2345, 3456, 4567)) == "1,234 of 2,345 agree (swapped: 3,456 of 4,567)"
    assert agreement([]) == Agreement(0, 0, 0, 0)


def test_what_cannot_be_told_is_not_agreement():
    told = discriminating(iter(ROWS))
    assert told == [ROWS[0], ROWS[1], ROWS[2], ROWS[6], ROWS[9]]
    assert agreement(told) == Agreement(3, 5, 5, 20)
    assert agreement(told).agree == count_verdicts(ROWS)[AGREES]


def test_rows_by_strategy():
    assert by_strategy(iter(ROWS)) == {
        "uniform": [ROWS[0], ROWS[9]],
        "guided": ROWS[1:5],
        "visitation": [ROWS[5]],
        "brute-force": [ROWS[6]],
    }


def test_the_sentence_of_agreement_counts_gated_strategies_and_all_of_tabular_worlds():
    assert agreement_sentence(iter([*ROWS, *GAME_ROWS])) == (
        "Published numbers of uniform, visitation, brute-force: 3 of 4 can be told from other "
        "strategies, and of these 2 of 3 agree (swapped: 3 of 12); with those that cannot be told 3 of 4 agree "
        "(swapped: 3 of 12). Published numbers of all strategies: 5 of 8 can be told from other strategies, and of "
        "these 3 of 5 agree (swapped: 5 of 20); with those that cannot be told 5 of 8 agree (swapped: 11 of 28)."
    )


def test_outcomes_of_games_are_counted_with_those_that_were_not_run():
    found = count_verdicts(iter(GAME_ROWS))
    assert found == Counter({AGREES: 3, SAME_SHARE: 1, DIFFERS: 1, CANNOT_BE_TOLD: 1, NOT_RUN: 1})
    assert [len(rows) for rows in by_strategy(GAME_ROWS).values()] == [5, 2]
    assert agreement(GAME_ROWS) == Agreement(3, 6, 5 * 1 + 3, 6 * 4)
    assert verdict_sentence(iter(GAME_ROWS)) == (
        "agrees: 3, same share: 1, differs: 1, cannot be told: 1, not run: 1; in level 3 of 6 agree (swapped: 8 of 24)"
    )


def test_the_sentence_of_games_counts_every_published_figure_once():
    assert games_sentence(iter([*ROWS, *GAME_ROWS])) == (
        f"Of the {number_of_figures()} published figures of MinAtar, 5 were run, and of these 2 agree in level, 1 more "
        "in their share of the return with full labels (together 3 of 5); differ: 1, cannot be told: 1. Figures of "
        "other strategies or data agree in level in 7 of 20 cases."
    )
    last = [replace(one, metric="last weights", verdict=replace(one.verdict, counted=False)) for one in GAME_ROWS[:4]]
    others = [replace(last[0], labels="30 %"), replace(last[0], strategy="uniform")]
    again = games_sentence([*GAME_ROWS, *last, *others])
    assert again.endswith("20 cases. With the last weights of each run, as published, 3 of 4 agree.")
    assert again.startswith(games_sentence(GAME_ROWS))
    assert verdict_sentence([*GAME_ROWS, *last]) == verdict_sentence(GAME_ROWS)
    assert games_sentence(ROWS) == games_sentence([of_game(NOT_RUN)]) == games_sentence([GAME_ROWS[6]]) == ""


def test_sentences_name_only_what_was_run():
    assert agreement_sentence([row(mean=1.0), row(strategy="guided", mean=2.0)]) == ""
    assert agreement_sentence([judged(AGREES, "guided")]).startswith("Published numbers of all strategies: 1 of 1 can")
    alone = agreement_sentence([judged(AGREES, "visitation"), judged(NOT_ENUMERATED, "brute-force", mean=None)])
    assert alone.startswith("Published numbers of visitation: 1 of 1 can be told")
    assert winners_sentence([row(strategy="uniform", mean=1.0), row("Tree", strategy="guided", mean=1.0)]) == ""


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
    assert proof_sentence(entries) == (
        "Of the best label sets known, 2 of 3 are proved optimal, by branch and bound or enumeration."
    )


def test_the_sentence_of_a_study():
    assert verdict_sentence(iter(ROWS)) == (
        "agrees: 3, differs: 1, cannot be told: 3, impossible: 1; by the rule alone 5 of 8 agree (swapped: 11 of 28)"
    )
    assert verdict_sentence([row(mean=1.0)]) == "No published numbers to compare with"


def test_means_are_listed_with_two_decimals():
    assert listed_means({"uniform": 2.744, "guided": -3.0}) == "uniform 2.74, guided -3.00"
    assert listed_means({"uniform": float("nan"), "guided": -3.0}) == "guided -3.00"
