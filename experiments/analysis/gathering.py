"""The stored results of studies, and the rows computed from them."""

from collections.abc import Iterable
from typing import NamedTuple

from experiments.analysis.row import Row
from experiments.engine.cell import Result
from experiments.engine.store import ResultsStore
from experiments.engine.study import Study


class StudyResults(NamedTuple):
    """A study with its stored results and their rows."""

    study: Study
    results: list[Result]
    rows: list[Row]


def gather(store: ResultsStore, studies: Iterable[Study], seeds: int | None = None) -> list[StudyResults]:
    """Return the studies that have results, with their rows."""
    found = []
    for study in studies:
        results = store.results(study.cells(seeds or study.seeds, "exact"))
        if results:
            found.append(StudyResults(study, results, study.rows(results)))
    return found
