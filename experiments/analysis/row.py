"""The row of a comparison: one metric of ours, the published one beside it, and the verdict."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.analysis.statistics import Summary
from experiments.analysis.verdicts import Verdict


@dataclass(frozen=True)
class Row:
    """One metric: ours, the published one if there is one, and the verdict."""

    world: str
    labels: int | str
    """Their number, or a percentage of the states."""
    strategy: str
    metric: str
    """What was measured, for example "return", "train" or "test"."""
    ours: Summary | None
    """None where the cell has no metric; ``note`` gives the reason."""
    gap: float | None
    """Distance to the best label set known."""
    published: float | None = None
    published_error: float | None = None
    verdict: Verdict | None = None
    note: str = ""
    setting: str = ""
    """The variant, where a study has several."""

    @property
    def judged(self) -> Verdict | None:
        """The verdict; None if there is no metric of ours to judge."""
        return self.verdict if self.ours is not None else None


def mean_of(rows: Iterable[Row], **wanted: Any) -> float:
    """Return the mean of our metrics over the rows with the given fields, NaN if there are none."""
    found = [row.ours.mean for row in rows if row.ours and all(getattr(row, k) == v for k, v in wanted.items())]
    return float(np.mean(found)) if found else float("nan")
