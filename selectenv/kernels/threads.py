"""One explicit thread pool for compiled loops, which release the GIL; one thread inside worker processes."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_pools: dict[int, ThreadPoolExecutor] = {}


def thread_count() -> int:
    """Return how many threads compiled work may use here.

    `SELECTENV_THREADS` decides if it is set; a worker process (multiprocessing, joblib, Dask) gets one; otherwise it is
    the number of cores this process may run on.
    """
    chosen = os.environ.get("SELECTENV_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    if (
        multiprocessing.parent_process() is not None
        or os.environ.get("LOKY_WORKER")
        or "DASK_WORKER_NAME" in os.environ
    ):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_chunks(work: Callable[[int, int], None], items: int, chunk: int, *, parallel: bool = True) -> None:
    """Call ``work(first, last)`` over 0..items in chunks of fixed size; in order only if not ``parallel``."""
    starts = range(0, items, chunk)
    threads = min(thread_count(), len(starts)) if parallel else 1
    if threads <= 1:
        for first in starts:
            work(first, min(first + chunk, items))
        return
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="selectenv")
    for _ in _pools[threads].map(lambda first: work(first, min(first + chunk, items)), starts):
        pass


if hasattr(os, "register_at_fork"):  # a forked child inherits the pool object but not its threads
    os.register_at_fork(after_in_child=_pools.clear)
