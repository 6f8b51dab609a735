"""Requests to stop long work at its next checkpoint, made by whoever runs the work."""

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
    """Raise `StoppedError` if whoever runs this work no longer wants it; to be called after every checkpoint."""
    requested = _requested.get()
    if requested is not None and requested():
        raise StoppedError("nobody waits for this work any more; it stopped after its last checkpoint")
