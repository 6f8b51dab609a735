"""Running cells in this process, in local processes or on a Dask cluster; finished cells are stored within a second."""

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator

from experiments.engine.cell import Cell, Record, Result
from experiments.engine.executors import Execute, dask_cluster, local_processes
from experiments.engine.stopping import is_abandoned, orderly_termination
from experiments.engine.store import ResultsStore
from experiments.errors import ClusterError
from selectenv.errors import OptionError
from selectenv.io.progress import progress_bar
from selectenv.io.stop_requests import stop_if_requested, stop_when

BATCH_SECONDS = 1.0
"""Maximum time that results wait before they are written."""
CELLS_PER_TASK = 16
"""Cells sent to a worker at a time by default: enough to share a problem, few enough to lose little."""

RunCell = Callable[[Cell], list[Record]]


def run_cells(
    cells: list[Cell],
    run_cell: RunCell,
    store: ResultsStore,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    title: str = "",
    watch: Callable[[Result], None] | None = None,
    cells_per_task: int = CELLS_PER_TASK,
) -> int:
    """Run the cells that the store does not have, and store their results as they finish.

    SIGTERM stops the run like Ctrl-C: finished cells are stored. No local process outlives this one, even if it is
    killed. On a cluster, no new task starts then, and running ones stop after a cell or at the next checkpoint.

    Args:
        cells: the cells to run.
        run_cell: function that runs one cell; it must be defined at module level.
        store: receives the results; cells that it already has are not run again.
        jobs: local processes; 1 runs in this one.
        cluster: address of a Dask scheduler to run on instead.
        title: shown beside the progress bar.
        watch: called with every result as it arrives.
        cells_per_task: cells that are sent to a worker together; a task that is interrupted is lost as a whole.

    Returns:
        The number of cells that were run.

    Raises:
        OptionError: ``jobs`` or ``cells_per_task`` is below 1.
        StoreError: the store is damaged, in use, or cannot be written.
        ClusterError: no scheduler answers at ``cluster``, or it is lost during the run.
        TerminatedError: the process received SIGTERM.
    """
    for name, value in (("jobs", jobs), ("cells_per_task", cells_per_task)):
        if value < 1:
            raise OptionError(f"{name} must be 1 or more, not {value}")
    with orderly_termination(), store.writing():
        todo = store.missing(cells)
        if todo:
            with _executor(jobs, cluster) as execute:
                size = 1 if cluster is None and jobs == 1 else cells_per_task
                tasks = [(run_cell, todo[i : i + size]) for i in range(0, len(todo), size)]
                try:
                    _store_as_they_come(execute(run_chunk, tasks, BATCH_SECONDS), store, len(todo), title, watch)
                except ClusterError as error:
                    wanted = {cell.key for cell in cells}
                    left = len(store.missing(cells))
                    raise ClusterError(
                        f"{error}. {len(wanted) - left} of {len(wanted)} cells are stored in {store.path}; repeat "
                        "the command with a running scheduler to resume"
                    ) from None
    return len(todo)


def _store_as_they_come(
    chunks: Iterator[list[list[Result]]],
    store: ResultsStore,
    total: int,
    title: str,
    watch: Callable[[Result], None] | None,
) -> None:
    """Write results in small batches; when the run is interrupted, write those that have arrived."""
    waiting: list[Result] = []
    written = time.monotonic()
    try:
        with progress_bar(total, title or "running") as bar:
            for finished in chunks:
                for result in (result for chunk in finished for result in chunk):
                    waiting.append(result)
                    if watch is not None:
                        watch(result)
                    bar.update()
                bar.refresh()
                if waiting and time.monotonic() - written > BATCH_SECONDS:
                    store.add(waiting)
                    waiting, written = [], time.monotonic()
    finally:
        if waiting:
            store.add(waiting)


def run_chunk(run_cell: RunCell, chunk: list[Cell]) -> list[Result]:
    """Run cells one after the other.

    Raises:
        StoppedError: the client that requested the results is gone.
    """
    results = []
    with stop_when(is_abandoned):
        for cell in chunk:
            stop_if_requested()
            began = time.perf_counter()
            with contextlib.redirect_stderr(io.StringIO()):  # messages of a search would break the progress bar
                records = run_cell(cell)
            results.append(Result(cell, records, time.perf_counter() - began))
    return results


@contextlib.contextmanager
def _executor(jobs: int, cluster: str | None) -> Iterator[Execute]:
    """Yield a function that runs chunks of cells and yields their results in the order in which they finish."""
    if cluster is not None:
        with dask_cluster(cluster) as execute:
            yield execute
    elif jobs == 1:
        yield lambda function, tasks, seconds: ([function(*task)] for task in tasks)
    else:
        with warnings.catch_warnings():  # loky replaces workers whose memory has grown, which needs no warning
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            with local_processes(jobs) as execute:
                yield execute
