"""How runs stop: on SIGTERM, and on a cluster when the client that requested the results is gone."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from experiments.errors import TerminatedError


@contextmanager
def orderly_termination() -> Iterator[None]:
    """Turn SIGTERM into `TerminatedError`, so that finished cells are stored before the process ends.

    Only in the main thread, and only if SIGTERM has its default handler.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the storing
        raise TerminatedError("terminated")

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def is_abandoned() -> bool:
    """Return whether this code runs in a Dask task whose result is no longer needed.

    When a client is gone, the scheduler releases its tasks: those that wait are never started, and those that run are
    marked as cancelled on their workers.
    """
    if "distributed" not in sys.modules:
        return False
    from distributed import get_worker

    try:
        worker = get_worker()
        task = worker.state.tasks.get(worker.get_current_task())
    except (ValueError, KeyError, AttributeError):  # not in a task
        return False
    return task is None or task.state == "cancelled"
