"""Progress bars on the terminal, and durations in words."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from tqdm import tqdm

T = TypeVar("T")


def show(text: str) -> None:
    """Print a line about the work to stderr, apart from its results."""
    tqdm.write(text, file=sys.stderr)


@contextmanager
def progress_bar(total: int, title: str) -> Iterator["tqdm[NoReturn]"]:
    """Yield a bar on stderr that the caller updates; nothing is shown if stderr is not a terminal."""
    with tqdm(total=total, desc=title, file=sys.stderr, disable=None, dynamic_ncols=True, miniters=1) as bar:
        yield bar


def progress(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """Yield ``items`` and, on a terminal, show how far the work is and how long it will take."""
    with progress_bar(total, title) as bar:
        for item in items:
            yield item
            bar.update()


def seconds(value: float) -> str:
    """Return a duration in words, such as "about 3 minutes"."""
    if value < 1:
        return "less than a second"
    for unit, size in (("years", 3.156e7), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if value >= 2 * size:
            return f"about {value / size:,.0f} {unit}"
    return f"about {value:.0f} seconds"
