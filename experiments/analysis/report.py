"""The report: everything stored as one self-contained HTML file and, if asked, as CSV."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

from experiments.analysis.best_known import best_known
from experiments.analysis.coverage import run_commands
from experiments.analysis.gathering import StudyResults, gather
from experiments.analysis.headlines import agreement_sentence, games_sentence, proof_sentence, winners_sentence
from experiments.analysis.report_page import render
from experiments.analysis.row import Row
from experiments.analysis.row_text import CSV_COLUMNS, csv_cells
from experiments.engine.store import ResultsStore
from experiments.studies import find_studies, find_study
from selectenv.io.atomic import whole_file

NOT_RUN = re.compile(r"\bnan\b")
"""The mean of a strategy without results."""


def build(
    store: ResultsStore,
    path: Path,
    *,
    seeds: int | None = None,
    csv_path: Path | None = None,
    only: str | None = None,
    study: str | None = None,
) -> dict[str, list[Row]]:
    """Write the report of everything stored; return the rows of each study.

    Args:
        store: the results.
        path: the file to write.
        seeds: number of seeds that were run, if not the default of each study.
        csv_path: where to write all rows as plain text too.
        only: "WORLD" or "WORLD/STRATEGY" to leave out all other results.
        study: name of the only study to report, which may be "module:STUDY"; all registered studies by default.
    """
    studies = find_studies().values() if study is None else [find_study(study)]
    found = gather(store, studies, seeds, only)
    if csv_path is not None:
        write_csv(found, csv_path)
    again = [command for one in found for command in run_commands(one, study)]
    given = {"--study": study, "--only": only, "--seeds": seeds}
    again.append(" ".join(["selectenv report", *(f"{name} {value}" for name, value in given.items() if value)]))
    text = render(found, sentences(found), again)
    with whole_file(path) as file:
        file.write(text.encode())
    return {study.name: rows for study, _, rows in found}


def write_csv(found: Iterable[StudyResults], path: Path) -> None:
    """Write one line per row, the name of its study first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("study", *CSV_COLUMNS))
        for study, _, rows in found:
            writer.writerows((study.name, *csv_cells(row)) for row in rows)


def sentences(found: Iterable[StudyResults]) -> list[str]:
    """Return the findings, one sentence each, for the top of the report."""
    found = list(found)
    every = [row for _, _, rows in found for row in rows]
    lines = [agreement_sentence(every), games_sentence(every), proof_sentence(best_known())]
    for study, _, rows in found:
        own = [winners_sentence(rows)] if study.name.startswith("heuristics") else []
        own += [finding for finding in study.findings(rows) if not NOT_RUN.search(finding)]
        lines += [f"{study.name}: {finding}" for finding in own if finding]
    return [line for line in lines if line]
