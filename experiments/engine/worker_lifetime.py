"""Local workers end with the process that started them.

Only modules of the standard library are imported here: a worker imports this module first, and until then it does not
notice that its runner is gone.
"""

import os
import signal
import sys
import threading
import time

POLL_SECONDS = 0.5


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
