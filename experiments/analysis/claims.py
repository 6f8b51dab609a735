"""Whether our results support a claim of the paper: it holds, it does not hold, or it cannot be told."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.analysis.verdicts import CANNOT_BE_TOLD

HOLDS, DOES_NOT_HOLD = "holds", "does not hold"
ERRORS = 2.0
"""A difference is certain if it is larger than this many of its errors."""
MARGIN = 0.05
"""An advantage below this share of the return with full labels does not count as one."""


class Difference(NamedTuple):
    """The mean difference of two strategies over the budgets that both have."""

    first: float
    second: float
    error: float | None
    """Standard error of the difference; None if a strategy has a single run."""
    budgets: int

    @property
    def mean(self) -> float:
        """The first minus the second."""
        return self.first - self.second

    @property
    def over(self) -> str:
        """How many budgets it is a mean over, in words."""
        return f"over {self.budgets} budget{'s' * (self.budgets != 1)}"

    def __str__(self) -> str:
        return f"{self.mean:+.2f}" + ("" if self.error is None else f" +- {self.error:.2f}")


def by_budget(rows: Iterable[Row], first: str, second: str, **wanted: Any) -> Difference | None:
    """Return the difference of two strategies among the rows with the given fields; None if they share no budget."""
    found: dict[str, dict[int | str, Summary]] = {first: {}, second: {}}
    for row in rows:
        if row.strategy in found and row.ours and all(getattr(row, name) == value for name, value in wanted.items()):
            found[row.strategy][row.labels] = row.ours
    return difference(
        [(ours, found[second][labels]) for labels, ours in found[first].items() if labels in found[second]]
    )


def difference(pairs: Sequence[tuple[Summary, Summary]]) -> Difference | None:
    """Return the mean difference over pairs of results; None if there are none."""
    if not pairs:
        return None
    known = all(summary.runs > 1 for pair in pairs for summary in pair)
    error = math.sqrt(sum(summary.stderr**2 for pair in pairs for summary in pair)) / len(pairs)
    first, second = (float(np.mean([pair[i].mean for pair in pairs])) for i in (0, 1))
    return Difference(first, second, error if known else None, len(pairs))


def is_better(found: Difference, full: float) -> str:
    """Return whether the first strategy earns more than the second.

    It does not if an advantage of `MARGIN` of the return with full labels can be ruled out.

    Args:
        found: the difference.
        full: the return with full labels.
    """
    if found.error is None:
        return CANNOT_BE_TOLD
    if found.mean > ERRORS * found.error:
        return HOLDS
    return DOES_NOT_HOLD if found.mean + ERRORS * found.error < MARGIN * full else CANNOT_BE_TOLD


def is_not_better(found: Difference, full: float) -> str:
    """Return whether the first strategy does not earn more than the second: the opposite of `is_better`."""
    opposite = {HOLDS: DOES_NOT_HOLD, DOES_NOT_HOLD: HOLDS}
    said = is_better(found, full)
    return opposite.get(said, said)
