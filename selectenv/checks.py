"""Checks of arguments: names, numbers, arrays, paths, functions.

Error messages state what was wrong, what is allowed, and what was probably meant.
"""

import difflib
import inspect
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from selectenv.errors import FileError, LabelError, OptionError, OptionTypeError, SelectEnvError, UnknownNameError
from selectenv.typing import FloatArray, IntArray

T = TypeVar("T")
LARGEST_REWARD = 1e100
"""Largest magnitude of a reward. Returns and values stay below it times the horizon, or divided by 1 - gamma, so that
neither they nor their squares, which statistics need, come near the largest float, about 1e308."""
LARGEST_INT = 2**63 - 1
"""Largest integer that fits into an array."""
LONGEST_PATH = 4096
SHOWN = 100
"""Maximum length of a value in an error message."""


def shown(value: object) -> str:
    """Return a value as an error message shows it: short, in one line, and without failing."""
    try:
        text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    except Exception:  # a broken __repr__, or an int with more digits than Python prints
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def did_you_mean(name: object, allowed: Iterable[str]) -> str:
    """Return a sentence that lists the allowed names, and the one closest to ``name`` if there is one."""
    options = [str(option) for option in allowed]
    by_lower = {option.lower(): option for option in options}
    text = (name if isinstance(name, str) else shown(name)).lower()[:SHOWN]
    close = difflib.get_close_matches(text, by_lower, n=1, cutoff=0.5)
    hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
    return f"allowed: {', '.join(options)}.{hint}"


def check_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Return ``name`` if it is allowed.

    Raises:
        UnknownNameError: it is not; the message lists what is and the closest match.
    """
    options = list(allowed)
    if not isinstance(name, str) or name not in options:
        raise UnknownNameError(f"unknown {kind} {shown(name)}; {did_you_mean(name, options)}")
    return name


def is_int(value: object) -> bool:
    """Return whether ``value`` is an integer of Python or NumPy, but not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def is_real(value: object) -> bool:
    """Return whether ``value`` is a finite number, but not a bool."""
    if not is_int(value) and not isinstance(value, float | np.floating):
        return False
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:  # an int beyond the largest float
        return False


def check_int(
    name: str, value: Any, low: int = 1, high: int | None = None, error: type[SelectEnvError] = OptionError
) -> int:
    """Return ``value`` as an int between ``low`` and ``high``, which is `LARGEST_INT` by default.

    Raises:
        SelectEnvError: of type ``error`` if it is not an integer, or out of range.
    """
    if not is_int(value) or not low <= value <= (LARGEST_INT if high is None else high):
        allowed = f"{low} or more" if high is None else f"from {low} to {high}"
        if high is None and is_int(value) and value > LARGEST_INT:
            allowed = f"from {low} to 2**63 - 1"
        raise error(f"{name} must be a whole number, {allowed}, not {shown(value)}")
    return int(value)


def check_real(name: str, value: Any, interval: str, error: type[SelectEnvError] = OptionError) -> float:
    """Return ``value`` as a float within an interval written as in mathematics, such as "(0, 1]" or "[0, inf)".

    Raises:
        SelectEnvError: of type ``error`` if it is not a finite number, or out of range.
    """
    low, high = (float(end) for end in interval[1:-1].split(","))
    inside = is_real(value) and low <= value <= high
    if not inside or (value == low and interval[0] == "(") or (value == high and interval[-1] == ")"):
        raise error(f"{name} must be a number in {interval}, not {shown(value)}")
    return float(value)


def check_flag(name: str, value: Any, error: type[SelectEnvError] = OptionError) -> bool:
    """Return ``value`` as a bool.

    Raises:
        SelectEnvError: of type ``error`` if it is neither True nor False.
    """
    if not isinstance(value, bool | np.bool_):
        raise error(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def check_instance(name: str, value: Any, kind: type[T]) -> T:
    """Return ``value`` if it is an instance of ``kind``.

    Raises:
        OptionTypeError: it is something else.
    """
    if not isinstance(value, kind):
        raise OptionTypeError(f"{name} must be of type {kind.__name__}, not {type(value).__name__}: {shown(value)}")
    return value


def check_path(name: str, path: Any) -> Path:
    """Return a path.

    Raises:
        OptionTypeError: it is neither a string nor an `os.PathLike` of one.
        OptionError: no file can have this name.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise OptionTypeError(f"{name} must be a path, a string or a pathlib.Path, not {shown(path)}")
    if not text or "\0" in text or len(text) > LONGEST_PATH:
        raise OptionError(f"{name} must be the name of a file or directory, not {shown(text)}")
    return Path(text)


def check_parent(path: Path) -> Path:
    """Return the path of a file to write if its directory exists.

    Raises:
        FileError: there is no such directory.
    """
    if not os.path.isdir(path.parent):
        raise FileError(f"{os.fspath(path)!r} cannot be written: there is no directory {os.fspath(path.parent)!r}")
    return path


def check_callable(name: str, function: Any, *arguments: str) -> Callable[..., Any]:
    """Return ``function`` if it can be called with these positional arguments.

    Args:
        name: what the function is, for error messages.
        function: the function.
        *arguments: names of the arguments that it will get, for error messages.

    Raises:
        OptionTypeError: it is not a function, or does not take these arguments.
    """
    if not callable(function) or isinstance(function, type) or inspect.isbuiltin(function):
        raise OptionTypeError(f"{name} must be a function of ({', '.join(arguments)}), not {shown(function)}")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as reason:
        raise OptionTypeError(
            f"{name} must take the arguments ({', '.join(arguments)}); {shown(function)} does not: {reason}"
        ) from None
    except ValueError:  # some built-in functions have no signature
        pass
    return function  # type: ignore[no-any-return]


def as_array(name: str, values: Any, error: type[SelectEnvError] = LabelError) -> NDArray[Any]:
    """Return ``values`` as an array.

    Raises:
        SelectEnvError: of type ``error`` if they do not form one.
    """
    if type(values) is np.ndarray:
        return values
    try:
        return np.asarray(values if hasattr(values, "__getitem__") else list(values))
    except Exception as reason:  # array-like objects may raise anything
        raise error(f"{name} must be an array or a list of equal entries, not {shown(values)} ({reason})") from None


def as_ints(name: str, values: Any, error: type[SelectEnvError] = LabelError) -> IntArray:
    """Return ``values`` as 64-bit integers.

    Raises:
        SelectEnvError: of type ``error`` if they are not integers, or too large.
    """
    found = as_array(name, values, error)
    if found.dtype.kind not in "iu" and found.size:
        raise error(f"{name} must be integers, not {_described(found)}")
    if found.dtype.kind == "u" and found.size and int(found.max()) > LARGEST_INT:
        raise error(f"{name} must be integers up to 2**63 - 1, not {found.max()}")
    return found.astype(np.int64, copy=False)


def as_reals(name: str, values: Any, error: type[SelectEnvError] = LabelError) -> FloatArray:
    """Return ``values`` as floats, which may be infinite or NaN.

    Raises:
        SelectEnvError: of type ``error`` if they are not real numbers.
    """
    found = as_array(name, values, error)
    if found.dtype.kind not in "fiub":
        raise error(f"{name} must be real numbers, not {_described(found)}")
    with np.errstate(over="ignore"):
        return found.astype(np.float64, copy=False)


def _described(array: NDArray[Any]) -> str:
    """Return the type and shape of an array; entries of Python's own types are shown."""
    return shown(array.tolist()) if array.dtype.kind == "O" else f"{array.dtype} of shape {array.shape}"
