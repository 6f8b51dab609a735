"""Checkpoints of an expert's training with flipped or missing bytes."""

import pytest

pytest.importorskip("stable_baselines3")

import numpy as np
from stable_baselines3 import DQN

from experiments.training.dqn_expert import _games, load_checkpoint, save_checkpoint
from selectenv.domains.minatar.games import MinAtarWorld
from selectenv.errors import WeightsFileError
from tests.damage import attempt, damaged_copies

RUN = {"game": "Breakout", "seed": 0, "settings": {}}


def small_model():
    """A network of a few weights and a short replay buffer."""
    return DQN(
        "MlpPolicy",
        _games(MinAtarWorld("Breakout"), 0, 0),
        seed=0,
        device="cpu",
        buffer_size=128,
        learning_starts=16,
        policy_kwargs={"net_arch": [4]},
    )


def state(model, curve):
    """Everything that a resumed run depends on."""
    buffer = model.replay_buffer
    arrays = [value.numpy() for value in model.policy.state_dict().values()]
    for entry in model.policy.optimizer.state_dict()["state"].values():
        arrays += [np.asarray(value) for value in entry.values()]
    arrays += [buffer.observations, buffer.actions, buffer.rewards, buffer.dones]
    numbers = (model.num_timesteps, model._n_updates, model._n_calls, buffer.pos, buffer.full, curve)
    return [array.tobytes() for array in arrays], numbers


@pytest.mark.filterwarnings("ignore")  # NumPy's and zipfile's remarks on damaged headers
def test_damage_is_named_and_never_resumed(tmp_path):
    model = small_model()
    model.learn(64)
    save_checkpoint(model, [(64, 1.5, 0.5)], tmp_path, RUN)
    path, fresh = tmp_path / "checkpoint.npz", small_model()
    truth = state(fresh, load_checkpoint(fresh, tmp_path, RUN))
    noticed = 0
    for copy in damaged_copies(path.read_bytes(), sample=24):
        path.write_bytes(copy)
        curve = attempt(lambda: load_checkpoint(fresh, tmp_path, RUN), WeightsFileError, path)
        assert curve is None or state(fresh, curve) == truth
        noticed += curve is None
    assert noticed > 12
