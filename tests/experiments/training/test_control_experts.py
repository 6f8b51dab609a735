"""Training the experts of the control worlds."""

import gymnasium as gym
import numpy as np
import pytest

from experiments.cli import main as cli
from experiments.training import control_experts
from experiments.training.control_experts import EnergyShaping, control_returns, train_control_expert
from selectenv.domains.gym_env import GymWorld
from selectenv.domains.gym_experts import load_gym_expert


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch):
    monkeypatch.setattr(control_experts, "FINAL_EPISODES", 3)


def test_the_command_trains_writes_and_says_what_the_expert_earns(tmp_path, capsys):
    assert cli.main(["train-expert", "CartPole", "--steps", "500", "--out", str(tmp_path)]) == 0
    path = tmp_path / "cartpole-0" / "cartpole-v1.npz"
    assert f'next: selectenv.make_problem("CartPole", expert="{path}") in Python' in capsys.readouterr().out
    world = GymWorld("CartPole-v1")
    expert = load_gym_expert(world, path)
    card = expert.card
    assert (card["env"], card["seed"], card["episodes"]) == ("CartPole-v1", 0, 3)
    assert card["steps_trained"] >= 500
    assert card["curve"]
    assert card["return"] == control_returns(world, expert, 3, 0).mean()
    again = train_control_expert("CartPole", tmp_path / "again.npz", steps=500)
    assert load_gym_expert(world, tmp_path / "again.npz").fingerprint == expert.fingerprint
    assert again["return"] == card["return"]
    other = train_control_expert("CartPole", tmp_path / "other.npz", steps=500, seed=1)
    assert other["command"].endswith("--seed 1")
    assert load_gym_expert(world, tmp_path / "other.npz").fingerprint != expert.fingerprint


def test_control_worlds_have_one_recipe(tmp_path, capsys):
    assert cli.main(["train-expert", "CartPole", "--recipe", "tabular", "--out", str(tmp_path)]) == 1
    assert "has one recipe" in capsys.readouterr().err


def test_shaping_adds_up_to_the_change_of_energy():
    """Discounted, the added rewards are the discounted last potential minus the first one."""
    env = EnergyShaping(gym.make("MountainCar-v0"))
    first, _ = env.reset(seed=0)
    last, total, factor = first, 0.0, 1.0
    for _ in range(50):
        last, reward, *_ = env.step(2 * int(last[1] > 0))
        total += factor * (reward + 1)
        factor *= env.GAMMA
    expected = env.SCALE * (factor * env._energy_of(last) - env._energy_of(first))
    assert total == pytest.approx(expected, abs=1e-6)


def test_the_expert_of_mountain_car_is_trained_with_it(tmp_path):
    card = train_control_expert("MountainCar", tmp_path / "car.npz", steps=1_000)
    assert -200 <= card["return"] <= 0
    assert np.isfinite([value for _, value in card["curve"]]).all()
