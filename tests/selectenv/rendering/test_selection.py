"""Renderings show the labels in every layout."""

import itertools
import sys

import gymnasium as gym
import numpy as np
import pytest

import selectenv
from selectenv.domains.layout import similarity_layout
from selectenv.errors import MissingExtraError, UnknownNameError
from selectenv.rendering.selection import LABEL_COLOUR, MARK_COLOURS, draw, key, text


def play(name, mode, labels):
    env = gym.make(selectenv.env_id(name), render_mode=mode, budget=max(len(labels), 1), dataset_size=5000)
    env.reset(seed=0)
    for label in labels:
        env.step(label)
    return env.render()


@pytest.mark.parametrize("name", selectenv.TABULAR)
def test_text_shows_ids_and_order(name):
    text = play(name, "ansi", [10, 3])
    ids = selectenv.make_problem(name, dataset_size=5000).states
    first, *rows = text.splitlines()
    assert first == f"2 states labelled, budget 2: {ids[10]}, {ids[3]}"
    middle = next(i for i, row in enumerate(rows) if row.startswith("learned values"))
    assert len(rows) == 2 * middle + 1
    values = [int(cell) for cell in " ".join(rows[middle + 1 :]).split() if cell.lstrip("-").isdigit()]
    assert len(values) == len(ids)
    assert max(map(abs, values)) in (0, 10)
    cells = " ".join(rows[:middle]).split()
    assert cells.count("1") == cells.count("2") == 1


def test_one_state_is_singular():
    assert play("Graph", "ansi", [10]).startswith("1 state labelled, budget 1: ")


def test_text_of_two_rooms_is_a_map():
    rows = play("TwoRooms", "ansi", [49]).splitlines()[1:6]
    assert rows[-1].endswith("> > > 1 G")
    assert [row.split()[5] for row in rows] == ["#", "#", ">", "#", "#"]
    assert set(rows[2].split()[:5]) == {">"}


@pytest.mark.parametrize("name", selectenv.TABULAR)
def test_pixels_show_labels(name):
    def framed(picture):
        wanted = np.array([int(LABEL_COLOUR[i : i + 2], 16) for i in (1, 3, 5)])
        return (np.abs(picture.astype(int) - wanted).max(axis=2) <= 4).sum()

    empty, some = play(name, "rgb_array", []), play(name, "rgb_array", [10, 3])
    assert empty.dtype == np.uint8
    assert empty.shape == some.shape
    assert empty.shape[2] == 3
    assert framed(empty) == 0
    assert framed(some) > 50


def test_rendering_without_a_mode_warns():
    env = gym.make(selectenv.env_id("Graph"), dataset_size=500).unwrapped
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_unknown_modes_are_refused():
    with pytest.raises(UnknownNameError, match="ansi, rgb_array"):
        selectenv.make_env("Graph", dataset_size=500, render_mode="svg")


def test_pixels_without_matplotlib_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"selectenv\[plot\]"):
        play("Graph", "rgb_array", [])


@pytest.mark.parametrize(
    ("name", "explained", "absent"),
    [
        ("Tree", ("yellow: 0", "grey edges: ties"), ("arrow", "goal", "not in the data")),
        ("CliffWalk", ("yellow: 0", "no arrow: labelled, or", "purple x: penalty", "green G: goal"), ("edges",)),
        ("TwoRooms", ("dark grey: wall", "green G: goal"), ("penalty",)),
    ],
)
def test_the_key_explains_what_is_drawn(name, explained, absent):
    text = key(selectenv.make_problem(name, dataset_size=5000))
    assert all(words in text for words in explained)
    assert not any(words in text for words in absent)
    few = key(selectenv.make_problem("CliffWalk", dataset_size=30, cache=False))
    assert "light grey: not in the data" in few


def test_a_set_without_an_order_has_no_numbers():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    problem = selectenv.make_problem("Graph", dataset_size=5000)
    labelled_at = np.arange(15)
    for numbered, count in ((True, 14), (False, 0)):
        axes = figure.add_subplot()
        draw(axes, problem, labelled_at, numbered=numbered)
        assert len(axes.texts) == count


def test_penalties_do_not_look_like_low_values():
    """Low values are red, and so were penalties."""
    red, green, blue = bytes.fromhex(MARK_COLOURS["trap"][1:])
    assert blue > red > green


def test_clusters_are_drawn_by_their_centres():
    problem = selectenv.make_problem("MountainCar", dataset_size=2_000, groups=23, rollouts=1, cache=False)
    centres, positions = problem.dataset.groups.regions.centres, problem.layout.positions
    assert len({tuple(place) for place in positions.tolist()}) == 23  # a cell of its own for every group
    for left, right in itertools.pairwise(range(int(positions[:, 0].max()) + 1)):
        assert centres[positions[:, 0] == left, 0].max() <= centres[positions[:, 0] == right, 0].min()
    for column in range(int(positions[:, 0].max()) + 1):
        mine = np.flatnonzero(positions[:, 0] == column)
        assert (np.diff(centres[mine[np.argsort(positions[mine, 1])], 1]) <= 0).all()  # upwards is faster
    assert "groups by their centres, to the right: position, upwards: velocity" in key(problem)
    labelled_at = np.zeros(23, np.int64)
    labelled_at[4] = 1
    assert text(problem, labelled_at, 3).startswith("1 group labelled, budget 3: 4")


def test_clusters_of_many_columns_are_drawn_by_principal_components():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(16, 1))
    points = np.hstack([3 * hidden, -2 * hidden, 0.1 * rng.normal(size=(16, 2))])
    layout = similarity_layout(points, ("a", "b", "c", "d"))
    place = layout.positions[:, 0]
    assert abs(np.corrcoef(place, hidden[:, 0])[0, 1]) > 0.9
    assert np.corrcoef(place, points[:, 0])[0, 1] > 0.9  # the column that counts most grows to the right
    assert layout.axes == ("first principal component", "second principal component")
    one = similarity_layout(np.array([[2.0], [1.0], [3.0]]), ("a",))
    assert one.axes == ("a",)
    assert len(one.positions) == 3
    episodes = selectenv.make_problem("CartPole", dataset_size=300, groups="episode", rollouts=1, cache=False)
    assert episodes.layout.axes == ()
