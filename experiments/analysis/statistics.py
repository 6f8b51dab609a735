"""What many runs say: mean, error, interval, interquartile mean, chance to be better."""

from dataclasses import dataclass

import numpy as np

from selectenv.typing import FloatArray

BOOTSTRAP = 2000


@dataclass(frozen=True)
class Summary:
    """A sample of returns in figures."""

    runs: int
    mean: float
    stderr: float
    low: float
    """Lower end of the 95 % bootstrap interval of the mean."""
    high: float
    iqm: float
    """Mean of the middle half."""
    improvement: float | None = None
    """Chance that a run is better than a run of the baseline (ties count half)."""


def summarise(returns: FloatArray, baseline: FloatArray | None = None, seed: int = 0) -> Summary:
    """Return the summary of a sample, beside a baseline if there is one."""
    runs = len(returns)
    stderr = float(returns.std(ddof=1) / np.sqrt(runs)) if runs > 1 else 0.0
    draws = np.random.default_rng(seed).integers(0, runs, (BOOTSTRAP, runs))
    low, high = np.quantile(returns[draws].mean(axis=1), (0.025, 0.975))
    middle = np.sort(returns)[runs // 4 : runs - runs // 4]
    better = None
    if baseline is not None:
        better = float(np.mean(np.sign(returns[:, None] - baseline[None, :]) / 2 + 0.5))
    return Summary(runs, float(returns.mean()), stderr, float(low), float(high), float(middle.mean()), better)
