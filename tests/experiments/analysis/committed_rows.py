"""The results committed under docs/ as rows, for pages of the real size."""

import csv
import re
from pathlib import Path

import selectenv
from experiments.analysis.game_verdicts import GameVerdict
from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.analysis.verdicts import CANNOT_BE_TOLD, Control, Verdict

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
    return Row(
        line["world"],
        line["labels"],
        line["strategy"],
        line["metric"],
        ours,
        _number(line["gap"]),
        _number(line["published"]),
        _number(line["its error"]),
        _verdict(line),
        "" if ours else line["ours"],
        line["setting"],
    )


def _verdict(line: dict[str, str]) -> Verdict | None:
    outcome, _, reason = line["verdict"].partition(": ")
    if not outcome:
        return None
    if outcome == CANNOT_BE_TOLD:
        reason = "".join(re.findall(r"^differs \((.*)\), but .*", reason))
    agreeing, others = map(int, (line["swapped"] or "0 of 0").split(" of "))
    kind = Verdict if line["world"] in selectenv.TABULAR else GameVerdict
    return kind(line["by the rule"] or outcome, reason, Control(agreeing, others))


def _number(text: str) -> float | None:
    return float(text) if text else None
