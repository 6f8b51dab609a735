"""Environments with other options, time limits and wrappers than the registered ones, and unusual experts."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces, wrappers
from stable_baselines3 import DQN, PPO

import selectenv
from selectenv.datasets.storage import cache_folder
from selectenv.domains.gym_env import GymWorld
from selectenv.domains.gym_experts import load_gym_expert
from selectenv.errors import MissingExtraError, OptionError, UnknownNameError, WeightsFileError, WorldError

SMALL = {"dataset_size": 600, "groups": 8, "rollouts": 3}


class Step(gym.Env):
    """Pays the class attribute `pays` at every step, ten times."""

    observation_space = spaces.Dict({"place": spaces.Box(0, 10, (2,)), "door": spaces.Discrete(2)})
    action_space = spaces.Discrete(2)
    pays = 1.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._time = 0
        return self._seen(), {}

    def step(self, action):
        self._time += 1
        return self._seen(), self.pays, self._time == 10, False, {}

    def _seen(self):
        return {"place": np.full(2, self._time, np.float32), "door": self._time % 2}


@pytest.fixture
def step():
    gym.register("Step-v0", Step)
    yield "Step-v0"
    del gym.registry["Step-v0"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SELECTENV_CACHE", str(tmp_path / "cache"))
    return cache_folder()


def test_evaluations_have_the_time_limit_and_the_options_of_the_environment():
    short = selectenv.make_problem(gym.make("CartPole-v1", max_episode_steps=7), cache=False, **SMALL)
    assert short.performance([]) == 7.0  # no policy falls within seven steps
    assert not short.evaluator.engine.world.has_vector_env
    paid = selectenv.make_problem(gym.make("CartPole-v1", sutton_barto_reward=True), cache=False, **SMALL)
    assert -1.0 <= paid.performance([]) <= 0.0  # -1 for a fall, and nothing else
    assert paid.dataset.hidden_reward.max() == 0.0
    assert GymWorld(gym.make("CartPole-v1")).has_vector_env


def test_options_of_wrappers_are_part_of_the_data(cache):
    made = {
        bins: selectenv.make_problem(
            wrappers.DiscretizeAction(gym.make("Pendulum-v1"), bins=bins), expert=None, **SMALL
        ).dataset
        for bins in (3, 5)
    }
    assert {bins: data.n_actions for bins, data in made.items()} == {3: 3, 5: 5}
    assert len(list(cache.iterdir())) == 4  # vectors and groups of both


def test_data_of_environments_with_code_of_ones_own_are_not_cached(step, cache, monkeypatch):
    env = wrappers.FlattenObservation(gym.make(step))
    world = GymWorld(env)
    assert not world.cacheable
    assert repr(world) == "<GymWorld Step-v0: 4 columns, 2 actions>"
    options = {**SMALL, "groups": "state", "expert": None}
    assert selectenv.make_problem(env, **options).performance([]) == 10.0
    monkeypatch.setattr(Step, "pays", 2.0)  # the next version of the code
    changed = selectenv.make_problem(env, **options)
    assert changed.performance([]) == 20.0
    assert set(changed.dataset.hidden_reward) == {2.0}
    double = wrappers.TransformReward(gym.make("CartPole-v1"), lambda reward: 2 * reward)
    assert not GymWorld(double).cacheable
    assert not cache.exists()
    assert GymWorld("CartPole-v1").cacheable


def test_hints_for_worlds_that_cannot_be_used(step, monkeypatch):
    with pytest.raises(WorldError, match=r"Dict.*needs a Box space; wrap .* gymnasium.wrappers.FlattenObservation"):
        GymWorld(step)
    with pytest.raises(WorldError, match=r"Discrete\(16\).*; for discrete observations, pass the environment itself"):
        GymWorld("FrozenLake-v1")
    for name in ("CartPole", "Cartpole-v1", "CartPole-v9"):
        with pytest.raises(UnknownNameError, match=r"Did you mean 'CartPole-v1'\?") as error:
            GymWorld(name)
        assert len(str(error.value)) < 150
    with pytest.raises(UnknownNameError, match="Malformed"):
        GymWorld("")

    def fail(*_, **__):
        raise gym.error.DependencyNotInstalled("MuJoCo is not installed")

    monkeypatch.setattr(gym, "make", fail)
    with pytest.raises(MissingExtraError, match=r"CartPole-v1: MuJoCo is not installed$"):
        GymWorld("CartPole-v1")


def test_the_activation_of_an_expert_is_that_of_its_model(tmp_path):
    cartpole, some = GymWorld("CartPole-v1"), np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    for i, (kind, options) in enumerate(
        [
            (PPO, {"activation_fn": torch.nn.ReLU, "net_arch": [16, 16]}),
            (DQN, {"activation_fn": torch.nn.Tanh, "net_arch": [16]}),
            (PPO, {"net_arch": []}),
        ]
    ):
        model = kind("MlpPolicy", "CartPole-v1", device="cpu", seed=i, policy_kwargs=options)
        model.save(tmp_path / f"{i}.zip")
        expert = load_gym_expert(cartpole, tmp_path / f"{i}.zip")
        np.testing.assert_array_equal(expert.actions(some), model.predict(some, deterministic=True)[0])
    model = PPO("MlpPolicy", "CartPole-v1", device="cpu", policy_kwargs={"activation_fn": torch.nn.ELU})
    model.save(tmp_path / "elu.zip")
    with pytest.raises(WeightsFileError, match=r"ELU.*only Tanh and ReLU.*model.predict"):
        load_gym_expert(cartpole, tmp_path / "elu.zip")
    with pytest.raises(OptionError, match=r"a function: lambda observation: model.predict"):
        selectenv.make_problem("CartPole", expert=model)


@pytest.mark.parametrize("answer", [np.array([0.5, 0.5]), [0], (0, None), 0.5, None])
def test_experts_must_return_one_action(answer):
    with pytest.raises(OptionError, match="it must return one action, and those of CartPole-v1 are 0 to 1"):
        selectenv.make_problem("CartPole", expert=lambda observation: answer, cache=False, **SMALL)


def test_misspelt_experts():
    with pytest.raises(UnknownNameError, match=r"unknown expert 'publishd'.*Did you mean 'published'\?"):
        selectenv.make_problem("CartPole", expert="publishd", cache=False, **SMALL)
