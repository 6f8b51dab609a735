"""Run cells: here, in local processes, or on a Dask cluster; every finished cell is stored at once."""

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from experiments.engine.cell import Cell, Record, Result
from experiments.engine.store import ResultsStore
from experiments.errors import ClusterError
from selectenv.domains.minatar.games import GAMES
from selectenv.errors import MissingExtraError, OptionError
from selectenv.io.progress import progress

BATCH_SECONDS = 1.0
"""Results are written at least so often."""
CHUNK = 16
"""Cells sent to a worker at a time: enough to share a problem, few enough to lose little; of games, one at a time."""

RunCell = Callable[[Cell], list[Record]]


def run_cells(
    cells: list[Cell], run_cell: RunCell, store: ResultsStore, *, jobs: int = 1, cluster: str | None = None,
    title: str = "", watch: Callable[[Result], None] | None = None,
) -> int:  # fmt: skip
    """Run the cells that the store does not have, and store them as they come.

    Args:
        cells: what is wanted.
        run_cell: a function at module level that runs one.
        store: where results go; what is there already is not run again.
        jobs: local processes; 1 runs in this one.
        cluster: address of a Dask scheduler to run on instead.
        title: shown beside the progress bar.
        watch: is shown every result as it comes.

    Returns:
        How many cells were run.
    """
    if jobs < 1:
        raise OptionError(f"jobs must be 1 or more, not {jobs}")
    with store.writing():
        todo = store.missing(cells)
        size = 1 if any(cell.world in GAMES for cell in todo) else CHUNK
        chunks = [todo[i : i + size] for i in range(0, len(todo), size)]
        waiting: list[Result] = []
        written = time.monotonic()
        try:
            with _executor(jobs, cluster) as execute:
                for results in progress(execute(run_cell, chunks), len(chunks), title or "running"):
                    waiting += results
                    if watch is not None:
                        for result in results:
                            watch(result)
                    if size == 1 or time.monotonic() - written > BATCH_SECONDS:
                        store.add(waiting)
                        waiting, written = [], time.monotonic()
        finally:
            store.add(waiting)
    return len(todo)


def run_chunk(run_cell: RunCell, chunk: list[Cell]) -> list[Result]:
    """Run some cells one after the other."""
    results = []
    for cell in chunk:
        began = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):  # what a search says of itself would break the progress bar
            records = run_cell(cell)
        results.append(Result(cell, records, time.perf_counter() - began))
    return results


Execute = Callable[[RunCell, list[list[Cell]]], Iterator[list[Result]]]


@contextmanager
def _executor(jobs: int, cluster: str | None) -> Iterator[Execute]:
    """Give a function that runs chunks and yields their results in the order they finish."""
    if cluster is None and jobs == 1:
        yield lambda run_cell, chunks: (run_chunk(run_cell, chunk) for chunk in chunks)
        return
    try:
        import joblib
    except ModuleNotFoundError:
        raise MissingExtraError("several processes need joblib: pip install 'selectenv[cluster]'") from None

    def in_parallel(run_cell: RunCell, chunks: list[list[Cell]]) -> Iterator[list[Result]]:
        parallel = joblib.Parallel(
            n_jobs=-1 if cluster else jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs"
        )
        with warnings.catch_warnings():  # workers that have grown are replaced: that is no news
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            yield from parallel(joblib.delayed(run_chunk)(run_cell, chunk) for chunk in chunks)

    if cluster is None:
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            yield in_parallel
        return
    try:
        from dask.distributed import Client
    except ModuleNotFoundError:
        raise MissingExtraError("a cluster needs Dask: pip install 'selectenv[cluster]'") from None
    try:
        client = Client(cluster, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {cluster!r} ({error})") from None
    with client, joblib.parallel_config("dask", client=client):
        yield in_parallel
