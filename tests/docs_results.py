"""The committed results and published tables, as the checks of the documentation read them."""

import csv
from functools import cache
from statistics import mean

from tests.agreement_counts import results
from tests.markdown_pages import ROOT, tables

ALL_TABLES = tables()


@cache
def published_games() -> tuple[dict[str, str], ...]:
    with (ROOT / "experiments" / "protocol" / "published_tables" / "minatar_uds.csv").open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def select(**wanted: str) -> list[dict[str, str]]:
    """Return the rows of the full run with these values."""
    found = [row for row in results() if all(row[column] == value for column, value in wanted.items())]
    assert found, f"no result matches {wanted}"
    return found


def average(**wanted: str) -> float:
    return mean(float(row["ours"]) for row in select(**wanted))


def same(shown: str, value: float) -> bool:
    """Return whether a number is shown rounded; results are stored with three digits, hence the small tolerance."""
    text = shown.strip("*").replace(",", "").replace("%", "").strip()
    digits = len(text.partition(".")[2])
    return abs(float(text) - value) <= 0.5 * 10**-digits + 0.0006


def same_with_error(shown: str, row: dict[str, str], mean_column: str = "ours", error: str = "std. error") -> bool:
    value, _, spread = shown.partition(" +- ")
    return same(value, float(row[mean_column])) and same(spread, float(row[error]))
