"""One explicit thread pool for compiled loops, which release the GIL, and slices that keep them interruptible.

Python handles Ctrl-C in the main thread, between two steps of the interpreter. A compiled loop that may run for longer
than a moment is therefore called slice by slice, see `slices`. Threads of the pool are never interrupted themselves:
`in_chunks` tells them to stop, and they do so before their next slice.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue

SLICE_COST = 1 << 25
"""Innermost operations per slice: 0.01 to 0.2 seconds, depending on how well the loop is vectorised."""

Job = tuple[Callable[[int, int], None], int, int, "SimpleQueue[BaseException | None]"]
_pools: dict[int, ThreadPoolExecutor] = {}
_helpers: list[threading.Thread] = []
_jobs: "SimpleQueue[Job]" = SimpleQueue()
_current = threading.local()
"""`_current.stop` is the event that tells this thread of the pool to stop."""


class _StoppedError(Exception):
    """Ends the work of one thread of the pool after another one failed or the main thread was interrupted."""


def is_worker_process() -> bool:
    """Return whether this process was started by multiprocessing, joblib or Dask to do a part of the work."""
    return (
        multiprocessing.parent_process() is not None
        or bool(os.environ.get("LOKY_WORKER"))
        or "DASK_WORKER_NAME" in os.environ
    )


def thread_count() -> int:
    """Return how many threads compiled work may use here.

    `SELECTENV_THREADS` decides if it is set; a worker process gets one thread; otherwise it is the number of cores that
    this process may run on.
    """
    chosen = os.environ.get("SELECTENV_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    if is_worker_process():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_stopped() -> None:
    """Raise if this is a thread of the pool that was told to stop."""
    stop = getattr(_current, "stop", None)
    if stop is not None and stop.is_set():
        raise _StoppedError


def slices(items: int, cost: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) that cover 0..items, none of which costs much more than `SLICE_COST`.

    Args:
        items: number of items.
        cost: innermost operations per item.
    """
    step = max(1, SLICE_COST // max(1, cost))
    for first in range(0, items, step):
        check_stopped()
        yield first, min(first + step, items)


def in_chunks(work: Callable[[int, int], None], items: int, chunk: int, *, parallel: bool = True) -> None:
    """Call ``work(first, last)`` over 0..items in chunks of fixed size; in order only if not ``parallel``.

    If a call raises, or the waiting main thread is interrupted, the other threads stop before this function raises.
    """
    starts = range(0, items, chunk)
    threads = min(thread_count(), len(starts)) if parallel else 1
    if threads <= 1:
        for first in starts:
            check_stopped()
            work(first, min(first + chunk, items))
        return
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="selectenv")
    stop, remaining = threading.Event(), iter(starts)

    def run() -> None:
        _current.stop = stop
        try:
            for first in remaining:  # threads share the iterator; `next` of a range iterator is atomic
                check_stopped()
                work(first, min(first + chunk, items))
        except BaseException:
            stop.set()
            raise

    futures = [_pools[threads].submit(run) for _ in range(threads)]
    try:
        wait(futures)
    finally:
        stop.set()
        for future in futures:
            future.cancel()
        wait(futures)
    for failure in [future.exception() for future in futures]:
        if failure is not None and not isinstance(failure, _StoppedError):
            raise failure


def in_blocks(work: Callable[[int, int], None], items: int, fewest: int, threads: int) -> None:
    """Call ``work(first, last)`` on one block of 0..items per thread, for work that takes microseconds.

    The calling thread does its share. The others wait at a queue, which costs a tenth of what an executor costs.

    Args:
        work: a function of the first item and the one after the last.
        items: number of items.
        fewest: number of items that a block should have at least.
        threads: number of threads.
    """
    threads = min(threads, items // fewest)
    if threads <= 1:
        work(0, items)
        return
    size = -(-items // threads)
    starts = range(0, items, size)
    while len(_helpers) < threads - 1:
        _helpers.append(threading.Thread(target=_help, args=(_jobs,), name="selectenv-helper", daemon=True))
        _helpers[-1].start()
    results: SimpleQueue[BaseException | None] = SimpleQueue()
    for first in starts[:-1]:
        _jobs.put((work, first, first + size, results))
    try:
        work(starts[-1], items)
    finally:
        failures = [results.get() for _ in starts[:-1]]
    for failure in failures:
        if failure is not None:
            raise failure


def _help(jobs: "SimpleQueue[Job]") -> None:
    """Do jobs for `in_blocks`, one after the other."""
    while True:
        work, first, last, results = jobs.get()
        try:
            work(first, last)
        except BaseException as failure:
            results.put(failure)
        else:
            results.put(None)
        del work, results


def _forget_threads() -> None:
    """Drop what a forked child inherits of the pools: the objects, but not the threads."""
    global _jobs  # noqa: PLW0603 - jobs that were waiting belong to the parent
    _pools.clear()
    _helpers.clear()
    _jobs = SimpleQueue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
