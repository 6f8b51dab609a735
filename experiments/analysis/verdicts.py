"""Verdicts: whether a published number agrees with ours, and whether the numbers of other strategies do not."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import selectenv
from experiments.analysis.rules import Rule
from experiments.protocol.published import PublishedMean

AGREES, DIFFERS, IMPOSSIBLE = "agrees", "differs", "impossible"
CANNOT_BE_TOLD = "cannot be told"
"""Replaces "agrees" and "differs" where the rule does not discriminate between strategies."""
NOT_ENUMERATED = "not enumerated"
"""Replaces the outcome where a search was not run because there are too many sets: nothing was judged."""
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Control:
    """The same rule, applied to our result and the published numbers of the other strategies."""

    agreeing: int = 0
    """How many of them agree with ours although they belong to another strategy."""
    others: int = 0
    """How many other strategies were published for the same world and budget."""

    @property
    def discriminates(self) -> bool:
        """Whether the rule rejects at least half of the wrong strategies; false if there are none."""
        return self.others > 0 and 2 * self.agreeing <= self.others

    def __str__(self) -> str:
        return f"{self.agreeing} of {self.others}"


@dataclass(frozen=True)
class Verdict:
    """The outcome for one published number."""

    by_rule: str
    """The outcome of the rule alone: whether the number agrees with ours, differs from it, or is impossible."""
    reason: str = ""
    """Why it differs, "unexplained" if we do not know, or the bound it breaks."""
    control: Control = Control()

    @property
    def outcome(self) -> str:
        """The outcome with the control; no control is needed to see that a number is impossible."""
        if self.by_rule in (AGREES, DIFFERS) and not self.control.discriminates:
            return CANNOT_BE_TOLD
        return self.by_rule

    def __str__(self) -> str:
        """Return the outcome and, after a colon, what there is to say about it."""
        if self.outcome != CANNOT_BE_TOLD:
            return f"{self.outcome}: {self.reason}" if self.reason else self.outcome
        found = f"{self.by_rule} ({self.reason})" if self.reason else self.by_rule
        agreeing, others = self.control.agreeing, self.control.others
        if not others:
            return f"{self.outcome}: {found}, but nothing else was published to swap it with"
        so_do = f"so do {agreeing} of the {others} others" if self.by_rule == AGREES else ""
        return f"{self.outcome}: {found}, but {so_do or f'{agreeing} of the {others} others agree'}"


@cache
def allowed_returns(world: str) -> tuple[float, float]:
    """Return the smallest and the largest return that any policy can earn in a tabular world."""
    made = selectenv.TABULAR[world].make()
    return made.worst_return(), made.best_return()


def judge(rule: Rule, published: PublishedMean, others: Sequence[PublishedMean], reason: str = UNEXPLAINED) -> Verdict:
    """Judge the published number of a strategy, with those of the other strategies as the control.

    Args:
        rule: our result of the strategy.
        published: its published number.
        others: the published numbers of all other strategies in the same world and at the same budget.
        reason: why it may differ, if we know.
    """
    control = Control(sum(outcome(rule, other) == AGREES for other in others), len(others))
    found = outcome(rule, published)
    if found == IMPOSSIBLE:
        low, high = rule.allowed
        reason = f"the world allows {low:.3f} to {high:.3f}"
    return Verdict(found, "" if found == AGREES else reason, control)


def outcome(rule: Rule, published: PublishedMean) -> str:
    """Return the outcome of the rule alone for one published number."""
    low, high = rule.allowed
    slack = rule.slack(published)
    if not low - slack <= published.mean <= high + slack:
        return IMPOSSIBLE
    return AGREES if rule.agrees(published) else DIFFERS
