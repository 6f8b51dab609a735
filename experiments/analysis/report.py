"""The report: everything stored as one self-contained HTML file and, if asked, as CSV."""

import csv
from collections.abc import Iterable
from pathlib import Path

from experiments.analysis.best_known import best_known
from experiments.analysis.gathering import StudyResults, gather
from experiments.analysis.headlines import agreement_sentence, proof_sentence, winners_sentence
from experiments.analysis.report_page import render
from experiments.analysis.row import Row
from experiments.analysis.row_text import CSV_COLUMNS, csv_cells
from experiments.engine.store import ResultsStore
from experiments.studies import find_studies
from selectenv.io.atomic import whole_file


def build(
    store: ResultsStore,
    path: Path,
    *,
    seeds: int | None = None,
    csv_path: Path | None = None,
    only: str | None = None,
) -> dict[str, list[Row]]:
    """Write the report of everything stored; return the rows of each study.

    Args:
        store: the results.
        path: the file to write.
        seeds: number of seeds that were run, if not the default of each study.
        csv_path: where to write all rows as plain text too.
        only: "WORLD" or "WORLD/STRATEGY" to leave out all other results.
    """
    found = gather(store, find_studies().values(), seeds, only)
    if csv_path is not None:
        write_csv(found, csv_path)
    text = render(found, sentences(found))
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
    lines = [agreement_sentence(row for _, _, rows in found for row in rows), proof_sentence(best_known())]
    for study, _, rows in found:
        if study.name.startswith("heuristics"):
            lines.append(f"{study.name}: {winners_sentence(rows)}")
        lines += [f"{study.name}: {finding}" for finding in study.findings(rows)]
    return lines
