"""Verdicts: the rule for the right strategy, and the control for the wrong ones."""

import numpy as np
import pytest

from experiments.analysis.rules import MeanOverSeeds, SingleRun
from experiments.analysis.verdicts import (
    AGREES,
    CANNOT_BE_TOLD,
    DIFFERS,
    IMPOSSIBLE,
    NOT_ENUMERATED,
    Control,
    Verdict,
    allowed_returns,
    judge,
    outcome,
)
from experiments.protocol.published import PublishedMean
from tests.experiments.analysis.synthetic_rows import summary

ALLOWED = (0.0, 8.0)
FIVE = SingleRun(np.array([5.0]), 0.0, 0.0, ALLOWED)


def printed(*numbers):
    return [PublishedMean(number, None) for number in numbers]


@pytest.mark.parametrize(
    ("agreeing", "others", "discriminates"),
    [
        (0, 0, False),  # nothing to swap with
        (0, 1, True),
        (1, 1, False),
        (1, 2, True),  # half of the wrong strategies are rejected
        (2, 2, False),
        (1, 3, True),
        (2, 3, False),
        (2, 4, True),
        (3, 4, False),
    ],
)
def test_a_cell_discriminates_if_at_least_half_of_the_wrong_strategies_are_rejected(agreeing, others, discriminates):
    control = Control(agreeing, others)
    assert control.discriminates is discriminates
    assert str(control) == f"{agreeing} of {others}"
    for by_rule in (AGREES, DIFFERS):
        assert Verdict(by_rule, control=control).outcome == (by_rule if discriminates else CANNOT_BE_TOLD)


def test_only_agreement_and_difference_need_a_control():
    assert Verdict(IMPOSSIBLE).outcome == IMPOSSIBLE
    assert Verdict(NOT_ENUMERATED).outcome == NOT_ENUMERATED
    assert Verdict(AGREES).outcome == Verdict(DIFFERS).outcome == CANNOT_BE_TOLD


def test_the_control_counts_the_other_strategies_that_agree():
    verdict = judge(FIVE, PublishedMean(5.0, None), printed(5.0, 4.0, 5.0004, 6.0))
    assert verdict == Verdict(AGREES, "", Control(2, 4))
    verdict = judge(FIVE, PublishedMean(4.0, None), printed(5.0, 3.0, 99.0), "known")
    assert verdict == Verdict(DIFFERS, "known", Control(1, 3))
    assert judge(FIVE, PublishedMean(5.0, None), []) == Verdict(AGREES, "", Control(0, 0))


def test_an_impossible_number_of_another_strategy_is_rejected():
    wide = MeanOverSeeds(summary(7.9, 1.0, runs=100), 100, ALLOWED)
    assert wide.agrees(PublishedMean(8.4, 0.1))
    assert judge(wide, PublishedMean(7.9, 0.1), [PublishedMean(8.4, 0.1)]).control == Control(0, 1)


def test_what_the_world_does_not_allow():
    def found(mean, rule):
        return outcome(rule, PublishedMean(mean, 0.1))

    wide = SingleRun(np.arange(-100.0, 100.0), 0.01, 0.0, ALLOWED)
    assert found(8.0404, wide) == found(-0.0404, wide) == AGREES
    assert found(8.0406, wide) == found(-0.0406, wide) == IMPOSSIBLE
    mean = MeanOverSeeds(summary(4.0, 9.0, runs=100), 100, ALLOWED)
    assert found(8.3019, mean) == found(-0.3019, mean) == AGREES
    assert found(8.3021, mean) == found(-0.3021, mean) == IMPOSSIBLE


def test_the_bounds_of_the_range_are_part_of_it():
    assert outcome(SingleRun(np.array([0.25]), 0.0, 0.0, (0.0, 0.25)), PublishedMean(0.25 + 0.0005, None)) == AGREES
    assert outcome(SingleRun(np.array([0.25]), 0.0, 0.0, (0.25, 1.0)), PublishedMean(0.25 - 0.0005, None)) == AGREES


def test_reasons():
    assert judge(FIVE, PublishedMean(1.0, None), printed(2.0)).reason == "unexplained"
    assert judge(FIVE, PublishedMean(1.0, None), printed(2.0), "known").reason == "known"
    assert judge(FIVE, PublishedMean(5.0, None), printed(2.0), "known").reason == ""
    over = judge(FIVE, PublishedMean(9.0, None), printed(2.0), "known")
    assert over == Verdict(IMPOSSIBLE, "the world allows 0.000 to 8.000", Control(0, 1))


def test_verdicts_in_words():
    told, untold = Control(1, 4), Control(3, 4)
    assert str(Verdict(AGREES, control=told)) == "agrees"
    assert str(Verdict(DIFFERS, "why", told)) == "differs: why"
    assert str(Verdict(AGREES, control=untold)) == "cannot be told: agrees, but so do 3 of the 4 others"
    assert str(Verdict(DIFFERS, "why", untold)) == "cannot be told: differs (why), but 3 of the 4 others agree"
    assert str(Verdict(AGREES)) == "cannot be told: agrees, but nothing else was published to swap it with"
    assert str(Verdict(DIFFERS, "why")) == (
        "cannot be told: differs (why), but nothing else was published to swap it with"
    )
    assert str(Verdict(NOT_ENUMERATED, "best known 7")) == "not enumerated: best known 7"


def test_what_the_worlds_allow():
    assert allowed_returns("Graph") == pytest.approx((-8.0, 8.0))
    assert allowed_returns("Tree")[1] == pytest.approx(17.685535)
    assert allowed_returns("TwoRoomsTrap") == pytest.approx((-100.0, 1.0))
    assert allowed_returns("CliffWalk")[1] == pytest.approx(-13.0)
