"""Use of an object by one thread at a time, in the process that made it, until it is closed."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from selectenv.errors import ClosedError

P = ParamSpec("P")
R = TypeVar("R")


class ExclusiveUse:
    """The lock of a session."""

    def __init__(self) -> None:
        """Begin open, in this process."""
        self.closed = False
        self._lock, self._process = threading.RLock(), os.getpid()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other threads out.

        Raises:
            ClosedError: the session is closed, or was opened before this process was forked: SQLite does not allow both
                processes to use the same connection.
        """
        if self._process != os.getpid():
            raise ClosedError("the session belongs to another process: open it here with LabellingSession.open(path)")
        with self._lock:
            if self.closed:
                raise ClosedError("the session is closed: open it again with LabellingSession.open(path)")
            yield

    def end(self) -> bool:
        """Close; return False if the session was closed before, or belongs to another process."""
        if self._process != os.getpid():
            return False
        with self._lock:
            before, self.closed = self.closed, True
            return not before


class Guarded(Protocol):
    """An object with such a lock."""

    _use: ExclusiveUse


G = TypeVar("G", bound=Guarded)


def one_at_a_time(method: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """Run a method while the lock of its object is held."""

    @wraps(method)
    def call(owner: G, /, *arguments: P.args, **options: P.kwargs) -> R:
        with owner._use.held():
            return method(owner, *arguments, **options)

    return call
