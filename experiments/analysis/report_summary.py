"""The summary at the top of the report: which published numbers agree with ours, which do not, and why."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE
from experiments.analysis.gathering import StudyResults
from experiments.analysis.headlines import Agreement, agreement, by_strategy, with_verdict
from experiments.analysis.row import Row
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, DIFFERS, IMPOSSIBLE

AGREEING, DIFFERING = (AGREES, SAME_SHARE), (DIFFERS, IMPOSSIBLE)
OVERALL = ((0.9, "agrees"), (0.7, "mostly agrees"), (0.3, "agrees in part"), (0.0, "mostly differs"))
"""Smallest share of agreeing numbers -> what the summary calls it; 95 % would agree if everything were reproduced."""
HARDLY, FEWEST = "can hardly be told", 0.1
"""What the summary calls a study if a smaller share of its numbers than this can be told."""
REASONS = 3
"""Most reasons that are listed per study."""
SHARES = re.compile(r" \([^()]*of the return with full labels[^()]*\)$")
"""The shares that a verdict of a game adds to its reason: they differ from row to row."""


class SummaryLine(NamedTuple):
    """One study of the summary."""

    study: str
    question: str
    overall: str
    compared: int
    """Published numbers with a result of ours."""
    told: int
    """Those of them that the comparison can tell from other strategies."""
    agree: int
    swapped: Agreement
    """The same count with the numbers of other strategies."""
    strategies: list[str]
    """Agreement of each strategy, for example "uniform: 25 of 29"."""
    reasons: list[str]
    """Why numbers differ, the most frequent reason first, each with its count."""
    not_run: int

    @property
    def css_class(self) -> str:
        """The class of the verdict: the colours are those of the verdicts of rows."""
        if self.overall in (HARDLY, CANNOT_BE_TOLD, NOT_RUN):
            return CANNOT_BE_TOLD.replace(" ", "-")
        return AGREES if self.overall in ("agrees", "mostly agrees") else DIFFERS


def summary_lines(found: Iterable[StudyResults]) -> list[SummaryLine]:
    """Return one line per study with published numbers."""
    return [
        summary_line(one.study.name, one.study.question.strip().split("\n\n")[0], one.rows)
        for one in found
        if with_verdict(one.rows)
    ]


def summary_line(study: str, question: str, rows: Iterable[Row]) -> SummaryLine:
    """Return the line of a study from its rows."""
    judged = with_verdict(rows)
    told = [row for row in judged if row.judged and row.judged.outcome in (*AGREEING, *DIFFERING)]
    agree, compared = _count(told, AGREEING), sum(row.judged is not None for row in judged)
    return SummaryLine(
        study,
        question,
        overall(agree, len(told), compared),
        compared,
        len(told),
        agree,
        agreement(told),
        [f"{name}: {_count(some, AGREEING)} of {len(some)}" for name, some in by_strategy(told).items()],
        reasons_of(told),
        sum(row.verdict is not None and row.verdict.outcome == NOT_RUN for row in judged),
    )


def overall(agree: int, told: int, compared: int) -> str:
    """Return in words how much of what can be told agrees."""
    if not told:
        return CANNOT_BE_TOLD if compared else NOT_RUN
    if told < FEWEST * compared:
        return HARDLY
    return next(words for least, words in OVERALL if agree >= least * told)


def reasons_of(rows: Sequence[Row]) -> list[str]:
    """Return why numbers differ, with counts, the most frequent reasons first; others are counted together."""
    reasons = Counter(
        SHARES.sub("", row.judged.reason) for row in rows if row.judged and row.judged.outcome in DIFFERING
    )
    listed = [f"{reason} ({count})" for reason, count in reasons.most_common(REASONS)]
    rest = reasons.total() - sum(count for _, count in reasons.most_common(REASONS))
    return [*listed, f"other reasons ({rest})"] if rest else listed


def _count(rows: Iterable[Row], outcomes: Sequence[str]) -> int:
    return sum(row.judged is not None and row.judged.outcome in outcomes for row in rows)
