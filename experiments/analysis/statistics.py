"""Statistics of repeated runs: mean, error, bootstrap interval, interquartile mean, probability of improvement."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from selectenv.typing import FloatArray

RESAMPLES = 2000


@dataclass(frozen=True)
class Summary:
    """Statistics of a sample of returns."""

    runs: int
    mean: float
    stderr: float
    """Standard error of the mean; 0 for a single run."""
    low: float
    """Lower end of the 95 % bootstrap interval of the mean."""
    high: float
    """Upper end of that interval."""
    iqm: float
    """Interquartile mean: the mean of the middle half."""
    improvement: float | None = None
    """Probability that a run is better than a run of the baseline; ties count one half."""


def summarise(returns: FloatArray, baseline: FloatArray | None = None, seed: int = 0) -> Summary:
    """Return the statistics of a sample.

    Args:
        returns: [runs] the sample.
        baseline: [other runs] the sample to compare it with; optional.
        seed: seed of the bootstrap.
    """
    low, high = bootstrap_interval(returns, seed)
    return Summary(
        len(returns),
        float(returns.mean()),
        standard_error(returns),
        low,
        high,
        float(stats.trim_mean(returns, 0.25)),
        None if baseline is None else probability_of_improvement(returns, baseline),
    )


def standard_error(returns: FloatArray) -> float:
    """Return the standard error of the mean of a sample [runs]; 0 for a single run."""
    return float(stats.sem(returns)) if len(returns) > 1 else 0.0


def bootstrap_interval(returns: FloatArray, seed: int) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean of a sample [runs].

    This is not ``scipy.stats.bootstrap``, which interpolates between the same resampled means with another rounding:
    where a bound lies halfway between two printed values, its third decimal differs from the published results.
    """
    draws = np.random.default_rng(seed).integers(0, len(returns), (RESAMPLES, len(returns)))
    low, high = np.quantile(returns[draws].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def probability_of_improvement(returns: FloatArray, baseline: FloatArray) -> float:
    """Return the probability that a run [runs] is better than a run of the baseline [other runs]; ties count half."""
    pairs = len(returns) * len(baseline)
    return float(stats.mannwhitneyu(returns, baseline, method="asymptotic").statistic / pairs)
