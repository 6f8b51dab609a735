"""The published tables as data."""

import csv
from functools import cache
from importlib import resources

import selectenv


@cache
def allowed_returns(world: str) -> tuple[float, float]:
    """Return the least and the most that any policy can earn in a world."""
    place = selectenv.TABULAR[world].make()
    return place.worst_return(), place.best_return()


@cache
def published(table: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a published table."""
    text = resources.files("experiments.protocol").joinpath("published_tables", f"{table}.csv").read_text()
    rows = tuple(csv.DictReader(text.splitlines()))
    return tuple(row | {"domain": row.get("domain", "").replace("-", "")} for row in rows)


def number(text: str) -> float | None:
    """Return a figure of a published table; None where it is left out."""
    return float(text) if text else None
