"""Claims of the paper hold, do not hold, or cannot be told: differences, their errors, and both limits."""

import math

import pytest

from experiments.analysis.claims import (
    DOES_NOT_HOLD,
    HOLDS,
    Difference,
    by_budget,
    difference,
    is_better,
    is_not_better,
)
from experiments.analysis.verdicts import CANNOT_BE_TOLD
from tests.experiments.analysis.synthetic_rows import row, summary


def budget(labels, strategy, mean, error=0.1, **more):
    return row("Breakout", labels, strategy, ours=summary(mean, error, runs=3), **more)


ROWS = [
    budget("15 %", "visitation", 5.0, 0.3),
    budget("15 %", "uniform", 4.0, 0.4),
    budget("30 %", "visitation", 8.0, 0.0),
    budget("30 %", "uniform", 9.0, 1.2),
    budget("90 %", "uniform", 99.0),
    budget("15 %", "visitation", 77.0, setting="paper"),
    row("Breakout", "30 %", "guided"),
]


def test_differences_are_means_over_shared_budgets():
    found = by_budget(ROWS, "visitation", "uniform", setting="")
    assert found == Difference(6.5, 6.5, pytest.approx(math.sqrt(0.3**2 + 0.4**2 + 1.2**2) / 2), 2)
    assert found.mean == 0.0
    assert by_budget(ROWS, "uniform", "visitation", setting="").first == 6.5
    assert by_budget(ROWS, "visitation", "guided") is None
    assert difference([]) is None


def test_single_runs_have_no_error():
    found = difference([(summary(5.0, 0.0, runs=1), summary(4.0, 0.5))])
    assert found == Difference(5.0, 4.0, None, 1)
    assert is_better(found, 10.0) == is_not_better(found, 10.0) == CANNOT_BE_TOLD
    assert str(found) == "+1.00"


@pytest.mark.parametrize(
    ("mean", "error", "better", "not_better"),
    [
        (1.0, 0.49, HOLDS, DOES_NOT_HOLD),
        (1.0, 0.51, CANNOT_BE_TOLD, CANNOT_BE_TOLD),  # 0 and an advantage of 0.5 are both possible
        (0.0, 0.24, DOES_NOT_HOLD, HOLDS),  # an advantage of 5 % of 10 can be ruled out
        (0.0, 0.26, CANNOT_BE_TOLD, CANNOT_BE_TOLD),
        (-3.0, 1.7, DOES_NOT_HOLD, HOLDS),
        (-3.0, 1.8, CANNOT_BE_TOLD, CANNOT_BE_TOLD),
        (0.1, 0.01, HOLDS, DOES_NOT_HOLD),  # small, but certain
    ],
)
def test_two_errors_and_a_margin(mean, error, better, not_better):
    found = Difference(4.0 + mean, 4.0, error, 6)
    assert (is_better(found, 10.0), is_not_better(found, 10.0)) == (better, not_better)
    assert str(found) == f"{mean:+.2f} +- {error:.2f}"
