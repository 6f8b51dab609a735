"""Figures of what strategies earn and which states they label."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from selectenv.errors import MissingExtraError
from selectenv.problem import SelectionProblem
from selectenv.rendering.selection import draw, key
from selectenv.typing import IntArray

COLUMNS = 3
"""Panels per row: three fit the width of a laptop."""


def new_figure(width: float, height: float) -> Any:
    """Return a Matplotlib figure of its own, without global state.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("figures need Matplotlib: pip install 'selectenv[plot]'") from None

    figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure, creating its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def performance_figure(
    curves: Mapping[str, Sequence[tuple[int, float, float]]], dashed: set[str], reference: str, title: str, path: Path
) -> None:
    """Draw return against budget, one curve per strategy, labelled at its right end.

    Args:
        curves: Name -> (labels, mean return, standard error) per budget.
        dashed: Names of the curves to draw dashed: those that ask the evaluator.
        reference: Name of the curve to draw in grey.
        title: Shown above.
        path: File to write.
    """
    figure = new_figure(9, 5.2)
    axes = figure.add_subplot()
    styles: dict[str, Any] = {}
    for name, points in curves.items():
        budgets, means, errors = zip(*points, strict=True)
        colour = f"C{len(styles.keys() - {reference})}"
        styles[name] = {"color": "#808080", "lw": 5, "alpha": 0.5} if name == reference else {"color": colour}
        axes.errorbar(budgets, means, errors, ls="--" if name in dashed else "-", marker="o", ms=4, **styles[name])
    axes.set(
        xlabel="labels (dashed: asks the evaluator; bars: standard errors)",
        ylabel="return of the learned policy",
        title=title,
    )
    axes.set_xticks(sorted({budget for points in curves.values() for budget, *_ in points}))
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    low, high = axes.get_ylim()
    ends = sorted(curves, key=lambda name: (curves[name][-1][1], name == reference))
    heights = _spread([curves[name][-1][1] for name in ends], (high - low) / 22)
    right = max(points[-1][0] for points in curves.values())
    reach = max(right - min(points[0][0] for points in curves.values()), 1) / 16
    for name, height in zip(ends, heights, strict=True):
        budget, mean, _ = curves[name][-1]
        colour = styles[name]["color"]
        axes.plot([budget, right + 0.8 * reach], [mean, height], color=colour, lw=0.6, alpha=0.6)
        axes.text(right + reach, height, name, color=colour, va="center", fontsize=10)
    axes.set_ylim(min(low, heights[0] - (high - low) / 40), max(high, heights[-1] + (high - low) / 40))
    save(figure, path)


def _spread(values: Sequence[float], distance: float) -> list[float]:
    """Return ascending values moved apart as little as possible, so that neighbours keep a distance.

    Values that would overlap form a block around their mean, as in isotonic regression.
    """
    blocks: list[tuple[float, int]] = []
    for i, value in enumerate(values):
        mean, size = value - i * distance, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    level = [mean for mean, size in blocks for _ in range(size)]
    return [value + i * distance for i, value in enumerate(level)]


def selections_figure(
    problem: SelectionProblem,
    selections: Mapping[str, IntArray],
    path: Path,
    title: str = "",
    unordered: Collection[str] = (),
) -> None:
    """Draw one panel per selection.

    Args:
        problem: The selection problem.
        selections: Panel title -> when each state was labelled, 0 for never, shape [n_states].
        path: File to write.
        title: Shown above all panels.
        unordered: Panel titles of sets without an order, which are drawn without numbers.
    """
    if selections:
        save(selection_panels(problem, selections, title, unordered), path)


def selection_panels(
    problem: SelectionProblem, selections: Mapping[str, IntArray], title: str = "", unordered: Collection[str] = ()
) -> Any:
    """Return a figure with one panel per selection; see `selections_figure`."""
    columns = min(COLUMNS, len(selections))
    rows = -(-len(selections) // columns)
    figure = new_figure(4.2 * columns, 2.3 * rows + 0.8)
    for i, (name, labelled_at) in enumerate(selections.items()):
        draw(figure.add_subplot(rows, columns, i + 1), problem, labelled_at, name, numbered=name not in unordered)
    if title:
        figure.suptitle(title, fontsize=12)
    figure.supxlabel(key(problem), fontsize=9)
    return figure
