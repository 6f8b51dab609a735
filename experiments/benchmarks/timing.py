"""How long something takes."""

import time
from collections.abc import Callable


def best_of(times: int, work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several runs."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)
