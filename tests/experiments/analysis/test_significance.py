"""The test behind the verdicts, against values worked out by hand or by SciPy's own tests."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments.analysis.significance import LEVEL, StandardError, combined, p_value

EXACT = StandardError(0.0)
ONE = np.array([5.0])


def test_the_level():
    assert LEVEL == 0.05


def test_a_known_error_has_infinitely_many_degrees_of_freedom():
    assert StandardError(0.2).freedom == math.inf


def test_errors_add_up_in_squares():
    assert combined(StandardError(3.0), StandardError(4.0)) == StandardError(5.0)
    assert combined(StandardError(3.0), StandardError(4.0), StandardError(12.0)) == StandardError(13.0)


def test_the_degrees_of_freedom_of_welch_and_satterthwaite():
    error = combined(StandardError(1.0, 9), StandardError(1.0, 9))
    assert (error.size, error.freedom) == (pytest.approx(math.sqrt(2)), pytest.approx(18))
    error = combined(StandardError(3.0, 4), StandardError(4.0))
    assert error.freedom == pytest.approx(25**2 / (81 / 4))
    assert combined(StandardError(3.0, 4), StandardError(0.0, 99)).freedom == pytest.approx(4)


def test_without_errors_there_is_no_error():
    assert combined() == combined(EXACT, StandardError(0.0, 4)) == EXACT


@pytest.mark.parametrize("side", [-1, 1])
def test_a_mean_is_tested_as_by_welch(side):
    first = np.random.default_rng(0).normal(size=12)
    second = np.random.default_rng(1).normal(side * 0.7, 2.0, size=30)
    errors = [StandardError(float(stats.sem(values)), len(values) - 1) for values in (first, second)]
    found = p_value(float(first.mean()), 0.0, np.array([second.mean()]), combined(*errors))
    assert found == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_known_error_gives_the_normal_distribution(side):
    assert p_value(5 + side * 1.96 * 0.2, 0.0, ONE, StandardError(0.2)) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("side", [-1, 1])
def test_rounding_moves_the_number_towards_ours(side):
    assert p_value(5 + side * 1.0, 0.5, ONE, StandardError(0.2)) == pytest.approx(
        p_value(5 + side * 0.5, 0.0, ONE, StandardError(0.2))
    )


@pytest.mark.parametrize("side", [-1, 1])
def test_without_an_error_only_rounding_is_left(side):
    assert p_value(5 + side * 0.0004, 0.0005, ONE, EXACT) == 1.0
    assert p_value(5 + side * 0.0006, 0.0005, ONE, EXACT) == 0.0


def test_a_probability_is_at_most_one():
    assert p_value(5.0, 0.0, ONE, StandardError(1.0)) == 1.0
    assert p_value(5.0, 10.0, ONE, StandardError(1.0)) == 1.0


def test_a_single_run_among_ours():
    runs = np.arange(100.0)
    assert p_value(1.0, 0.1, runs, EXACT) == pytest.approx(0.04)  # twice the share of 0 and 1
    assert p_value(98.0, 0.1, runs, EXACT) == pytest.approx(0.04)
    assert p_value(2.0, 0.1, runs, EXACT) == pytest.approx(0.06)
    assert p_value(97.0, 0.1, runs, EXACT) == pytest.approx(0.06)
    assert p_value(-1.0, 0.1, runs, EXACT) == 0.0


def test_equal_runs_count_on_both_sides():
    runs = np.array([1.0] * 90 + [0.0] * 10)
    assert p_value(1.0, 0.0005, runs, EXACT) == 1.0
    assert p_value(0.0, 0.0005, runs, EXACT) == pytest.approx(0.2)
    assert p_value(0.5, 0.0005, runs, EXACT) == pytest.approx(0.2)


def test_noise_widens_the_distribution_of_runs():
    runs = np.array([0.0, 10.0])
    expected = 2 * (stats.norm.cdf(-1) + stats.norm.cdf(-11)) / 2
    assert p_value(-1.0, 0.0, runs, StandardError(1.0)) == pytest.approx(expected)
    assert p_value(11.0, 0.0, runs, StandardError(1.0)) == pytest.approx(expected)
