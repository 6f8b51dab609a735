"""Timing and memory of the benchmarks."""

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROCESS_STATUS = Path("/proc/self/status")
"""Where Linux reports the memory of this process."""


def best_of(times: int, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of the fastest of several calls; `time.process_time` as the clock measures CPU time."""
    found = []
    for _ in range(times):
        began = clock()
        work()
        found.append(clock() - began)
    return min(found)


def peak_memory() -> float:
    """Return the peak resident memory of this process in MiB; NaN on systems that do not report it (Windows).

    On Linux it is read from /proc: what `resource` reports there is never less than the peak of the parent process.
    """
    for line in PROCESS_STATUS.read_text().splitlines() if PROCESS_STATUS.exists() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    try:
        import resource
    except ModuleNotFoundError:
        return math.nan
    per_mebibyte = 2**20 if sys.platform == "darwin" else 2**10  # macOS reports bytes, others KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mebibyte
