"""Numbers that people type: in a terminal, in a form, in a table."""

import math

from selectenv.checks import shown
from selectenv.errors import AnswerError


def typed_number(text: str) -> float:
    """Return the number that a text stands for.

    Raises:
        AnswerError: there is none, or it is not finite.
    """
    try:
        number = float(text)
    except ValueError:
        what = f"{shown(text.strip())} is not a number" if text.strip() else "a number is missing"
        raise AnswerError(f"{what}; write it like 0.5 or -3") from None
    if not math.isfinite(number):
        raise AnswerError(f"{shown(text.strip())} is not a finite number")
    return number
