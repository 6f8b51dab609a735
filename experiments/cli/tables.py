"""Plain-text tables for the terminal."""

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

WIDTH = 100
"""Columns of the terminal that a wrapped table fills."""
NARROWEST, LAST = 12, 20
"""Width below which no column is wrapped, and below which others are wrapped before the last one."""
SPACE = 2
"""Spaces between columns."""


def table(header: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None) -> str:
    """Return a table with aligned columns: numbers to the right, text to the left.

    Args:
        header: One title per column.
        rows: One sequence of cells per line, as long as the header.
        width: Wrap the cells of the last column, and of others where that is not enough, so that no line is longer; by
            default lines are as long as their cells.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if width is not None:
        cells = _wrapped(header, cells, width)
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    right = [all(_is_number(row[i]) for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        aligned = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return (" " * SPACE).join(aligned).rstrip()

    return "\n".join([line(header), (" " * SPACE).join("-" * width for width in widths), *(line(row) for row in cells)])


def _is_number(cell: str) -> bool:
    """Return whether a cell is aligned to the right: it is empty, or starts with a number and is not a list of them."""
    return not cell or (cell[0] in "+-0123456789." and ", " not in f"{cell} ")


def _wrapped(header: Sequence[str], cells: list[list[str]], width: int) -> list[list[str]]:
    """Return the rows with cells wrapped so that they fit; continuation lines leave the other columns empty."""
    widths = _fitted([max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))], width)
    lines: list[list[str]] = []
    for row in cells:
        parts = [textwrap.wrap(cell, room) for cell, room in zip(row, widths, strict=True)]
        lines += map(list, zip_longest(*parts, fillvalue="")) if any(parts) else [row]
    return lines


def _fitted(widths: list[int], width: int) -> list[int]:
    """Return widths of columns that fit: the last one shrinks first, then the widest of the others."""
    room = width - SPACE * (len(widths) - 1)
    *first, last = widths
    last = min(last, max(room - sum(first), LAST))
    while sum(first) + last > room and max(first) > NARROWEST:
        first[first.index(max(first))] -= 1
    return [*first, min(last, max(room - sum(first), NARROWEST))]
