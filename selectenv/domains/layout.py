"""Layouts: where the states of a world are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from selectenv.checks import as_reals, shown
from selectenv.errors import WorldError
from selectenv.typing import FloatArray, IntArray

GRID_ARROWS: dict[str, tuple[tuple[int, int], ...]] = {
    "up-down-left-right": ((0, -1), (0, 1), (-1, 0), (1, 0)),
    "left-down-right-up": ((-1, 0), (0, 1), (1, 0), (0, -1)),
    "up-right-down-left": ((0, -1), (1, 0), (0, 1), (-1, 0)),
}
"""Direction (x, y) of each action of a grid world, y pointing down; one entry per order of the actions."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of states, and the other elements of a drawing."""

    positions: FloatArray
    """[n, 2] x and y of each state; y points down."""
    kind: str
    """"grid" draws cells and arrows, "nodes" draws circles and edges."""
    arrows: tuple[tuple[int, int], ...] = ()
    """Grid only: direction (x, y) of each action."""
    marks: tuple[tuple[float, float, str], ...] = ()
    """x, y and kind ("goal", "trap", "wall") of cells that are not states."""
    edges: IntArray | None = None
    """Nodes only: [m, 3] state, action, next state."""
    axes: tuple[str, ...] = ()
    """What grows from left to right and from bottom to top, if states are placed by that."""

    def __post_init__(self) -> None:
        """Reject positions that cannot be drawn."""
        positions = as_reals("positions", self.positions, WorldError)
        if positions.ndim != 2 or positions.shape[1] != 2 or not np.isfinite(positions).all():
            raise WorldError(f"positions must be finite and of shape (n, 2), not {shown(self.positions)}")


def square_layout(n: int) -> Layout:
    """Return a near-square block of n cells, the default for worlds without a layout."""
    columns = max(1, int(np.ceil(np.sqrt(n))))
    cell = np.arange(n)
    return Layout(np.stack([cell % columns, cell // columns], axis=1).astype(np.float64), "grid")


def similarity_layout(points: FloatArray, names: Sequence[str]) -> Layout:
    """Return a near-square block of cells in which similar points are neighbours.

    Args:
        points: [n, d] one point per cell. With more than two columns, the two principal components place them.
        names: [d] names of the columns.
    """
    axes = tuple(names)
    if points.shape[1] > 2:
        centred = points - points.mean(axis=0)
        loadings = np.linalg.svd(centred, full_matrices=False)[2][:2]
        loadings *= np.sign(loadings[np.arange(len(loadings)), np.abs(loadings).argmax(axis=1)])[:, None]
        points, axes = centred @ loadings.T, ("first principal component", "second principal component")
    rows = max(1, int(np.ceil(np.sqrt(len(points)))))
    order = np.argsort(points[:, 0], kind="stable")
    positions = np.empty((len(points), 2))
    for column, first in enumerate(range(0, len(points), rows)):
        mine = order[first : first + rows]
        mine = mine[np.argsort(-points[mine, -1], kind="stable")]
        positions[mine] = np.stack([np.full(len(mine), column), np.arange(len(mine))], axis=1)
    return Layout(positions, "grid", axes=axes)


def grid_layout(ids: IntArray, columns: int, arrows: str, marks: dict[int, str]) -> Layout:
    """Return the layout of a full grid whose cells are numbered row by row.

    Args:
        ids: the cells that are states.
        columns: number of cells per row.
        arrows: a key of `GRID_ARROWS`.
        marks: kind ("goal", "trap", "wall") of the cells that are not states.
    """
    positions = np.stack([ids % columns, ids // columns], axis=1).astype(np.float64)
    drawn = tuple((float(cell % columns), float(cell // columns), kind) for cell, kind in marks.items())
    return Layout(positions, "grid", GRID_ARROWS[arrows], drawn)
