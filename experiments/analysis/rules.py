"""Rules that decide whether a published number agrees with our results, one per way in which numbers were published."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from experiments.analysis.significance import LEVEL, StandardError, combined, p_value
from experiments.analysis.statistics import Summary
from experiments.protocol.published import PublishedMean
from selectenv.typing import FloatArray

THOUSANDTHS, HUNDREDTHS = 0.0005, 0.005
"""Half a unit of the last digit of numbers with three and with two decimals."""
TEST_DATASETS = 5
"""Number of datasets behind a published test score and behind ours."""
MEAN_LIMIT = 3.0
"""A published mean is impossible if it leaves the range of possible returns by more than this many of its errors."""
NOISE_LIMIT = 4.0
"""A published single run is impossible if it does so by more than this many times the noise of its evaluation."""
COUNT_LIMIT = 0.25
"""Counts of unique states have no published error and depend on the expert: they agree within this share."""


class Rule(Protocol):
    """Our result, ready to be compared with any published number."""

    @property
    def allowed(self) -> tuple[float, float]:
        """The smallest and the largest number that is possible."""

    def slack(self, published: PublishedMean) -> float:
        """Return how far a published number may lie outside ``allowed`` because of its own error."""

    def agrees(self, published: PublishedMean) -> bool:
        """Return whether a published number agrees with ours."""


@dataclass(frozen=True)
class MeanOverSeeds:
    """For published means over seeds: Welch's t test of two means.

    A side without an error of its own (a mean printed without one, or a single run of ours) is assumed to have the
    spread of the other side.
    """

    ours: Summary
    published_seeds: int
    """Number of seeds behind the published mean."""
    allowed: tuple[float, float]
    rounding: float = THOUSANDTHS

    def slack(self, published: PublishedMean) -> float:
        """Return a multiple of the published error."""
        theirs, _ = self.errors(published.stderr)
        return MEAN_LIMIT * theirs.size + self.rounding

    def agrees(self, published: PublishedMean) -> bool:
        """Return whether the difference of the means is not significant."""
        error = combined(*self.errors(published.stderr))
        return p_value(published.mean, self.rounding, np.array([self.ours.mean]), error) >= LEVEL

    def errors(self, printed: float | None) -> tuple[StandardError, StandardError]:
        """Return the standard errors of the published mean and of ours; they are 0 if neither side has one."""
        runs, seeds = self.ours.runs, self.published_seeds
        mine = StandardError(self.ours.stderr, runs - 1) if runs > 1 else None
        # The printed error is rounded too: the largest one that is printed like this counts.
        theirs = None if printed is None else StandardError(printed + self.rounding, seeds - 1)
        if theirs is None:
            theirs = StandardError(0.0) if mine is None else _for_runs(mine, runs, seeds)
        return theirs, mine or _for_runs(theirs, seeds, runs)


def _for_runs(error: StandardError, runs: int, others: int) -> StandardError:
    """Return the error of a mean over another number of runs with the same spread."""
    return StandardError(error.size * float(np.sqrt(runs / others)), error.freedom)


@dataclass(frozen=True)
class SingleRun:
    """For a published single run: its place in the distribution of our runs, widened by the error of its evaluation.

    A deterministic strategy is the special case in which all our runs are equal.
    """

    runs: FloatArray
    """[runs] our returns."""
    noise: float
    """Standard error of the mean over 10,000 simulated episodes."""
    spread: float
    """Standard error over our test datasets; it counts only beside a published one."""
    allowed: tuple[float, float]
    rounding: float = THOUSANDTHS

    def slack(self, published: PublishedMean) -> float:
        """Return a multiple of the noise."""
        return NOISE_LIMIT * self.noise + self.rounding

    def agrees(self, published: PublishedMean) -> bool:
        """Return whether the published run is not in the tails of the distribution."""
        errors = [StandardError(self.noise)]
        if published.stderr is not None:
            freedom = TEST_DATASETS - 1
            errors += [StandardError(published.stderr + self.rounding, freedom), StandardError(self.spread, freedom)]
        return p_value(published.mean, self.rounding, self.runs, combined(*errors)) >= LEVEL


@dataclass(frozen=True)
class Count:
    """For counts, which have no error."""

    ours: float
    allowed: tuple[float, float] = (0.0, np.inf)

    def slack(self, published: PublishedMean) -> float:
        """Return 0."""
        return 0.0

    def agrees(self, published: PublishedMean) -> bool:
        """Return whether the counts are within ``COUNT_LIMIT`` of each other, whichever is larger."""
        return bool(abs(np.log(self.ours / published.mean)) <= np.log(1 + COUNT_LIMIT))
