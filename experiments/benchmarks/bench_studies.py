"""Benchmark of whole studies, run from scratch on all cores."""

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from experiments.cli.tables import table
from experiments.engine.runner import run_cells
from experiments.engine.store import ResultsStore
from experiments.studies import find_studies
from selectenv.kernels.threads import thread_count


def bench_studies(everything: bool) -> None:
    """Print how long studies take.

    Args:
        everything: Time all studies that are not run by the hour, too.
    """
    studies, rows = find_studies(), []

    def timed(names: Iterable[str], seeds: int | None, solver: str) -> float:
        """Return the seconds that the studies take, one after the other."""
        with tempfile.TemporaryDirectory() as folder, ResultsStore(Path(folder) / "results.sqlite") as store:
            began = time.perf_counter()
            for name in names:
                study = studies[name]
                run_cells(
                    study.cells(seeds or study.seeds, solver),
                    study.run_cell,
                    store,
                    jobs=thread_count(),
                    title=name,
                    cells_per_task=study.cells_per_task,
                )
            return time.perf_counter() - began

    rows.append(("heuristics-uds, 100 seeds", f"{timed(['heuristics-uds'], None, 'exact'):.0f}", "60"))
    sampled = 50 * timed(["heuristics-uds"], 2, "sampled")
    rows.append(("heuristics-uds, sampled, 100 seeds (50 x 2 seeds)", f"{sampled:.0f}", "3600"))
    if everything:
        short = [name for name, study in studies.items() if study.cpu_hours is None]
        games = [name for name in short if name.startswith("breakout")]
        tabular = [name for name in short if name not in games]
        rows.append(("all tabular studies", f"{timed(tabular, None, 'exact'):.0f}", "1200"))
        rows.append(("all studies of Breakout, both scales", f"{timed(games, None, 'exact'):.0f}", "1800"))
    print("\nStudies from scratch\n")
    print(table(("study", "seconds", "limit"), rows))
