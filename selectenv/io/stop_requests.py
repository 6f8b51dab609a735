"""Requests to stop long work at its next checkpoint, made by the code that runs it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from selectenv.errors import StoppedError

_requested: ContextVar[Callable[[], bool] | None] = ContextVar("stop_requested", default=None)


@contextmanager
def stop_when(requested: Callable[[], bool]) -> Iterator[None]:
    """Within this context, work stops at the first checkpoint at which ``requested()`` is true."""
    token = _requested.set(requested)
    try:
        yield
    finally:
        _requested.reset(token)


def stop_if_requested() -> None:
    """Raise `StoppedError` if a stop was requested; to be called after every checkpoint."""
    requested = _requested.get()
    if requested is not None and requested():
        raise StoppedError("the results of this work are no longer needed; it stopped after its last checkpoint")
