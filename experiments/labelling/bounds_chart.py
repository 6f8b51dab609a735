"""The bounds of a session as a small chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from selectenv.labelling.session_reports import CurvePoint

WIDTH, HEIGHT, MARGIN = 320.0, 110.0, 8.0


@dataclass(frozen=True)
class BoundsChart:
    """Regret against labels, in the coordinates of an SVG of `WIDTH` by `HEIGHT`."""

    line: str
    """Points of the polyline of the regret."""
    area: str
    """Points of the polygon below it."""
    last: tuple[float, float]
    """Where the regret is now."""
    top: float
    """Regret at the upper edge."""
    now: CurvePoint
    first: CurvePoint
    box: tuple[float, float] = (WIDTH, HEIGHT)


def bounds_chart(curve: Sequence[CurvePoint], budget: int) -> BoundsChart:
    """Return the chart of a curve, with room for the labels that are left of the budget."""
    top = max(point.regret for point in curve) or 1.0
    points = [
        (
            round(MARGIN + (WIDTH - 2 * MARGIN) * point.labels / budget, 1),
            round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * point.regret / top, 1),
        )
        for point in curve
    ]
    line = " ".join(f"{x},{y}" for x, y in points)
    floor = HEIGHT - MARGIN
    area = f"{points[0][0]},{floor} {line} {points[-1][0]},{floor}"
    return BoundsChart(line, area, points[-1], top, curve[-1], curve[0])
