"""The test behind every verdict: could a published number come from the same distribution as ours?"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from selectenv.typing import FloatArray

LEVEL = 0.05
"""Level of the two-sided test; if everything reproduced exactly, this share of the numbers would still be rejected."""
NO_ERROR = 1e-9
"""Replaces an error of 0, so that distances can be divided by it."""


@dataclass(frozen=True)
class StandardError:
    """A standard error and how well it is known."""

    size: float
    freedom: float = np.inf
    """Degrees of freedom of its estimate: the number of values minus 1; infinite if it is known."""


def combined(*errors: StandardError) -> StandardError:
    """Return the error of a sum of independent terms, with the degrees of freedom of Welch and Satterthwaite."""
    variance = sum(error.size**2 for error in errors)
    doubt = sum(error.size**4 / error.freedom for error in errors)
    return StandardError(float(np.sqrt(variance)), variance**2 / doubt if doubt else np.inf)


def p_value(published: float, rounding: float, centres: FloatArray, error: StandardError) -> float:
    """Return the two-sided p-value of a published number.

    Under the hypothesis, the number is one of the centres plus an error that follows Student's t distribution. The
    smaller of the two tails counts twice, and each tail contains every number that is printed as the published one.

    Args:
        published: the number as printed.
        rounding: half a unit of its last digit.
        centres: [values] equally likely values without the error.
        error: the error.
    """
    size = max(error.size, NO_ERROR)
    below = stats.t.cdf((published + rounding - centres) / size, error.freedom).mean()
    above = stats.t.cdf((centres - published + rounding) / size, error.freedom).mean()
    return float(min(1.0, 2 * min(below, above)))
