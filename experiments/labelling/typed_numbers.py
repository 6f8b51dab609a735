"""Numbers that people type: in a terminal, in a form, in a table."""

import math
import re

from selectenv.checks import shown
from selectenv.errors import AnswerError

DECIMAL_COMMA = re.compile(r"[-+]?[0-9]*,[0-9]+")
"""A number as it is written in many countries."""


def typed_number(text: str) -> float:
    """Return the number that a text stands for.

    Raises:
        AnswerError: there is none, or it is not finite.
    """
    try:
        number = float(text)
    except ValueError:
        what = f"{shown(text.strip())} is not a number" if text.strip() else "a number is missing"
        point = text.strip().replace(",", ".") if DECIMAL_COMMA.fullmatch(text.strip()) else "0.5 or -3"
        raise AnswerError(f"{what}; write it like {point}") from None
    if not math.isfinite(number):
        raise AnswerError(f"{shown(text.strip())} is not a finite number")
    return number
