"""Figures with published numbers on the left and ours on the right, at the same scale."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from experiments.analysis.figures import new_figure
from experiments.analysis.headlines import with_verdict
from experiments.analysis.row import Row

PAIRS = 2
"""Pairs of panels per row."""
FULL = 100.0
"""Percentage at which rows without a share of labels are drawn: their strategies label as much as they need."""


class Point(NamedTuple):
    """A mean at a budget."""

    labels: float
    mean: float
    error: float


class Pair(NamedTuple):
    """What two neighbouring panels show: the points of every strategy, published and ours."""

    world: str
    setting: str
    published: dict[str, list[Point]]
    ours: dict[str, list[Point]]


def published_figures(rows: Iterable[Row]) -> dict[str, Any]:
    """Return one figure per metric of the rows with a verdict, by title; what was not run at all is left out."""
    by_metric: dict[str, list[Row]] = {}
    for row in with_verdict(rows):
        if row.published is not None:
            by_metric.setdefault(row.metric, []).append(row)
    drawn = {metric: [pair for pair in pairs(of) if pair.ours] for metric, of in by_metric.items()}
    return {f"Published and ours at the same scale: {metric}": _draw(some) for metric, some in drawn.items() if some}


def pairs(rows: Iterable[Row]) -> list[Pair]:
    """Return the panels of rows with published numbers, one pair per world and setting."""
    found: dict[tuple[str, str], Pair] = {}
    for row in rows:
        pair = found.setdefault((row.world, row.setting), Pair(row.world, row.setting, {}, {}))
        labels = _number(row.labels)
        if row.published is not None:
            theirs = Point(labels, row.published, row.published_error or 0.0)
            pair.published.setdefault(row.strategy, []).append(theirs)
        if row.ours is not None:
            pair.ours.setdefault(row.strategy, []).append(Point(labels, row.ours.mean, row.ours.stderr))
    return list(found.values())


def _number(labels: int | str) -> float:
    """Return a number of labels, or a percentage such as "15 %"."""
    return float(str(labels).rstrip(" %") or FULL)


def _draw(drawn: Sequence[Pair]) -> Any:
    """Return the figure of all pairs; the panels of a pair share both axes.

    If there is only one budget, strategies stand beside each other instead.
    """
    strategies = list(dict.fromkeys(name for pair in drawn for name in pair.published))
    budgets = {point.labels for pair in drawn for points in pair.published.values() for point in points}
    several = len({pair.setting for pair in drawn}) > 1
    rows, columns = -(-len(drawn) // PAIRS), 2 * min(PAIRS, len(drawn))
    figure = new_figure(3.1 * columns, 2.3 * rows + 0.6)
    handles: dict[str, Any] = {}
    for i, pair in enumerate(drawn):
        left = None
        for j, (side, curves) in enumerate((("published", pair.published), ("ours", pair.ours))):
            axes = figure.add_subplot(rows, columns, 2 * i + j + 1, sharex=left, sharey=left)
            left = left or axes
            for name, points in curves.items():
                labels, means, errors = zip(*sorted(points), strict=True)
                at = labels if len(budgets) > 1 else [strategies.index(name)]
                style = {"color": f"C{strategies.index(name) % 10}", "marker": "osD^vP"[strategies.index(name) % 6]}
                handles[name] = axes.errorbar(at, means, errors, ms=3, lw=1, elinewidth=0.7, **style)
            axes.set_title(", ".join(filter(None, (pair.world, pair.setting * several))) + f": {side}", fontsize=8)
            axes.grid(alpha=0.3)
            axes.tick_params(labelsize=7, labelleft=j == 0)
            if len(budgets) == 1:
                axes.set_xticks(range(len(strategies)), strategies)
    if len(budgets) > 1:
        figure.legend(
            [handles[name] for name in strategies],
            strategies,
            loc="outside upper center",
            ncols=min(5, len(strategies)),
            fontsize=8,
            frameon=False,
        )
        figure.supxlabel("labels (in games: percentage of the states); bars: standard errors", fontsize=8)
    return figure
