"""Training by the published recipe: schedules, checkpoints and files."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.training.example_dqn import (
    DqnRun,
    DqnSettings,
    load_checkpoint,
    save_checkpoint,
    train_example_dqn,
)
from experiments.training.game_state import restore_game, save_game
from selectenv.domains.minatar.games import GAMES, MinAtarWorld
from selectenv.errors import WeightsFileError
from selectenv.io.weights import load_weights

SMALL = DqnSettings(frames=400, replay=150, random_frames=100, exploration_frames=100, target_every=20)


def test_the_defaults_are_the_published_settings():
    assert DqnSettings() == DqnSettings(
        frames=5_000_000,
        replay=100_000,
        random_frames=5_000,
        batch=32,
        rate=0.00025,
        decay=0.95,
        epsilon=0.01,
        gamma=0.99,
        target_every=1_000,
        exploration_frames=100_000,
        final_exploration=0.1,
    )


def test_exploration_falls_after_the_random_frames():
    run = DqnRun("Breakout", 0, DqnSettings())
    found = []
    for run.frame in (0, 5_000, 55_000, 105_000, 4_000_000):
        found.append(run.exploration)
    assert found == pytest.approx([1, 1, 0.55, 0.1, 0.1])


@pytest.mark.parametrize("game", GAMES)
def test_a_restored_game_continues_as_the_original(game):
    world, rng = MinAtarWorld(game), np.random.default_rng(0)
    one, other = world.new_game(), world.new_game()
    one.seed(np.array([1, 2], np.uint32))
    other.seed(np.array([9, 9], np.uint32))
    one.reset()
    other.reset()
    for _ in range(300):
        if one.act(int(rng.integers(6)))[1]:
            one.reset()
    restore_game(other, save_game(one))
    for _ in range(300):
        action = int(rng.integers(6))
        assert one.act(action) == other.act(action)
        np.testing.assert_array_equal(one.env.state(), other.env.state())


def test_a_resumed_run_gives_the_same_weights(tmp_path):
    whole = train_example_dqn("Asterix", tmp_path / "whole", seed=5, settings=SMALL, show=lambda line: None)
    part = replace(SMALL, frames=230)
    train_example_dqn("Asterix", tmp_path / "parts", seed=5, settings=part, show=lambda line: None)
    resumed = train_example_dqn("Asterix", tmp_path / "parts", seed=5, settings=SMALL, show=lambda line: None)
    assert resumed.frame == whole.frame == 400
    for name, flat in whole.parameters.items():
        np.testing.assert_array_equal(flat, resumed.parameters[name], err_msg=name)
    arrays, card = load_weights(tmp_path / "whole" / "weights-400.npz")
    assert card["game"] == "Asterix"
    assert card["actions"] == "all"
    np.testing.assert_array_equal(arrays["5.bias"], whole.weights["5.bias"])


def test_a_table_of_patches_that_is_full_grows_without_changing_the_run():
    one, other = DqnRun("Seaquest", 1, SMALL), DqnRun("Seaquest", 1, SMALL)
    for frame in range(300):
        if frame == 200:
            other.number_patches(1 << 16)
        one.advance()
        other.advance()
    np.testing.assert_array_equal(one.parameters["online"], other.parameters["online"])


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    run = DqnRun("Breakout", 0, SMALL)
    save_checkpoint(run, tmp_path / "checkpoint.npz")
    with pytest.raises(WeightsFileError, match="belongs to another run"):
        load_checkpoint(DqnRun("Breakout", 1, SMALL), tmp_path / "checkpoint.npz")
