"""A progress bar for long searches, on the terminal only."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
WIDTH = 30


def show(text: str) -> None:
    """Say something about the work, apart from its results."""
    print(text, file=sys.stderr)


def progress(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """Yield ``items`` and, on a terminal, show how far the work is and how long it will take."""
    began = time.monotonic()
    shown = began
    for done, item in enumerate(items):
        now = time.monotonic()
        if sys.stderr.isatty() and now - shown > 0.2:
            shown = now
            left = (now - began) / max(done, 1) * (total - done)
            bar = ("#" * (WIDTH * done // total)).ljust(WIDTH, ".")
            print(f"\r{title} [{bar}] {100 * done // total} %, {seconds(left)} left ", end="", file=sys.stderr)
        yield item
    if shown != began:
        print(f"\r{title} done in {seconds(time.monotonic() - began)}".ljust(WIDTH + 60), file=sys.stderr)


def seconds(value: float) -> str:
    """Return a duration as people say it."""
    if value < 1:
        return "less than a second"
    for unit, size in (("years", 3.156e7), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if value >= 2 * size:
            return f"about {value / size:,.0f} {unit}"
    return f"about {value:.0f} seconds"
