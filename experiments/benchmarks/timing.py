"""Timing and memory of the benchmarks."""

import math
import sys
import time
from collections.abc import Callable


def best_of(times: int, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of the fastest of several calls; `time.process_time` as the clock measures CPU time."""
    found = []
    for _ in range(times):
        began = clock()
        work()
        found.append(clock() - began)
    return min(found)


def peak_memory() -> float:
    """Return the peak resident memory of this process in MiB; NaN on systems that do not report it (Windows)."""
    try:
        import resource
    except ModuleNotFoundError:
        return math.nan
    per_mebibyte = 2**20 if sys.platform == "darwin" else 2**10  # macOS reports bytes, Linux KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mebibyte
