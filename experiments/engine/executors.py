"""Where tasks run: in local processes that end with this one, or on a Dask cluster."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from experiments.engine.worker_lifetime import follow_runner
from experiments.errors import ClusterError
from selectenv.errors import MissingExtraError

TASKS_AHEAD = 4
"""Tasks per local process that are submitted at a time."""
CONNECT_SECONDS = 10
FETCH_SECONDS = 60
"""Time limit for fetching a finished result; a scheduler that exceeds it is considered lost."""
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)

Execute = Callable[[Callable[..., Any], list[tuple[Any, ...]], float], Iterator[list[Any]]]
"""Function, arguments of each task, seconds -> lists of results as tasks finish, empty if none did for ``seconds``."""


@contextmanager
def local_processes(jobs: int) -> Iterator[Execute]:
    """Yield a function that runs tasks in ``jobs`` processes, which are reused by later calls.

    Processes do not outlive this one, not even if it is killed; after an error or an interruption they are stopped.

    Raises:
        MissingExtraError: joblib is not installed.
    """
    try:
        from joblib.externals.loky import get_reusable_executor
    except ModuleNotFoundError:
        raise MissingExtraError("several processes need joblib: pip install 'selectenv[cluster]'") from None

    def finished_of(pending: set[Any], seconds: float) -> tuple[set[Any], set[Any]]:
        return wait(pending, seconds, FIRST_COMPLETED)

    executor = get_reusable_executor(
        max_workers=jobs, initializer=follow_runner, initargs=(os.getpid(),), env=ONE_THREAD
    )
    try:
        yield lambda function, tasks, seconds: _unordered(
            partial(executor.submit, function), finished_of, Future.result, tasks, seconds, TASKS_AHEAD * jobs
        )
    except BaseException:
        _kill(executor)
        raise


def _kill(executor: Any) -> None:
    """End the processes of a local executor at once, whatever they are doing.

    Its own ``shutdown(kill_workers=True)`` prints a traceback if tasks are waiting.
    """
    for process in list(executor._processes.values()):
        with suppress(OSError):  # the process has ended already
            os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has only the latter
    executor.shutdown(wait=True)


@contextmanager
def dask_cluster(address: str) -> Iterator[Execute]:
    """Yield a function that runs tasks on the cluster of the scheduler at ``address``.

    Raises:
        ClusterError: no scheduler answers there, or it is lost before all results have arrived.
        MissingExtraError: Dask is not installed.
    """
    try:
        from dask.distributed import Client
    except ModuleNotFoundError:
        raise MissingExtraError("a cluster needs Dask: pip install 'selectenv[cluster]'") from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address!r} ({error})") from None

    gone = f"the Dask scheduler at {address} is gone"

    def check() -> None:
        if client.status != "running":
            raise ClusterError(gone)

    def fetch(future: Any) -> Any:
        try:
            return future.result(timeout=FETCH_SECONDS)
        except Exception:
            if future.status == "error":  # that of the task; otherwise the connection is lost, noticed by now or not
                raise
            raise ClusterError(gone) from None

    done: SimpleQueue[Any] = SimpleQueue()

    def finished_of(pending: set[Any], seconds: float) -> tuple[set[Any], set[Any]]:
        finished = set()
        with suppress(Empty):
            finished.add(done.get(timeout=seconds))
            while True:
                finished.add(done.get_nowait())
        return finished, pending - finished

    def execute(function: Callable[..., Any], tasks: list[tuple[Any, ...]], seconds: float) -> Iterator[list[Any]]:
        def submit(*task: Any) -> Any:
            future = client.submit(function, *task, pure=False)
            future.add_done_callback(done.put)  # type: ignore[no-untyped-call]
            return future

        yield from _unordered(submit, finished_of, fetch, tasks, seconds, len(tasks), check)

    with _quiet("distributed.client"), client:  # ClusterError already reports a lost scheduler
        yield execute


def _unordered(
    submit: Callable[..., Any],
    finished_of: Callable[[set[Any], float], tuple[set[Any], set[Any]]],
    fetch: Callable[[Any], Any],
    tasks: list[tuple[Any, ...]],
    seconds: float,
    ahead: int,
    check: Callable[[], None] = lambda: None,
) -> Iterator[list[Any]]:
    """Yield results in the order in which tasks finish, with ``ahead`` tasks submitted at a time."""
    left, pending = iter(tasks), set[Any]()
    while True:
        results, failure = [], None
        try:
            pending |= {submit(*task) for task in islice(left, ahead - len(pending))}
            if not pending:
                return
            finished, pending = finished_of(pending, seconds)
        except Exception:
            check()  # raises ClusterError if the cause is a lost scheduler
            raise
        for future in finished:
            try:
                results.append(fetch(future))
            except Exception as error:
                failure = error
        yield results
        if failure is not None:
            raise failure
        if not finished:
            check()


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence a logger."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
