"""Plain-text tables for the terminal."""

import textwrap
from collections.abc import Sequence

WIDTH = 100
"""Columns of the terminal that a wrapped table fills."""


def table(header: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None) -> str:
    """Return a table with aligned columns: numbers to the right, text to the left.

    Args:
        header: One title per column.
        rows: One sequence of cells per line, as long as the header.
        width: Wrap the last column so that no line is longer; by default lines are as long as their cells.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if width is not None:
        cells = _wrapped(header, cells, width)
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    right = [all(not row[i] or row[i][0] in "+-0123456789." for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        aligned = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return "  ".join(aligned).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *(line(row) for row in cells)])


def _wrapped(header: Sequence[str], cells: list[list[str]], width: int) -> list[list[str]]:
    """Return the rows with the last column wrapped; continuation lines leave the other columns empty."""
    taken = sum(max(len(row[i]) for row in [list(header), *cells]) + 2 for i in range(len(header) - 1))
    lines = []
    for *first, last in cells:
        parts = textwrap.wrap(last, max(width - taken, 20)) or [""]
        lines.append([*first, parts[0]])
        lines += [[*("" for _ in first), part] for part in parts[1:]]
    return lines
