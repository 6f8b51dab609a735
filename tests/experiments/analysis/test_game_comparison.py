"""Comparison of games with published figures: the right figure, its share, its control, and what was not run."""

import pytest

from experiments.analysis.game_comparison import (
    compare_game,
    metrics_by_cell,
    number_of_figures,
    published_game,
)
from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE, GameVerdict
from experiments.analysis.verdicts import AGREES, DIFFERS, Control
from experiments.protocol.published import PublishedMean
from tests.experiments.analysis.synthetic_rows import result


def played(strategy, returns, variant="paper", labels="15 %", metric="return"):
    return [
        result([{"labels": labels, metric: value}], "Breakout", strategy, seed, variant=variant)
        for seed, value in enumerate(returns)
    ]


def test_published_games_are_found_by_their_percentage():
    known = published_game("Breakout")
    assert known["reduced-brute-force", ""] == (17.75, None)
    assert known["es-1000", "15 %"] == (17.75, 0.85)
    assert known["guided", "90 %"] == (17.06, 0.37)
    assert len(known) == 13
    assert published_game("Asterix")["guided", "90 %"] == (34.94, 1.01)
    assert number_of_figures() == 4 * 13 + 2 * 5 * 8 + 12 + 5


def test_games_are_set_beside_the_published_figures_of_their_variant():
    results = [
        *played("uniform", [3.0, 5.0]),
        *played("guided", [7.0, 7.2]),
        *played("guided", [1.0, 1.2], variant="fast"),
        *played("es-1000", [1.0]),
    ]
    uniform, guided, fast, search = compare_game(results, {"paper": published_game("Breakout")}, reason="expert")
    assert (uniform.published, uniform.verdict, uniform.setting, uniform.metric) == (None, None, "paper", "return")
    assert (uniform.world, uniform.labels, uniform.gap, uniform.ours.mean) == ("Breakout", "15 %", None, 4.0)
    assert uniform.strategy == "uniform"
    assert uniform.ours.improvement is None
    assert (guided.published, guided.published_error) == (7.13, 0.11)
    assert guided.verdict == GameVerdict(AGREES, control=Control(0, 1))
    assert (guided.ours.mean, guided.ours.improvement, guided.gap) == (7.1, 1.0, None)
    assert (guided.world, guided.labels, guided.strategy, guided.setting) == ("Breakout", "15 %", "guided", "paper")
    assert (fast.setting, fast.published, fast.verdict) == ("fast", None, None)
    assert fast.ours.improvement is None
    assert (search.published, search.published_error) == (17.75, 0.85)
    assert search.verdict == GameVerdict(DIFFERS, "expert", Control(0, 1))
    (row,) = compare_game(played("es-1000", [1.0]), {"paper": published_game("Breakout")})
    assert row.verdict.reason == "unexplained"


def test_shares_are_those_of_the_full_labels_of_the_same_variant_and_metric():
    results = [
        *played("guided", [3.9, 4.1]),
        *played("guided", [50.0], metric="last weights"),
        *played("full labels", [9.5, 10.5], labels=""),
        *played("full labels", [4.0], variant="fast", labels=""),
        *played("full labels", [99.0], labels="", metric="last weights"),
    ]
    guided, *_ = compare_game(results, {"paper": published_game("Breakout")})
    assert guided.verdict.outcome == SAME_SHARE  # 0.40 of 10, published 7.13 of 17.75
    assert str(guided.verdict) == "same share: 0.40 of the return with full labels, published 0.40"
    last, *_ = compare_game(results, {"paper": published_game("Breakout")}, metric="last weights")
    assert str(last.verdict).endswith("(0.51 of the return with full labels, published 0.40)")


def test_the_share_of_full_labels_themselves_is_not_judged():
    results = [*played("reduced-brute-force", [9.5, 10.5], labels=""), *played("full labels", [9.5, 10.5], labels="")]
    reduced, _ = compare_game(results, {"paper": published_game("Breakout")}, reason="why")
    assert (reduced.verdict.outcome, reduced.verdict.reason) == (DIFFERS, "why")
    printed = {"paper": {("guided", "100 %"): PublishedMean(17.75, 0.22), ("guided", "0 %"): PublishedMean(9.0, 0.1)}}
    results = played("guided", [9.5, 10.5], labels="100 %") + played("guided", [5.0, 5.1], labels="0 %")
    complete = ("guided", "100 %")
    full, none = compare_game(results, printed, full=(complete, complete))
    assert (full.verdict.outcome, none.verdict.outcome) == (DIFFERS, SAME_SHARE)


def test_figures_that_were_not_run_have_rows_where_they_are_counted():
    counted = {"paper": ("guided", "es-1000")}
    results = [*played("guided", [7.0, 7.2]), *played("guided", [7.0, 7.2], variant="fast")]
    rows = compare_game(
        results,
        {variant: published_game("Breakout") for variant in ("fast", "paper")},
        counted=counted,
        missing={"es-1000": "too long"},
    )
    assert [row.verdict.counted for row in rows[:2]] == [True, False]
    rest = rows[2:]
    assert [(row.strategy, row.labels) for row in rest if row.strategy == "guided"] == [
        ("guided", f"{percent} %") for percent in (30, 45, 60, 75, 90)
    ]
    assert len(rest) == 5 + 6
    assert {(row.ours, row.setting, row.note, row.verdict.outcome) for row in rest} == {
        (None, "paper", NOT_RUN, NOT_RUN)
    }
    assert {str(row.verdict) for row in rest} == {"not run", "not run: too long"}
    assert all(row.verdict.counted and row.published is not None and row.judged is None for row in rest)


def test_another_metric_of_a_game():
    results = played("guided", [7.0], metric="fresh") + played("guided", [1.0])
    (row,) = compare_game(results, {}, metric="fresh")
    assert (row.metric, row.ours.mean) == ("fresh", 7.0)
    (row,) = compare_game(results, {"paper": published_game("Breakout")}, metric="fresh")
    assert (row.metric, row.published) == ("fresh", 7.13)
    assert metrics_by_cell(results, "fresh") == {("paper", "guided", "15 %"): [7.0]}
    assert metrics_by_cell(results, "return") == {("paper", "guided", "15 %"): [1.0]}


def test_no_results_of_a_game():
    assert compare_game([], {"paper": published_game("Breakout")}, counted={"paper": ("guided",)}) == []


def test_the_control_of_a_game_may_be_chosen():
    printed = {"paper": {("guided", "15 %"): PublishedMean(7.0, 0.1)}}
    asked = []

    def others(*key):
        asked.append(key)
        return [PublishedMean(7.1, 0.1), PublishedMean(9.0, 0.1), PublishedMean(-9.0, 0.1)]

    (row,) = compare_game(played("guided", [7.0, 7.1]), printed, others=others)
    assert asked == [("paper", "guided", "15 %")]
    assert row.verdict == GameVerdict(AGREES, control=Control(1, 3))


@pytest.mark.parametrize("side", [-1, 1])
def test_only_the_other_strategies_of_the_same_variant_and_budget_are_controls(side):
    near = PublishedMean(3.0, 0.1)
    games = {
        ("guided", "15 %"): near,
        ("a", "15 %"): near,
        ("b", "15 %"): PublishedMean(3.0 + side * 2, 0.1),
        ("c", "30 %"): near,
    }
    (row,) = compare_game(played("guided", [2.9, 3.1]), {"paper": games, "fast": {("d", "15 %"): near}})
    assert row.verdict == GameVerdict(AGREES, control=Control(1, 2))
