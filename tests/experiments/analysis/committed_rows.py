"""The results committed under docs/ as rows, for pages of the real size."""

import csv
from pathlib import Path

from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.analysis.verdicts import Verdict

PATH = Path(__file__).parents[3] / "docs" / "results.csv"


def committed_rows() -> dict[str, list[Row]]:
    """Return the rows of each study."""
    found: dict[str, list[Row]] = {}
    with PATH.open(newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line["study"], []).append(_row(line))
    return found


def _row(line: dict[str, str]) -> Row:
    ours = None
    if line["std. error"]:
        low, high = map(float, line["95 % interval"].split(" to "))
        ours = Summary(
            1,
            float(line["ours"]),
            float(line["std. error"]),
            low,
            high,
            float(line["IQM"]),
            _number(line["better than uniform"]),
        )
    outcome, _, reason = line["verdict"].partition(": ")
    return Row(
        line["world"],
        line["labels"],
        line["strategy"],
        line["metric"],
        ours,
        _number(line["gap"]),
        _number(line["published"]),
        _number(line["its error"]),
        Verdict(outcome, reason) if outcome else None,
        "" if ours else line["ours"],
        line["setting"],
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
