"""Does a published figure agree with ours?"""

from dataclasses import dataclass

import numpy as np

from selectenv.typing import FloatArray

Z_LIMIT = 3.0
"""Published figures with an error: so many combined standard errors."""
NOISE_LIMIT = 4.0
"""Those without: so many times the noise of 10,000 simulated episodes."""
ROUNDING = 0.0005
"""Published figures have three digits."""
AGREES, DIFFERS, IMPOSSIBLE = "agrees", "differs", "impossible"


@dataclass(frozen=True)
class Verdict:
    """The outcome for one published figure."""

    outcome: str
    reason: str = ""
    """Why it differs, "unexplained" if we do not know, or the bound it breaks."""


def judge(
    published: float,
    published_error: float | None,
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
        published: the published mean.
        published_error: its standard error; None or 0 if there is none to speak of.
        ours: [runs] our returns.
        noise: standard error of the published evaluation by 10,000 episodes.
        stochastic: whether the strategy leaves something to chance.
        allowed: the least and the most that any policy can earn in the world.
        reason: why it may differ, if we know.
        noisy_mean: the published figure is a mean over seeds; what the world allows is then widened by its own error.
    """
    slack = NOISE_LIMIT * noise + ROUNDING + (Z_LIMIT * (published_error or 0.0) if noisy_mean else 0.0)
    low, high = allowed
    if published < low - slack or published > high + slack:
        return Verdict(IMPOSSIBLE, f"the world allows {low:.3f} to {high:.3f}")
    if stochastic and published_error:
        error = float(ours.std(ddof=1) / np.sqrt(len(ours))) if len(ours) > 1 else 0.0
        agrees = abs(published - ours.mean()) <= Z_LIMIT * np.hypot(published_error, error) + ROUNDING
    elif stochastic:
        bottom, top = np.quantile(ours, (0.005, 0.995))
        agrees = bottom - slack <= published <= top + slack
    else:
        agrees = abs(published - ours.mean()) <= slack + Z_LIMIT * (published_error or 0.0)
    return Verdict(AGREES) if agrees else Verdict(DIFFERS, reason)
