"""Statistics against values worked out by hand."""

import math

import numpy as np
import pytest

from experiments.analysis.statistics import (
    RESAMPLES,
    Summary,
    bootstrap_interval,
    probability_of_improvement,
    standard_error,
    summarise,
)

VALUES = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0])


def test_a_sample_and_its_baseline():
    summary = summarise(VALUES, np.array([2.0, 2.0]))
    assert summary.runs == 8
    assert summary.mean == 121 / 8
    assert summary.stderr == pytest.approx(VALUES.std(ddof=1) / math.sqrt(8))
    assert summary.iqm == (2 + 3 + 4 + 5) / 4
    assert summary.improvement == (5 + 0.5) / 8
    assert summarise(VALUES).improvement is None


def test_the_interval_follows_from_the_seed():
    low, high = bootstrap_interval(VALUES, 0)
    draws = np.random.default_rng(0).integers(0, 8, (2000, 8))
    means = np.sort(VALUES[draws].mean(axis=1))
    # Linear interpolation at 2.5 % and 97.5 % of the 1,999 steps between 2,000 sorted means.
    assert low == pytest.approx(means[49] + 0.975 * (means[50] - means[49]))
    assert high == pytest.approx(means[1949] + 0.025 * (means[1950] - means[1949]))
    assert (low, high) == (summarise(VALUES).low, summarise(VALUES).high)
    assert low < VALUES.mean() < high
    assert (
        bootstrap_interval(VALUES, 1) == (summarise(VALUES, seed=1).low, summarise(VALUES, seed=1).high) != (low, high)
    )
    assert RESAMPLES == 2000


def test_a_single_run_has_no_error():
    assert summarise(np.array([3.0])) == Summary(1, 3.0, 0.0, 3.0, 3.0, 3.0)
    assert standard_error(np.array([3.0])) == 0.0


def test_the_error_of_two_runs():
    assert standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)


def test_ties_count_half_in_the_probability_of_improvement():
    assert probability_of_improvement(np.array([1.0, 2.0]), np.array([2.0, 2.0, 3.0])) == (0 + 0.5 * 2) / 6
    assert probability_of_improvement(np.array([5.0]), np.array([1.0])) == 1.0
    assert probability_of_improvement(np.array([1.0, 1.0]), np.array([1.0, 1.0, 1.0])) == 0.5
