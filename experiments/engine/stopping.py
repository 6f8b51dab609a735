"""How runs stop: on SIGTERM, and in workers when the process that gave them their work is gone."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from experiments.errors import TerminatedError

POLL_SECONDS = 0.5


@contextmanager
def orderly_termination() -> Iterator[None]:
    """Turn SIGTERM into `TerminatedError`, so that what is done is stored before the process ends.

    Only in the main thread, and only if nobody else handles SIGTERM.
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


def follow_runner(runner: int) -> None:
    """End this local worker as soon as the process ``runner`` that started it is gone, however it ended.

    The worker ignores Ctrl-C, which a terminal sends to all processes at once: the runner stops its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_after, args=(runner,), name="follow-runner", daemon=True).start()


def _exit_after(runner: int) -> None:
    if sys.platform == "win32":  # a process keeps the number of a parent that is gone
        import ctypes

        synchronize, forever = 0x00100000, -1
        handle = ctypes.windll.kernel32.OpenProcess(synchronize, False, runner)
        if handle:
            ctypes.windll.kernel32.WaitForSingleObject(handle, forever)
    else:
        while os.getppid() == runner:
            time.sleep(POLL_SECONDS)
    os._exit(1)


def is_abandoned() -> bool:
    """Return whether this code runs in a Dask task that nobody waits for any more.

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
