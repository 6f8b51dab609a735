"""Checks of names and numbers that users give: what was wrong, what is allowed, what was probably meant."""

import difflib
import math
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from selectenv.errors import LabelError, OptionError, OptionTypeError, SelectEnvError, UnknownNameError

T = TypeVar("T")


def did_you_mean(name: object, allowed: Iterable[str]) -> str:
    """Return what was allowed, and the closest match to ``name`` if there is one."""
    options = [str(option) for option in allowed]
    by_lower = {option.lower(): option for option in options}
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.5)
    hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
    return f"allowed: {', '.join(options)}.{hint}"


def check_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Return ``name`` if it is allowed.

    Raises:
        UnknownNameError: it is not; the message lists what is and the closest match.
    """
    options = list(allowed)
    if not isinstance(name, str) or name not in options:
        raise UnknownNameError(f"unknown {kind} {name!r}; {did_you_mean(name, options)}")
    return name


def is_int(value: object) -> bool:
    """Return whether ``value`` is a whole number, of Python or NumPy, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def is_real(value: object) -> bool:
    """Return whether ``value`` is a number that is neither infinite nor NaN, and no truth value."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_)
    return number and math.isfinite(value)  # type: ignore[arg-type]


def check_int(
    name: str, value: Any, low: int = 1, high: int | None = None, error: type[SelectEnvError] = OptionError
) -> int:
    """Return ``value`` as an int between ``low`` and ``high``.

    Raises:
        SelectEnvError: of the kind ``error``, if it is no whole number or out of range.
    """
    if not is_int(value) or value < low or (high is not None and value > high):
        allowed = f"from {low} to {high}" if high is not None else f"{low} or more"
        raise error(f"{name} must be a whole number, {allowed}, not {value!r}")
    return int(value)


def check_real(name: str, value: Any, interval: str, error: type[SelectEnvError] = OptionError) -> float:
    """Return ``value`` as a float within an interval written as in mathematics, such as "(0, 1]" or "[0, inf)".

    Raises:
        SelectEnvError: of the kind ``error``, if it is no finite number or out of range.
    """
    low, high = (float(end) for end in interval[1:-1].split(","))
    inside = is_real(value) and low <= value <= high
    if not inside or (value == low and interval[0] == "(") or (value == high and interval[-1] == ")"):
        raise error(f"{name} must be a number in {interval}, not {value!r}")
    return float(value)


def as_array(name: str, values: Any, error: type[SelectEnvError] = LabelError) -> NDArray[Any]:
    """Return ``values`` as an array.

    Raises:
        SelectEnvError: of the kind ``error``, if they do not form one.
    """
    try:
        return np.asarray(values if hasattr(values, "__getitem__") else list(values))
    except (TypeError, ValueError) as reason:
        raise error(f"{name} must be an array or a list of equal entries, not {values!r} ({reason})") from None


def check_instance(name: str, value: Any, kind: type[T]) -> T:
    """Return ``value`` if it is a ``kind``.

    Raises:
        OptionTypeError: it is something else.
    """
    if not isinstance(value, kind):
        raise OptionTypeError(f"{name} must be of type {kind.__name__}, not {type(value).__name__}: {value!r:.100}")
    return value
