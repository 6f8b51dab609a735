"""The example log is what its world and seed make, and the world is what it says."""

from pathlib import Path

import numpy as np
import pytest

import selectenv
from selectenv.datasets import collect, dataset_spec
from selectenv.datasets.example_log import EXPERT_SHARE, ROWS, SEED, write_example_log
from selectenv.domains.tabular.delivery_robot import ACTIONS, STATES, delivery_robot, expert_answers


@pytest.fixture(scope="module")
def log():
    return selectenv.from_csv(
        selectenv.example_log(), state=["place", "load"], action="action", episode="trip", time="time"
    )


def test_the_file_is_made_by_its_script(tmp_path):
    write_example_log(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == selectenv.example_log().read_bytes()
    assert len(selectenv.example_log().read_text().splitlines()) == ROWS + 1


def test_the_log_holds_the_trips_without_rewards(log):
    world = delivery_robot()
    played = collect(
        world,
        dataset_spec(world, expert_share=EXPERT_SHARE, mixture="all", expert="optimal", size=ROWS, seed=SEED),
    )
    size = len(log)
    for name in ("state", "action", "next_state", "terminated", "truncated", "episode_start"):
        np.testing.assert_array_equal(getattr(log, name), getattr(played, name)[:size])
    assert not log.has_rewards
    assert log.labelable.all()


def test_the_documentation_shows_the_summary(log):
    assert log.summary in (Path(__file__).parents[3] / "docs" / "own-data.md").read_text()


def test_numbers_of_the_log_are_those_of_the_world(log):
    assert log.action_names.tolist() == list(ACTIONS)
    columns = [log.state_columns[name].tolist() for name in ("place", "load")]
    assert list(zip(*columns, strict=True)) == list(STATES)
    assert log.ids.tolist() == list(expert_answers())


def test_answers_are_the_rewards_of_the_world(log):
    world, answers = delivery_robot(), expert_answers()
    expected = world.model.reward.reshape(world.n_states, world.n_actions)
    np.testing.assert_allclose([[answers[state][action] for action in ACTIONS] for state in log.ids], expected)
    assert answers["place=ward A, load=medicine"] == {
        "east": 0, "north": 0, "open tray": 10, "south": -20, "west": 0
    }  # fmt: skip
    assert world.best_return() == pytest.approx(10)
    assert (world.worst_return(), world.n_states) == (pytest.approx(-20), 45)


def test_the_world_is_drawn():
    env = selectenv.make_env(delivery_robot(), dataset_size=500, budget=2, render_mode="rgb_array", cache=False)
    env.reset(seed=0)
    assert env.render().ndim == 3
    assert selectenv.make_env(delivery_robot(), dataset_size=500, budget=2, render_mode="ansi", cache=False)
