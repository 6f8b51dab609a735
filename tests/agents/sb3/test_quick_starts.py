"""The quick starts of Stable-Baselines3 and sb3-contrib: only the line that makes the environment is another one.

`make stress` trains as long as they do.
"""

import sys
import types

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import A2C, DQN, PPO

import selectenv
from agents.sb3 import VecSelection
from selectenv.wrappers import FlatObservation
from tests.stress import repetitions

TREE = selectenv.env_id("Tree")
OPTIONS = {"budget": 3, "render_mode": "rgb_array", "dataset_size": 1_000}


@pytest.fixture(autouse=True)
def _one_thread():
    """The networks are small, and several processes of the suite share the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def shown(monkeypatch):
    """Return the images that OpenCV, which SB3 needs for ``render("human")``, would show in a window."""
    images = []
    fake = types.SimpleNamespace(imshow=lambda _, image: images.append(image), waitKey=lambda _: None)
    monkeypatch.setitem(sys.modules, "cv2", fake)
    return images


@pytest.fixture(params=["single", "vector"])
def env(request):
    """Return an environment as `gym.make` makes it, flattened for "MlpPolicy", or many in one."""
    if request.param == "single":
        return FlatObservation(gym.make(TREE, **OPTIONS))
    return VecSelection(TREE, n_envs=4, flat=True, **OPTIONS)


def test_a2c(env, shown):
    model = A2C("MlpPolicy", env, verbose=0)
    model.learn(total_timesteps=repetitions(60, 10_000))
    vec_env = model.get_env()
    obs = vec_env.reset()
    for _ in range(3):
        action, _state = model.predict(obs, deterministic=True)
        obs, _reward, _done, _info = vec_env.step(action)
        vec_env.render("human")
    assert len(shown) == 3
    assert shown[0].ndim == 3


def test_ppo(tmp_path, shown):
    vec_env = VecSelection(TREE, n_envs=4, flat=True, **OPTIONS)
    model = PPO("MlpPolicy", vec_env, verbose=0, **({} if repetitions(0, 1) else {"n_steps": 16}))
    model.learn(total_timesteps=repetitions(64, 25_000))
    model.save(tmp_path / "ppo")
    del model
    model = PPO.load(tmp_path / "ppo")
    obs = vec_env.reset()
    for _ in range(3):
        action, _states = model.predict(obs)
        obs, rewards, dones, _info = vec_env.step(action)
        vec_env.render("human")
    assert rewards.shape == dones.shape == (4,)
    assert len(shown) == 3


def test_dqn(tmp_path):
    env = FlatObservation(gym.make(TREE, **OPTIONS))
    model = DQN("MlpPolicy", env, verbose=0)
    model.learn(total_timesteps=repetitions(120, 10_000), log_interval=4)
    model.save(tmp_path / "dqn")
    del model
    model = DQN.load(tmp_path / "dqn")
    obs, _info = env.reset()
    ends = 0
    for _ in range(9):
        action, _states = model.predict(obs, deterministic=True)
        obs, _reward, terminated, truncated, _info = env.step(action)
        if terminated or truncated:
            obs, _info = env.reset()
            ends += 1
    assert ends == 3


def test_dqn_over_the_vector():
    """Its quick start has a single environment, but it trains on many as well."""
    model = DQN("MlpPolicy", VecSelection(TREE, n_envs=4, flat=True, **OPTIONS), learning_starts=40).learn(160)
    assert model.num_timesteps == 160


def test_maskable_ppo(env, tmp_path):
    model = MaskablePPO(
        "MlpPolicy", env, gamma=0.4, seed=32, verbose=0, **({} if repetitions(0, 1) else {"n_steps": 64})
    )
    model.learn(repetitions(64, 5_000))
    evaluate_policy(model, env, n_eval_episodes=4, warn=False)
    model.save(tmp_path / "masked")
    del model
    model = MaskablePPO.load(tmp_path / "masked")
    obs = env.reset() if isinstance(env, VecSelection) else env.reset()[0]
    for _ in range(3):
        action_masks = get_action_masks(env)
        action, _states = model.predict(obs, action_masks=action_masks)
        obs, *_, info = env.step(action)
        assert not any(one["wasted"] for one in np.atleast_1d(info))


def test_policies_for_dicts_take_the_plain_observations():
    for algorithm in (PPO, A2C, DQN, MaskablePPO):
        few = {"n_steps": 8, "batch_size": 8} if algorithm in (PPO, MaskablePPO) else {}
        algorithm("MultiInputPolicy", VecSelection(TREE, n_envs=2, **OPTIONS), **few).learn(16)
