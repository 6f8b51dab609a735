"""Verdicts: whether a published metric agrees with ours."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import selectenv
from experiments.analysis.statistics import standard_error
from experiments.protocol.published import PublishedMean
from selectenv.typing import FloatArray

Z_LIMIT = 3.0
"""A published metric with an error agrees within this many combined standard errors."""
NOISE_LIMIT = 4.0
"""One without an error agrees within this many times the noise of 10,000 simulated episodes."""
ROUNDING = 0.0005
"""Published metrics have three decimals."""
COUNT_LIMIT = 0.25
"""Counts of unique states have no published error and depend on the expert: they agree within this share."""
AGREES, DIFFERS, IMPOSSIBLE = "agrees", "differs", "impossible"
NOT_ENUMERATED = "not enumerated"
"""Replaces the outcome where a search was not run because there are too many sets: nothing was judged."""


@dataclass(frozen=True)
class Verdict:
    """The outcome for one published metric."""

    outcome: str
    reason: str = ""
    """Why it differs, "unexplained" if we do not know, or the bound it breaks."""


@cache
def allowed_returns(world: str) -> tuple[float, float]:
    """Return the smallest and the largest return that any policy can earn in a tabular world."""
    made = selectenv.TABULAR[world].make()
    return made.worst_return(), made.best_return()


def judge(
    published: PublishedMean,
    ours: FloatArray,
    noise: float,
    *,
    stochastic: bool,
    allowed: tuple[float, float],
    reason: str = "unexplained",
    noisy_mean: bool = False,
) -> Verdict:
    """Compare a published mean with our runs.

    Args:
        published: the published mean; its standard error may be None or 0.
        ours: [runs] our returns.
        noise: standard error of the published evaluation by 10,000 episodes.
        stochastic: whether the strategy is random.
        allowed: the smallest and the largest return that any policy can earn in the world.
        reason: why it may differ, if we know.
        noisy_mean: whether the published metric is a mean over seeds; the allowed range is then widened by its error.
    """
    mean, stderr = published.mean, published.stderr or 0.0
    slack = NOISE_LIMIT * noise + ROUNDING + (Z_LIMIT * stderr if noisy_mean else 0.0)
    low, high = allowed
    if mean < low - slack or mean > high + slack:
        return Verdict(IMPOSSIBLE, f"the world allows {low:.3f} to {high:.3f}")
    if stochastic and stderr:
        agrees = abs(mean - ours.mean()) <= Z_LIMIT * np.hypot(stderr, standard_error(ours)) + ROUNDING
    elif stochastic:
        bottom, top = np.quantile(ours, (0.005, 0.995))
        agrees = bottom - slack <= mean <= top + slack
    else:
        agrees = abs(mean - ours.mean()) <= slack + Z_LIMIT * stderr
    return Verdict(AGREES) if agrees else Verdict(DIFFERS, reason)


def counts_agree(published: float, ours: float) -> bool:
    """Return whether two counts are within ``COUNT_LIMIT`` of each other, whichever is larger."""
    return bool(abs(np.log(ours / published)) <= np.log(1 + COUNT_LIMIT))
