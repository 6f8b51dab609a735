"""The place of a state in the drawing of its world, as shapes that a template draws as SVG."""

from dataclasses import dataclass
from functools import lru_cache

from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.layout import Layout
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import SelectEnvError
from selectenv.references import is_reference
from selectenv.worlds import find_world

CELL = 0.46
"""Half the width of a cell of a grid, whose centre is at the position of the state."""
NODE = 0.3
"""Radius of the node of a state."""
MARGIN = 0.6
"""Space around the positions."""
MOST_PLACES = 2_000
"""Worlds with more states are not drawn: no place would be visible."""


@dataclass(frozen=True)
class Shape:
    """A square or a circle."""

    x: float
    y: float
    size: float
    """Half the width of a square, or the radius of a circle."""
    round: bool
    role: str
    """"here", "next", "state", "goal", "trap" or "wall"."""


@dataclass(frozen=True)
class Drawing:
    """Shapes and lines in a coordinate system whose y axis points down."""

    title: str
    """Text alternative of the drawing."""
    box: tuple[float, float, float, float]
    """Left, top, width and height."""
    shapes: list[Shape]
    lines: list[tuple[float, float, float, float]]


def drawing_of(dataset: OfflineDataset, number: int, following: set[int]) -> Drawing | None:
    """Return the place of a state in its world, None if the world of the data is not known.

    Args:
        dataset: the data.
        number: number of the state.
        following: numbers of the states that the data entered next.
    """
    name, fingerprint = dataset.spec.get("world"), dataset.spec.get("world_fingerprint")
    layout = _layout(name, fingerprint) if isinstance(name, str) and isinstance(fingerprint, str) else None
    if layout is None or len(layout.positions) != dataset.n_states:
        return None
    grid = layout.kind == "grid"
    shapes = [Shape(x, y, CELL, False, kind) for x, y, kind in layout.marks]
    for state, (x, y) in enumerate(layout.positions.tolist()):
        role = "here" if state == number else "next" if state in following else "state"
        shapes.append(Shape(x, y, CELL if grid else NODE, not grid, role))
    edges = [] if layout.edges is None else layout.edges[:, [0, 2]].tolist()
    lines = sorted({(*layout.positions[a].tolist(), *layout.positions[b].tolist()) for a, b in edges})
    left, top = min(shape.x for shape in shapes) - MARGIN, min(shape.y for shape in shapes) - MARGIN
    right, bottom = max(shape.x for shape in shapes) + MARGIN, max(shape.y for shape in shapes) + MARGIN
    title = f"Place of the state in {name}; the states that were entered next are marked"
    return Drawing(title, (left, top, right - left, bottom - top), shapes, lines)


@lru_cache(maxsize=4)
def _layout(name: str, fingerprint: str) -> Layout | None:
    """Return the layout of a registered world if it is the one that the data come from."""
    if is_reference(name):  # a session file must not decide which modules are imported
        return None
    try:
        world = find_world(name, {})
    except SelectEnvError:  # registered only in another installation
        return None
    if not isinstance(world, TabularWorld) or world.fingerprint != fingerprint or len(world.ids) > MOST_PLACES:
        return None
    return world.layout
