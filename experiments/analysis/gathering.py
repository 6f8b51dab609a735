"""The stored results of studies, and the rows computed from them."""

from collections.abc import Iterable
from typing import NamedTuple

from experiments.analysis.row import Row
from experiments.engine.cell import Result
from experiments.engine.own_cells import chosen_or_none, own_cells
from experiments.engine.store import ResultsStore
from experiments.engine.study import Study


class StudyResults(NamedTuple):
    """A study with its stored results and their rows."""

    study: Study
    results: list[Result]
    rows: list[Row]


def gather(
    store: ResultsStore, studies: Iterable[Study], seeds: int | None = None, only: str | None = None
) -> list[StudyResults]:
    """Return the studies that have results, with their rows.

    Args:
        store: the results.
        studies: the studies to look for; stored cells of user-defined worlds and strategies belong to them too.
        seeds: number of seeds that were run, if not the default of each study.
        only: "WORLD" or "WORLD/STRATEGY" to leave out all other results.
    """
    found = []
    for study in studies:
        cells = study.cells(seeds or study.seeds, "exact")
        if only is None:
            cells += [cell for cell in own_cells(store.cells(study.name)) if cell.settings.get("solver") != "sampled"]
        else:
            cells = chosen_or_none(cells, only)
        results = store.results(cells)
        if results:
            found.append(StudyResults(study, results, study.rows(results)))
    return found
