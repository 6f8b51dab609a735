"""Pictures of what strategies earn and what they label."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from selectenv.problem import SelectionProblem
from selectenv.rendering.selection import draw
from selectenv.typing import IntArray

COLUMNS = 5


def new_figure(width: float, height: float) -> Any:
    """Return a Matplotlib figure of its own, without global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def performance_figure(
    curves: Mapping[str, Sequence[tuple[int, float, float]]], dashed: set[str], title: str, path: Path
) -> None:
    """Draw performance against budget, a line with error bars a strategy; those in ``dashed`` ask the evaluator."""
    figure = new_figure(9, 5.5)
    axes = figure.add_subplot()
    for i, (name, points) in enumerate(curves.items()):
        budgets, means, errors = zip(*points, strict=True)
        look = {"marker": "os^vDPX"[i // 10], "markersize": 5, "color": f"C{i % 10}"}
        axes.errorbar(budgets, means, errors, label=name, ls="--" if name in dashed else "-", **look)
    axes.set(xlabel="labels", ylabel="return of the learned policy", title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), title="dashed: asks the evaluator")
    save(figure, path)


def selections_figure(problem: SelectionProblem, selections: Mapping[str, IntArray], path: Path) -> None:
    """Draw what each strategy labelled (when each state was labelled, 0 for never), side by side."""
    if not selections:
        return
    columns = min(COLUMNS, len(selections))
    rows = -(-len(selections) // columns)
    figure = new_figure(4.2 * columns, 2.4 * rows)
    for i, (title, labelled_at) in enumerate(selections.items()):
        draw(figure.add_subplot(rows, columns, i + 1), problem, labelled_at, title)
    save(figure, path)
