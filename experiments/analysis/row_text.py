"""Rows as text: the columns of the CSV file, and the narrower ones of the report's tables."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.analysis.row import Row

CSV_COLUMNS = (
    "world",
    "setting",
    "labels",
    "strategy",
    "metric",
    "ours",
    "std. error",
    "95 % interval",
    "IQM",
    "gap",
    "better than uniform",
    "published",
    "its error",
    "by the rule",
    "swapped",
    "verdict",
)
"""By the rule: the outcome without the control. Swapped: how many numbers of other strategies agree with ours."""
REPORT_COLUMNS = (
    "world",
    "setting",
    "labels",
    "strategy",
    "metric",
    "ours",
    "published",
    "verdict",
    "swapped",
    "gap",
    "95 % interval",
    "IQM",
    "better than uniform",
)
"""Means carry their errors and the verdict stands beside them, so that it is in view on a narrow screen."""
WRAPPED = ("setting", "metric", "verdict", "swapped", "95 % interval")
"""Columns of words, which may be broken into lines."""


class ReportTable(NamedTuple):
    """A table of the report; columns without an entry are left out."""

    columns: list[str]
    lines: list[tuple[str, list[str]]]
    """The CSS class of the outcome and the entries of each line."""


def csv_cells(row: Row) -> list[str]:
    """Return the entries of a row for the CSV file, one per column."""
    ours = row.ours
    return [
        row.world,
        row.setting,
        str(row.labels),
        row.strategy,
        row.metric,
        number_text(ours.mean) if ours else row.note,
        number_text(ours.stderr) if ours else "",
        f"{ours.low:.3f} to {ours.high:.3f}" if ours else "",
        number_text(ours.iqm) if ours else "",
        number_text(row.gap),
        number_text(ours.improvement) if ours else "",
        number_text(row.published),
        number_text(row.published_error),
        row.judged.by_rule if row.judged else "",
        str(row.judged.control) if row.judged else "",
        "" if row.verdict is None else str(row.verdict),
    ]


def report_cells(row: Row) -> list[str]:
    """Return the entries of a row for the report, one per column."""
    cells = dict(zip(CSV_COLUMNS, csv_cells(row), strict=True))
    cells["ours"] = with_error(cells["ours"], cells["std. error"])
    cells["published"] = with_error(cells["published"], cells["its error"])
    return [cells[column] for column in REPORT_COLUMNS]


def report_table(rows: Sequence[Row]) -> ReportTable:
    """Return the rows of a study as a table of the report."""
    lines = [(_css_class(row), report_cells(row)) for row in rows]
    used = [i for i in range(len(REPORT_COLUMNS)) if any(entries[i] for _, entries in lines)]
    return ReportTable(
        [REPORT_COLUMNS[i] for i in used],
        [(outcome, [entries[i] for i in used]) for outcome, entries in lines],
    )


def _css_class(row: Row) -> str:
    """Return the outcome of the verdict with hyphens for spaces, "none" without a verdict."""
    return row.verdict.outcome.replace(" ", "-") if row.verdict else "none"


def number_text(value: Any) -> str:
    """Return a number with three decimals, and nothing for None or NaN."""
    return "" if value is None or np.isnan(value) else f"{value:.3f}"


def with_error(mean: str, error: str) -> str:
    """Return a mean with its error, for example "2.740 ± 0.151"; without the error where there is none."""
    return f"{mean} ± {error}" if error else mean
