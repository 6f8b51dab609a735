"""Verdicts on both sides of every limit."""

import numpy as np
import pytest

from experiments.analysis.verdicts import AGREES, DIFFERS, IMPOSSIBLE, Verdict, allowed_returns, counts_agree, judge
from experiments.protocol.published import PublishedMean

ALLOWED = (0.0, 8.0)
RUNS = np.array([4.0, 6.0] * 50)  # mean 5, standard error 0.1005
ERROR = RUNS.std(ddof=1) / 10


def outcome(mean, stderr=None, noise=0.0, ours=RUNS, **options):
    options = {"stochastic": True, "allowed": ALLOWED, **options}
    return judge(PublishedMean(mean, stderr), ours, noise, **options).outcome


@pytest.mark.parametrize("side", [-1, 1])
def test_three_combined_errors(side):
    limit = 3 * np.hypot(0.2, ERROR) + 0.0005
    assert outcome(5 + side * (limit - 1e-6), 0.2) == AGREES
    assert outcome(5 + side * (limit + 1e-6), 0.2) == DIFFERS


@pytest.mark.parametrize("side", [-1, 1])
def test_a_single_run_of_ours_has_no_error(side):
    one = np.array([5.0])
    assert outcome(5 + side * 0.6004, 0.2, ours=one) == AGREES
    assert outcome(5 + side * 0.6006, 0.2, ours=one) == DIFFERS


@pytest.mark.parametrize("side", [-1, 1])
def test_four_times_the_noise_around_the_exact_value(side):
    exact = np.array([5.0])
    assert outcome(5 + side * 0.0804, noise=0.02, ours=exact, stochastic=False) == AGREES
    assert outcome(5 + side * 0.0806, noise=0.02, ours=exact, stochastic=False) == DIFFERS
    # An error over the test datasets widens it by three errors.
    assert outcome(5 + side * 0.3804, 0.1, noise=0.02, ours=exact, stochastic=False) == AGREES
    assert outcome(5 + side * 0.3806, 0.1, noise=0.02, ours=exact, stochastic=False) == DIFFERS


@pytest.mark.parametrize("stderr", [None, 0.0])
def test_one_run_among_ours(stderr):
    ours = np.arange(1001) / 1000 + 4.0  # the central 99 %: 4.005 to 4.995
    for noise in (0.0, 0.01):
        widened = 4 * noise + 0.0005
        assert outcome(4.005 - widened + 1e-6, stderr, noise, ours) == AGREES
        assert outcome(4.005 - widened - 1e-6, stderr, noise, ours) == DIFFERS
        assert outcome(4.995 + widened - 1e-6, stderr, noise, ours) == AGREES
        assert outcome(4.995 + widened + 1e-6, stderr, noise, ours) == DIFFERS


def test_what_the_world_does_not_allow():
    wide = np.array([0.0, 8.0])
    assert outcome(8.0004, 1.0, ours=wide) == AGREES
    assert outcome(8.0006, 1.0, ours=wide) == IMPOSSIBLE
    assert outcome(-0.0004, 1.0, ours=wide) == AGREES
    assert outcome(-0.0006, 1.0, ours=wide) == IMPOSSIBLE
    # The noise of the evaluation widens the range, and so does the error of a mean over seeds.
    assert outcome(8.0404, 1.0, 0.01, wide) == AGREES
    assert outcome(8.0406, 1.0, 0.01, wide) == IMPOSSIBLE
    assert outcome(8.3004, 0.1, ours=wide, noisy_mean=True) == AGREES
    assert outcome(8.3006, 0.1, ours=wide, noisy_mean=True) == IMPOSSIBLE
    assert outcome(-0.3006, 0.1, ours=wide, noisy_mean=True) == IMPOSSIBLE


def test_the_bounds_of_the_range_are_part_of_it():
    assert outcome(0.25 + 0.0005, 0.0, ours=np.array([0.25]), allowed=(0.0, 0.25)) == AGREES
    assert outcome(0.25 - 0.0005, 0.0, ours=np.array([0.25]), allowed=(0.25, 1.0)) == AGREES


def test_reasons():
    far = PublishedMean(1.0, 0.1)
    assert judge(far, RUNS, 0.0, stochastic=True, allowed=ALLOWED) == Verdict("differs", "unexplained")
    assert judge(far, RUNS, 0.0, stochastic=True, allowed=ALLOWED, reason="known") == Verdict("differs", "known")
    assert judge(PublishedMean(5.0, 0.1), RUNS, 0.0, stochastic=True, allowed=ALLOWED) == Verdict("agrees", "")
    over = judge(PublishedMean(9.0, None), RUNS, 0.0, stochastic=False, allowed=ALLOWED, reason="known")
    assert over == Verdict("impossible", "the world allows 0.000 to 8.000")


def test_counts_agree_within_a_quarter_of_the_smaller():
    assert counts_agree(1000, 1249)
    assert not counts_agree(1000, 1251)
    assert counts_agree(1249, 1000)
    assert not counts_agree(1251, 1000)


def test_what_the_worlds_allow():
    assert allowed_returns("Graph") == pytest.approx((-8.0, 8.0))
    assert allowed_returns("Tree")[1] == pytest.approx(17.685535)
    assert allowed_returns("TwoRoomsTrap") == pytest.approx((-100.0, 1.0))
    assert allowed_returns("CliffWalk")[1] == pytest.approx(-13.0)
