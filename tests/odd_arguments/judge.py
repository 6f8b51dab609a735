"""The rule that every call is held to: it works, or it raises one of our errors that is also a built-in exception."""

import contextlib
import io
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym
import numpy as np

from selectenv.errors import SelectEnvError, SelectEnvWarning

HANGS_AFTER = 60
"""Seconds after which a call counts as one that never ends."""
LONGEST_MESSAGE = 3000
ROOT = f"{Path(__file__).parents[2]}/"
MEMORY = 4 << 30
"""Bytes of address space that a call may add: enough to compile, too little for what huge numbers ask for."""


@dataclass(frozen=True)
class Call:
    """A function and arguments with which it works."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Callable[[], Any]]
    """Argument -> function that makes a valid value; every one of them is replaced by odd values."""
    gymnasium: bool = False
    """Whether Gymnasium's own errors and warnings may come out of it."""
    fixed: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """Further arguments, which always stay valid: the object whose method is called."""

    def __str__(self) -> str:
        return self.name


class EndlessError(BaseException):
    """A call did not return in time; not an Exception, so that no handler of the library can catch it."""


def defect(call: Call, odd: dict[str, Callable[[], Any]]) -> str | None:
    """Return what is wrong with a call in which ``odd`` values replace valid arguments; None if nothing is."""
    arguments = {name: make() for name, make in (call.fixed | call.arguments | odd).items()}
    with warnings.catch_warnings(record=True) as caught, _silence(), _alarm(), _little_memory():
        warnings.simplefilter("always")
        try:
            found = _error(call, arguments)
        except EndlessError as error:
            found = f"never ends: {_place(error)}"
    if found is None:
        strange = [one for one in caught if not _is_ours(one, call)]
        found = f"warns {strange[0].category.__name__}: {strange[0].message}" if strange else None
    return found


def _error(call: Call, arguments: dict[str, Any]) -> str | None:
    try:
        result = call.function(**arguments)
    except SelectEnvError as error:
        kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
        if set(kinds) == {Exception, BaseException, object}:
            return f"{type(error).__name__} is of no built-in kind"
        text = str(error)
        return f"the message has {len(text)} characters" if not 0 < len(text) <= LONGEST_MESSAGE else None
    except gym.error.Error as error:
        return None if call.gymnasium else f"{type(error).__name__}: {_text(error)} {_place(error)}"
    except Exception as error:
        if call.gymnasium and not _own_frames(error):
            return None
        return f"{type(error).__name__}: {_text(error)} {_place(error)}"
    is_nan = isinstance(result, float | np.floating) and np.isnan(result)
    return "returns NaN" if is_nan else None


def _text(error: BaseException) -> str:
    try:
        return f"{error!s:.200}"
    except Exception:
        return "a message that cannot be shown"


def _own_frames(error: BaseException) -> list[str]:
    """Return the lines of our code that an error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(ROOT)]
    inside = [(frame.filename.removeprefix(ROOT), frame.lineno) for frame in frames]
    return [f"{name}:{line}" for name, line in inside if not name.startswith("tests/") and "site-packages" not in name]


def _place(error: BaseException) -> str:
    return f"({(_own_frames(error) or ['outside'])[-1]})"


def _is_ours(one: warnings.WarningMessage, call: Call) -> bool:
    by_gymnasium = "gymnasium" in one.filename or "WARN: " in str(one.message)  # its logger's
    return issubclass(one.category, SelectEnvWarning) or (call.gymnasium and by_gymnasium)


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
