"""Verdicts of games: level, share and neither, on both sides of every limit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.analysis.game_comparison import game_rule
from experiments.analysis.game_verdicts import (
    NOT_RUN,
    SAME_SHARE,
    FullLabels,
    GameVerdict,
    combined_error,
    judge_count,
    judge_game,
    level,
)
from experiments.analysis.rules import Count
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, DIFFERS, Control
from experiments.protocol.published import PublishedMean
from tests.experiments.analysis.synthetic_rows import summary

FULL = FullLabels(20.0, 35.0)


def ours(mean, stderr=0.3, runs=3):
    return game_rule(summary(mean, stderr, runs=runs))


def test_three_combined_errors():
    error = math.hypot(0.3, 0.405)  # a printed error stands for the largest that is printed like this
    limit = 3 * error + 0.005
    for side in (-1, 1):
        assert level(ours(10.0), PublishedMean(10.0 + side * (limit - 1e-6), 0.4)) == AGREES
        assert level(ours(10.0), PublishedMean(10.0 + side * (limit + 1e-6), 0.4)) == DIFFERS
    assert combined_error(ours(10.0), PublishedMean(0.0, 0.4)) == pytest.approx(error)


def test_a_combined_error_above_15_percent_of_the_figure_says_nothing():
    figure = math.hypot(0.3, 0.405) / 0.15
    assert level(ours(figure), PublishedMean(figure * 1.0001, 0.4)) == AGREES
    assert level(ours(figure), PublishedMean(figure * 0.9999, 0.4)) == CANNOT_BE_TOLD
    assert level(ours(10.0, 2.0), PublishedMean(10.0, 0.4)) == CANNOT_BE_TOLD
    assert level(ours(30.0, 2.0), PublishedMean(10.0, 0.4)) == DIFFERS  # too far even for this error


def test_a_side_without_an_error_has_the_spread_of_the_other():
    assert combined_error(ours(5.0, 0.3, runs=3), PublishedMean(5.0, None)) == pytest.approx(
        math.hypot(0.3, 0.3 * math.sqrt(3 / 10))
    )
    single = ours(5.0, 0.0, runs=1)
    assert combined_error(single, PublishedMean(5.0, 0.1)) == pytest.approx(0.105 * math.sqrt(1 + 10))
    assert judge_game(single, PublishedMean(5.0, None)).reason == "neither side has an error"
    assert judge_game(single, PublishedMean(50.0, None)).outcome == CANNOT_BE_TOLD


def test_the_same_share_of_the_full_return_though_not_the_same_level():
    published = PublishedMean(17.5, 0.1)  # 0.5 of 35
    for mean, outcome in ((8.0001, SAME_SHARE), (11.9999, SAME_SHARE), (7.999, DIFFERS), (12.001, DIFFERS)):
        assert judge_game(ours(mean), published, full=FULL).outcome == outcome
    found = judge_game(ours(9.0), published, (), "another expert", FULL, counted=True)
    assert str(found) == "same share: 0.45 of the return with full labels, published 0.50"
    assert found.counted
    found = judge_game(ours(18.0), PublishedMean(7.0, 0.1), (), "another expert", FULL)
    assert str(found) == "differs: another expert (0.90 of the return with full labels, published 0.20)"
    assert not found.counted


def test_shares_do_not_replace_levels():
    assert judge_game(ours(17.5), PublishedMean(17.5, 0.1), full=FullLabels(20.0, 35.0)).outcome == AGREES
    wide = judge_game(ours(17.5, 4.0), PublishedMean(17.5, 0.1), full=FullLabels(35.0, 35.0))
    assert str(wide) == "cannot be told: within three errors, but the error is 23 % of the figure"
    assert judge_game(ours(9.0), PublishedMean(35.0, 0.1)).outcome == DIFFERS  # a return with full labels has no share
    assert judge_game(ours(0.0), PublishedMean(35.0, 0.1), full=FullLabels(0.0, 35.0)).outcome == DIFFERS


def test_other_strategies_are_counted_but_do_not_decide():
    others = [PublishedMean(10.1, 0.4), PublishedMean(9.9, 0.4), PublishedMean(99.0, 0.4)]
    assert judge_game(ours(10.0), PublishedMean(10.0, 0.4), others) == GameVerdict(AGREES, "", Control(2, 3))
    assert judge_game(ours(10.0), PublishedMean(10.0, 0.4), others).outcome == AGREES
    assert judge_game(ours(10.0), PublishedMean(50.0, 0.4), others, "why").outcome == DIFFERS
    assert str(GameVerdict(AGREES)) == "agrees"
    assert str(GameVerdict(NOT_RUN, "1,000 training runs")) == "not run: 1,000 training runs"


def test_counts_agree_within_a_quarter():
    found = judge_count(Count(1200.0), 1000.0, [1100.0, 5000.0], "another expert", counted=True)
    assert found == GameVerdict(AGREES, "", Control(1, 2), counted=True)
    assert judge_count(Count(1300.0), 1000.0, [], "another expert") == GameVerdict(DIFFERS, "another expert")


positive = st.floats(0.5, 100)


@given(positive, st.floats(0, 5), positive, st.floats(0, 5), positive, positive, st.floats(0.1, 10))
def test_the_outcome_does_not_depend_on_the_unit(mean, error, published, their_error, full, their_full, unit):
    """Shares and relative errors are dimensionless; only the rounding of printed numbers has a unit."""

    def outcome(scale):
        rule = ours(mean * scale, error * scale)
        rule = type(rule)(rule.ours, rule.published_seeds, rule.allowed, 0.0)
        share = FullLabels(full * scale, their_full * scale)
        return judge_game(rule, PublishedMean(published * scale, their_error * scale), full=share).outcome

    distance = abs(mean - published) - 3 * math.hypot(error, their_error)
    relative = math.hypot(error, their_error) / published - 0.15
    shares = abs(mean / full - published / their_full) - 0.1
    if min(abs(distance), abs(relative), abs(shares)) > 1e-6:
        assert outcome(unit) == outcome(1.0)
