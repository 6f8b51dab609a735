"""Rules on both sides of every limit."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments.analysis.rules import HUNDREDTHS, THOUSANDTHS, Count, MeanOverSeeds, SingleRun
from experiments.analysis.statistics import summarise
from experiments.protocol.published import PublishedMean
from tests.experiments.analysis.synthetic_rows import summary

ALLOWED = (0.0, 8.0)
RUNS = np.array([4.0, 6.0] * 50)  # mean 5
ERROR = float(RUNS.std(ddof=1) / 10)


def limit(first, first_freedom, second, second_freedom):
    """The largest difference of two means that is not significant, by Welch."""
    variance = first**2 + second**2
    freedom = variance**2 / (first**4 / first_freedom + second**4 / second_freedom)
    return float(stats.t.ppf(0.975, freedom)) * math.sqrt(variance)


def just(rule, centre, distance, stderr):
    """Whether the rule accepts just inside the distance and rejects just outside, on both sides."""
    inside = [rule.agrees(PublishedMean(centre + side * (distance - 1e-6), stderr)) for side in (-1, 1)]
    outside = [rule.agrees(PublishedMean(centre + side * (distance + 1e-6), stderr)) for side in (-1, 1)]
    return inside == [True, True] and outside == [False, False]


def test_half_a_unit_of_the_last_digit():
    assert (THOUSANDTHS, HUNDREDTHS) == (0.0005, 0.005)


def test_two_means_over_seeds():
    rule = MeanOverSeeds(summarise(RUNS), 100, ALLOWED)
    assert just(rule, 5.0, limit(0.2005, 99, ERROR, 99) + 0.0005, 0.2)
    assert just(MeanOverSeeds(summarise(RUNS), 10, ALLOWED), 5.0, limit(0.2005, 9, ERROR, 99) + 0.0005, 0.2)
    coarse = MeanOverSeeds(summarise(RUNS), 100, ALLOWED, HUNDREDTHS)
    assert just(coarse, 5.0, limit(0.205, 99, ERROR, 99) + 0.005, 0.2)


def test_a_few_runs_of_ours_have_few_degrees_of_freedom():
    rule = MeanOverSeeds(summary(5.0, 0.3, runs=3), 10, ALLOWED)
    assert just(rule, 5.0, limit(0.1005, 9, 0.3, 2) + 0.0005, 0.1)


def test_an_error_printed_as_zero_is_the_largest_that_is_printed_so():
    rule = MeanOverSeeds(summarise(RUNS), 100, ALLOWED)
    assert just(rule, 5.0, limit(0.0005, 99, ERROR, 99) + 0.0005, 0.0)
    same = MeanOverSeeds(summary(5.0, 0.0, runs=100), 100, ALLOWED)
    assert just(same, 5.0, float(stats.t.ppf(0.975, 99)) * 0.0005 + 0.0005, 0.0)


def test_a_mean_without_an_error_has_the_spread_of_our_runs():
    rule = MeanOverSeeds(summary(5.0, 0.3, runs=4), 100, ALLOWED)
    assert just(rule, 5.0, limit(0.3 * math.sqrt(4 / 100), 3, 0.3, 3) + 0.0005, None)


def test_a_single_run_of_ours_has_the_spread_of_the_published_runs():
    rule = MeanOverSeeds(summary(5.0, 0.0, runs=1), 10, ALLOWED)
    assert just(rule, 5.0, limit(0.1005, 9, 0.1005 * math.sqrt(10), 9) + 0.0005, 0.1)


def test_two_runs_of_ours_have_an_error_of_their_own():
    rule = MeanOverSeeds(summary(5.0, 0.3, runs=2), 10, ALLOWED)
    assert just(rule, 5.0, limit(0.1005, 9, 0.3, 1) + 0.0005, 0.1)


def test_two_numbers_without_an_error():
    assert just(MeanOverSeeds(summary(5.0, 0.0, runs=1), 10, ALLOWED), 5.0, 0.0005, None)


def test_an_exact_value_and_the_noise_of_an_evaluation():
    rule = SingleRun(np.array([5.0]), 0.02, 0.7, ALLOWED)
    assert just(rule, 5.0, float(stats.norm.ppf(0.975)) * 0.02 + 0.0005, None)
    assert just(SingleRun(np.array([5.0]), 0.0, 0.7, ALLOWED), 5.0, 0.0005, None)


def test_errors_over_test_datasets_have_four_degrees_of_freedom():
    rule = SingleRun(np.array([5.0]), 0.0, 0.3, ALLOWED)
    assert just(rule, 5.0, limit(0.1005, 4, 0.3, 4) + 0.0005, 0.1)
    rule = SingleRun(np.array([5.0]), 0.2, 0.0, ALLOWED)
    size = math.hypot(0.1005, 0.2)
    freedom = size**4 / (0.1005**4 / 4)
    assert just(rule, 5.0, float(stats.t.ppf(0.975, freedom)) * size + 0.0005, 0.1)
    coarse = SingleRun(np.array([5.0]), 0.0, 0.0, ALLOWED, HUNDREDTHS)
    assert just(coarse, 5.0, float(stats.t.ppf(0.975, 4)) * 0.005 + 0.005, 0.0)


def test_a_single_run_is_judged_by_all_our_runs_and_not_by_their_mean():
    rule = SingleRun(np.arange(1000) / 1000 + 4.0, 0.0, 0.0, ALLOWED)
    assert rule.agrees(PublishedMean(4.0245, None))  # 25 of 1,000 runs are not larger
    assert not rule.agrees(PublishedMean(4.0225, None))
    assert rule.agrees(PublishedMean(4.9745, None))
    assert not rule.agrees(PublishedMean(4.9765, None))


def test_exactly_the_level_agrees():
    rule = SingleRun(np.arange(40.0), 0.0, 0.0, (-100.0, 100.0))
    assert rule.agrees(PublishedMean(0.0, None))  # one run of 40 on one side: twice 2.5 %
    assert not rule.agrees(PublishedMean(-0.1, None))


def test_what_the_error_of_a_number_excuses():
    mean = MeanOverSeeds(summarise(RUNS), 100, ALLOWED)
    assert mean.slack(PublishedMean(9.0, 0.1)) == pytest.approx(3 * 0.1005 + 0.0005)
    assert mean.slack(PublishedMean(9.0, None)) == pytest.approx(3 * ERROR + 0.0005)
    one = MeanOverSeeds(summary(5.0, 0.0, runs=1), 100, ALLOWED)
    assert one.slack(PublishedMean(9.0, None)) == 0.0005
    coarse = MeanOverSeeds(summarise(RUNS), 100, ALLOWED, 0.005)
    assert coarse.slack(PublishedMean(9.0, 0.1)) == pytest.approx(3 * 0.105 + 0.005)
    run = SingleRun(RUNS, 0.01, 0.2, ALLOWED)
    assert run.slack(PublishedMean(9.0, 0.1)) == pytest.approx(0.0405)
    assert SingleRun(RUNS, 0.01, 0.2, ALLOWED, 0.005).slack(PublishedMean(9.0, 0.1)) == pytest.approx(0.045)
    assert Count(5.0).slack(PublishedMean(9.0, 0.1)) == 0.0
    assert Count(5.0).allowed == (0.0, math.inf)


def test_counts_agree_within_a_quarter_of_the_smaller():
    assert Count(1249.0).agrees(PublishedMean(1000.0, None))
    assert not Count(1251.0).agrees(PublishedMean(1000.0, None))
    assert Count(1000.0).agrees(PublishedMean(1249.0, None))
    assert not Count(1000.0).agrees(PublishedMean(1251.0, None))
