"""Verdicts on the published figures of MinAtar games: the same level, the same share of the full-label return, or not.

Returns in the games have a wide spread over training runs and depend on the expert, so a figure may also agree in its
share of the return with full labels. The published numbers of other strategies are counted beside each verdict, but do
not decide it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from experiments.analysis.rules import Count, MeanOverSeeds
from experiments.analysis.significance import combined
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, DIFFERS, UNEXPLAINED, Control, Verdict
from experiments.protocol.budgets import percent
from experiments.protocol.published import PublishedMean

SAME_SHARE, NOT_RUN = "same share", "not run"
ERRORS = 3.0
"""A published figure is at our level if it is within this many combined errors of it."""
LARGEST_ERROR = 0.15
"""Largest combined error, as a share of the figure, with which agreement says something."""
SHARE_DISTANCE = 0.1
"""Largest distance of two shares of the full-label return that are the same."""
TINY = 1e-9


@dataclass(frozen=True)
class GameVerdict(Verdict):
    """The outcome for one published figure of a game, which the control does not change."""

    counted: bool = False
    """Whether headlines count it: every published figure is counted in one study only."""

    @property
    def outcome(self) -> str:
        """The outcome of the rule."""
        return self.by_rule

    def __str__(self) -> str:
        """Return the outcome and, after a colon, what there is to say about it."""
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome


class FullLabels(NamedTuple):
    """The returns with full labels that returns with fewer labels are shares of."""

    ours: float
    published: float


def judge_game(
    rule: MeanOverSeeds,
    published: PublishedMean,
    others: Sequence[PublishedMean] = (),
    reason: str = UNEXPLAINED,
    full: FullLabels | None = None,
    *,
    counted: bool = False,
) -> GameVerdict:
    """Judge a published figure.

    Args:
        rule: our mean, with the errors of both sides.
        published: the figure.
        others: the published figures of other strategies for the same data and budget, or of other data.
        reason: why it may differ, if we know.
        full: the returns with full labels; None if the figure is one of them.
        counted: whether headlines count it.
    """
    control = Control(sum(level(rule, other) == AGREES for other in others), len(others))
    found, error = level(rule, published), combined_error(rule, published)
    said = ""
    if found == CANNOT_BE_TOLD:
        said = f"within three errors, but the error is {percent(error / abs(published.mean or TINY))} of the figure"
        said = said if error else "neither side has an error"
    elif found == DIFFERS:
        said = reason
        if full is not None and min(full) > 0:
            ours, theirs = rule.ours.mean / full.ours, published.mean / full.published
            shares = f"{ours:.2f} of the return with full labels, published {theirs:.2f}"
            if abs(ours - theirs) <= SHARE_DISTANCE + TINY:
                found, said = SAME_SHARE, shares
            else:
                said = f"{reason} ({shares})"
    return GameVerdict(found, said, control, counted)


def level(rule: MeanOverSeeds, published: PublishedMean) -> str:
    """Return whether a published figure is at the level of our mean, ignoring shares."""
    error = combined_error(rule, published)
    if not error:
        return CANNOT_BE_TOLD
    if abs(rule.ours.mean - published.mean) > ERRORS * error + rule.rounding:
        return DIFFERS
    return AGREES if error <= LARGEST_ERROR * abs(published.mean) else CANNOT_BE_TOLD


def combined_error(rule: MeanOverSeeds, published: PublishedMean) -> float:
    """Return the error of the difference between a published figure and our mean; 0 if neither side has an error."""
    return combined(*rule.errors(published.stderr)).size


def judge_count(
    rule: Count, published: float, others: Iterable[float], reason: str = UNEXPLAINED, *, counted: bool = False
) -> GameVerdict:
    """Judge a published count, which has no error; others are the counts that were published for other data."""
    agrees = [rule.agrees(PublishedMean(count, None)) for count in others]
    right = rule.agrees(PublishedMean(published, None))
    return GameVerdict(
        AGREES if right else DIFFERS, "" if right else reason, Control(sum(agrees), len(agrees)), counted
    )
