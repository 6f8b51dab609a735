"""Counts of agreement in the results committed under docs/, computed without the code that made them."""

import csv
from functools import cache

import selectenv
from tests.markdown_pages import ROOT

HEURISTICS = ("heuristics-uds", "heuristics-adapted")
TRAINED = ("trained-uds", "trained-adapted")


@cache
def results() -> tuple[dict[str, str], ...]:
    with (ROOT / "docs" / "results.csv").open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def judged(strategies: tuple[str, ...], studies: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of published numbers of tabular worlds that were judged."""
    return [
        row
        for row in results()
        if row["by the rule"]
        and row["world"] in selectenv.TABULAR
        and row["strategy"].startswith(strategies)
        and row["study"] in studies
    ]


def control(row: dict[str, str]) -> tuple[int, int]:
    """Return how many published numbers of other strategies agree with ours, and how many there are."""
    agreeing, others = row["swapped"].split(" of ")
    return int(agreeing), int(others)


def told(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows in which at least half of the wrong strategies, and at least one, are rejected."""
    return [row for row in rows if (rejected := control(row)[1] - control(row)[0]) and rejected >= control(row)[0]]


def agreement(rows: list[dict[str, str]]) -> tuple[str, str]:
    """Return how many numbers agree, and how many do with strategies swapped."""
    agree = sum(row["by the rule"] == "agrees" for row in rows)
    swapped, others = (sum(numbers) for numbers in zip(*map(control, rows), strict=True))
    return f"{agree:,} of {len(rows):,}", f"{swapped:,} of {others:,}"


def agree_in_words(rows: list[dict[str, str]]) -> str:
    agree, swapped = agreement(rows)
    return f"{agree} agree (swapped: {swapped})"
