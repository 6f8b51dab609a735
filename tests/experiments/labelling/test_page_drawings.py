"""Charts, drawings and images of the labelling page."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from experiments.labelling.bounds_chart import HEIGHT, WIDTH, bounds_chart
from experiments.labelling.page_views import choices_of
from experiments.labelling.state_images import png, state_png
from experiments.labelling.world_drawing import drawing_of
from selectenv.labelling.session_reports import CurvePoint
from selectenv.rendering.frames import colours
from tests.selectenv.labelling.teller import town

WORLDS = ("Graph", "Tree", "TwoRooms", "TwoRoomsTrap", "FrozenLake", "CliffWalk")


@given(regrets=st.lists(st.floats(0, 1e9), min_size=1, max_size=12), spare=st.integers(0, 5))
def test_the_chart_stays_in_its_box_and_keeps_the_order(regrets, spare):
    curve = [CurvePoint(i, None, 0.0, 0.0, regret, regret) for i, regret in enumerate(regrets)]
    chart = bounds_chart(curve, max(1, len(regrets) - 1 + spare))
    points = [tuple(map(float, point.split(","))) for point in chart.line.split()]
    assert len(points) == len(regrets)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert points[-1] == chart.last
    assert (chart.first, chart.now) == (curve[0], curve[-1])
    xs, ys = zip(*points, strict=True)
    assert all(np.diff(xs) > 0)
    assert all(
        a >= b for (a, ra) in zip(ys, regrets, strict=True) for (b, rb) in zip(ys, regrets, strict=True) if ra < rb
    )


@pytest.mark.parametrize("world", WORLDS)
def test_a_state_is_marked_in_the_drawing_of_its_world(world):
    data = selectenv.make_problem(world, dataset_size=500, cache=False).dataset
    drawing = drawing_of(data, 3, {1, 2})
    roles = [shape.role for shape in drawing.shapes]
    assert (roles.count("here"), roles.count("next")) == (1, 2)
    assert roles.count("state") == data.n_states - 3
    assert world in drawing.title
    left, top, width, height = drawing.box
    for shape in drawing.shapes:
        assert left <= shape.x - shape.size
        assert shape.x + shape.size <= left + width
        assert top <= shape.y - shape.size
        assert shape.y + shape.size <= top + height
    assert bool(drawing.lines) == (world in ("Graph", "Tree"))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"world": "Tree"},
        {"world": "Tree", "world_fingerprint": "another"},
        {"world": "nobody registered this", "world_fingerprint": "x"},
        {"world": "os:system", "world_fingerprint": "x"},  # a session file must not import modules
        {"world": 3, "world_fingerprint": 4},
        {"world": "Breakout", "world_fingerprint": "x"},
    ],
)
def test_other_data_have_no_drawing(spec):
    data = town()
    object.__setattr__(data, "spec", spec)
    assert drawing_of(data, 0, set()) is None


def test_images_are_png_files():
    image = pytest.importorskip("matplotlib.image")
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 13
    read = image.imread(io.BytesIO(png(pixels)))
    np.testing.assert_array_equal(np.round(read[..., :3] * 255).astype(np.uint8), pixels)
    images = selectenv.make_problem("Breakout", dataset_size=50, cache=False).dataset.images
    read = image.imread(io.BytesIO(state_png(images, 1)))
    np.testing.assert_array_equal(np.round(read[..., :3] * 255).astype(np.uint8), colours(images[1]))


@pytest.mark.parametrize(
    ("low", "high", "choices"),
    [
        (-20, 10, (-20, -10, 0, 5, 10)),
        (0, 1, (0, 0.25, 0.5, 0.75, 1)),
        (-4, 0, (-4, -3, -2, -1, 0)),
        (2, 2, (-1, 0, 1)),
        ([0, 0, -2], [0, 4, 0], (-2, -1, 0, 2, 4)),
    ],
)
def test_number_keys_cover_the_range(low, high, choices):
    session = selectenv.LabellingSession(town(), "terminal", 1)
    assert choices_of(session) == (-1, 0, 1)
    session.bounds(low, high)
    assert choices_of(session) == choices
