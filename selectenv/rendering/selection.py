"""Drawings of a selection: the order of the labels on the world's layout, with the learned policy and values."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from selectenv.datasets.naming import unit
from selectenv.domains.layout import Layout
from selectenv.errors import MissingExtraError
from selectenv.learners.base import FitResult
from selectenv.problem import SelectionProblem
from selectenv.rendering import frames
from selectenv.typing import ByteArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, DPI = 6.4, 100
MARK_LETTERS = {"goal": "G", "trap": "x", "wall": "#"}
MARK_NAMES = {"goal": "green G: goal", "trap": "purple x: penalty", "wall": "dark grey: wall"}
MARK_COLOURS = {"goal": "#2e8b57", "trap": "#6c3483", "wall": "#4a4a4a"}
ARROW_LETTERS = {(0, -1): "^", (0, 1): "v", (-1, 0): "<", (1, 0): ">"}
LABEL_COLOUR = "#f2a900"


def text(problem: SelectionProblem, labelled_at: IntArray, budget: int) -> str:
    """Return the selection as plain text: grids as a map, other worlds row by row of their layout.

    A number gives the order in which a state was labelled, an arrow (or "a" and a number) the action of the learned
    policy in an unlabelled state; "?" marks a state where all actions are equally likely, "-" a state that is not in
    the data. The learned values follow, in tenths of the largest magnitude. Where states are images, the first labelled
    ones are shown instead.
    """
    if problem.dataset.images is not None:
        return frames.text(problem, labelled_at, budget)
    layout = problem.layout
    learned = _learned(problem, labelled_at)
    cells = {}
    for s, (x, y) in enumerate(layout.positions):
        if labelled_at[s]:
            cells[x, y] = str(labelled_at[s])
        elif not problem.dataset.labelable[s]:
            cells[x, y] = "-"
        else:
            cells[x, y] = _action_letter(layout, learned.table[s])
    marks = {(x, y): MARK_LETTERS[kind] for x, y, kind in layout.marks}
    largest = float(np.abs(learned.values).max())
    tenths = {
        (x, y): str(round(10 * value / largest) if largest else 0)
        for (x, y), value in zip(layout.positions, learned.values, strict=True)
    }
    spent = int((labelled_at > 0).sum())
    ids = ", ".join(str(problem.states[s]) for s in np.argsort(labelled_at) if labelled_at[s])
    return (
        "\n".join(
            [
                f"{spent_text(spent, unit(problem.dataset))}, budget {budget}: {ids or 'none'}",
                *_map({**cells, **marks}),
                f"learned values in tenths of {largest:.4g}",
                *_map({**tenths, **marks}),
            ]
        )
        + "\n"
    )


def spent_text(labels: int, unit: str) -> str:
    """Return how many states, groups or episodes are labelled, for example "1 state labelled"."""
    return f"{labels} {unit}{'' if labels == 1 else 's'} labelled"


def _map(cells: dict[tuple[float, float], str]) -> list[str]:
    """Return the lines of a text map with each cell at its position."""
    width = max(len(cell) for cell in cells.values())
    columns, rows = sorted({x for x, _ in cells}), sorted({y for _, y in cells})
    return [" ".join(cells.get((x, y), "").rjust(width) for x in columns).rstrip() for y in rows]


def pixels(problem: SelectionProblem, labelled_at: IntArray, budget: int) -> ByteArray:
    """Return the selection as an RGB image [height, width, 3]."""
    agg = _matplotlib("backends.backend_agg")
    figure = draw_figure(problem, labelled_at, budget)
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[:, :, :3])


def draw_figure(problem: SelectionProblem, labelled_at: IntArray, budget: int) -> "Figure":
    """Return the selection as a new Matplotlib figure."""
    spans = (
        np.array([8.0, 4.0]) if problem.dataset.images is not None else np.ptp(_extent(problem.layout), axis=0) + 1.2
    )
    height = float(np.clip(WIDTH * spans[1] / spans[0], 2.0, WIDTH)) + 0.5
    figure: Figure = _matplotlib("figure").Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    spent = int((labelled_at > 0).sum())
    draw(
        figure.add_subplot(), problem, labelled_at, title=f"{spent_text(spent, unit(problem.dataset))}, budget {budget}"
    )
    return figure


def key(problem: SelectionProblem) -> str:
    """Return what the colours, lines and signs of `draw` mean in this problem, in one or two lines."""
    if problem.dataset.images is not None:
        return "the first labelled states, row by row"
    layout = problem.layout
    values = "orange frames: labelled, numbered in order; blue: positive learned value, yellow: 0, red: negative"
    parts = [MARK_NAMES[kind] for kind in dict.fromkeys(kind for _, _, kind in layout.marks)]
    if layout.axes:
        words = [f"{way}: {name}" for way, name in zip(("to the right", "upwards"), layout.axes, strict=False)]
        parts.append(f"groups by their centres, {', '.join(words)}")
    if not problem.dataset.labelable.all():
        parts.append("light grey: not in the data")
    if layout.arrows:
        parts.insert(0, "arrows: learned policy; no arrow: labelled, or all actions are equally good")
    elif layout.edges is not None:
        parts.insert(0, "thick black edges: learned policy; grey edges: ties, thin ones: actions not taken")
    return "\n".join(filter(None, [values, "; ".join(parts)]))


def draw(
    axes: "Axes", problem: SelectionProblem, labelled_at: IntArray, title: str = "", *, numbered: bool = True
) -> None:
    """Draw the selection into ``axes``; `key` says what is drawn.

    Where states are images, the first labelled ones are drawn instead, row by row.

    Args:
        axes: the Matplotlib axes to draw into.
        problem: the selection problem.
        labelled_at: when each state was labelled, 0 for never; shape [n_states].
        title: shown above.
        numbered: whether to write the order into labelled states; False for a set without an order.
    """
    if problem.dataset.images is not None:
        axes.imshow(frames.mosaic(problem, frames.first_labelled(labelled_at, frames.SHOWN)), interpolation="nearest")
        axes.axis("off")
        axes.set_title(title, fontsize=9)
        return
    layout, learned = problem.layout, _learned(problem, labelled_at)
    colormap = _matplotlib("colormaps")["RdYlBu"]
    largest = float(np.abs(learned.values).max()) or 1.0
    size = 0.46 if layout.kind == "grid" else 0.34
    if layout.edges is not None:
        _draw_edges(axes, layout, learned.table)
    patches = _matplotlib("patches")
    for s, (x, y) in enumerate(layout.positions):
        seen = bool(problem.dataset.labelable[s])
        face = colormap(0.5 + 0.45 * learned.values[s] / largest) if seen else "#d9d9d9"
        edge = (
            {"edgecolor": LABEL_COLOUR, "linewidth": 3}
            if labelled_at[s]
            else {"edgecolor": "#808080", "linewidth": 0.6}
        )
        shape = (
            patches.Rectangle((x - size, y - size), 2 * size, 2 * size, facecolor=face, **edge)
            if layout.kind == "grid"
            else patches.Circle((x, y), size, facecolor=face, zorder=2, **edge)
        )
        axes.add_patch(shape)
        if labelled_at[s] and numbered:
            ink = "white" if abs(learned.values[s]) > 0.6 * largest else "black"
            axes.text(
                x, y, str(labelled_at[s]), ha="center", va="center", fontsize=8, fontweight="bold", color=ink, zorder=3
            )
        elif layout.arrows and not labelled_at[s]:
            _draw_arrows(axes, layout, (x, y), learned.table[s])
    for x, y, kind in layout.marks:
        axes.add_patch(patches.Rectangle((x - size, y - size), 2 * size, 2 * size, facecolor=MARK_COLOURS[kind]))
        axes.text(
            x, y, MARK_LETTERS[kind] if kind != "wall" else "", ha="center", va="center", color="white", fontsize=9
        )
    low, high = _extent(layout).min(axis=0) - 0.6, _extent(layout).max(axis=0) + 0.6
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]), aspect="equal")
    axes.axis("off")
    axes.set_title(title, fontsize=9)


def _draw_edges(axes: "Axes", layout: Layout, policy: FloatArray) -> None:
    """Draw every edge, thicker for more likely actions of the policy."""
    for state, action, following in layout.edges if layout.edges is not None else ():
        (x0, y0), (x1, y1) = layout.positions[state], layout.positions[following]
        share = policy[state, action]
        axes.plot([x0, x1], [y0, y1], color="#303030", alpha=0.15 + 0.75 * share, linewidth=0.5 + 2 * share, zorder=1)


def _draw_arrows(axes: "Axes", layout: Layout, at: tuple[float, float], shares: FloatArray) -> None:
    """Draw the policy's actions in a cell; nothing where all actions are equally likely."""
    if shares.min() > 0 and math.isclose(shares.min(), shares.max()):
        return
    for (dx, dy), share in zip(layout.arrows, shares, strict=True):
        if share > 0:
            axes.arrow(
                at[0],
                at[1],
                0.24 * dx,
                0.24 * dy,
                width=0.015,
                head_width=0.14,
                color="#303030",
                alpha=0.3 + 0.7 * share,
            )


def _learned(problem: SelectionProblem, labelled_at: IntArray) -> FitResult:
    return problem.learn((labelled_at > 0) & problem.dataset.revealable)


def _action_letter(layout: Layout, shares: FloatArray) -> str:
    best = np.flatnonzero(shares >= shares.max() - 1e-12)
    if len(best) == len(shares):
        return "?"
    action = int(best[0])
    return ARROW_LETTERS[layout.arrows[action]] if layout.arrows else f"a{action}"


def _extent(layout: Layout) -> FloatArray:
    marks = np.array([(x, y) for x, y, _ in layout.marks]).reshape(-1, 2)
    return np.concatenate([layout.positions, marks])


def _matplotlib(part: str) -> Any:
    """Return a module or attribute of Matplotlib.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    try:
        import importlib

        if part == "colormaps":
            return importlib.import_module("matplotlib").colormaps
        return importlib.import_module(f"matplotlib.{part}")
    except ModuleNotFoundError:
        raise MissingExtraError("drawing needs Matplotlib: pip install 'selectenv[plot]'") from None
