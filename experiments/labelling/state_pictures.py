"""Pictures of states as shapes that a template draws as SVG: an image state, or a place in the drawing of its world."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.layout import Layout
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import SelectEnvError
from selectenv.references import is_reference
from selectenv.rendering.frames import colours
from selectenv.worlds import find_world

CELL = 0.46
"""Half the width of a cell of a grid, whose centre is at the position of the state."""
NODE = 0.3
"""Radius of the node of a state."""
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
    """"here", "next", "state", "goal", "trap" or "wall"; empty if the shape has a colour of its own."""
    colour: str = ""


@dataclass(frozen=True)
class Picture:
    """Shapes and lines in a coordinate system whose y axis points down."""

    title: str
    """What is seen, for people who do not see it."""
    box: tuple[float, float, float, float]
    """Left, top, width and height."""
    shapes: list[Shape]
    lines: list[tuple[float, float, float, float]] = field(default_factory=list)


def picture_of(dataset: OfflineDataset, number: int, following: set[int]) -> Picture | None:
    """Return the picture of a state, None if there is nothing to draw.

    Args:
        dataset: the data.
        number: number of the state.
        following: numbers of the states that the data entered next.
    """
    if dataset.images is not None:
        return _image(dataset.images[number])
    world = dataset.spec.get("world")
    layout = _layout(world, str(dataset.spec.get("world_fingerprint"))) if isinstance(world, str) else None
    if layout is None or len(layout.positions) != dataset.n_states:
        return None
    return _place(layout, str(world), number, following)


def _image(image: Any) -> Picture:
    """Return the cells of an image [rows, columns, channels], each in the colour of its first channel."""
    rows, columns = image.shape[:2]
    shapes = [
        Shape(x, y, 0.5, False, "", "#{:02x}{:02x}{:02x}".format(*colour))
        for y, row in enumerate(colours(image).tolist())
        for x, colour in enumerate(row)
    ]
    return Picture(f"Image of {rows} by {columns} cells", (-0.5, -0.5, columns, rows), shapes)


def _place(layout: Layout, world: str, number: int, following: set[int]) -> Picture:
    """Return the drawing of a world in which a state and those entered next are marked."""
    grid = layout.kind == "grid"
    shapes = [Shape(x, y, CELL, False, kind) for x, y, kind in layout.marks]
    for state, (x, y) in enumerate(layout.positions.tolist()):
        role = "here" if state == number else "next" if state in following else "state"
        shapes.append(Shape(x, y, CELL if grid else NODE, not grid, role))
    edges = [] if layout.edges is None else layout.edges[:, [0, 2]].tolist()
    lines = sorted({(*layout.positions[a].tolist(), *layout.positions[b].tolist()) for a, b in edges})
    left, top = min(shape.x for shape in shapes) - 0.6, min(shape.y for shape in shapes) - 0.6
    right, bottom = max(shape.x for shape in shapes) + 0.6, max(shape.y for shape in shapes) + 0.6
    title = f"Place of the state in {world}; the states that were entered next are marked"
    return Picture(title, (left, top, right - left, bottom - top), shapes, lines)


@lru_cache(maxsize=4)
def _layout(name: str, fingerprint: str) -> Layout | None:
    """Return the layout of a registered world if it is the one that the data come from."""
    if is_reference(name):  # a session file must not decide which modules are imported
        return None
    try:
        world = find_world(name, {})
    except SelectEnvError:  # another installation has registered it
        return None
    if not isinstance(world, TabularWorld) or world.fingerprint != fingerprint or len(world.ids) > MOST_PLACES:
        return None
    return world.layout
