"""Small valid objects that calls start from, and that are mixed up with each other."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import agents
import selectenv
from selectenv.datasets import save

SIZE = 400


@cache
def folder() -> Path:
    """Return a directory for whatever calls write."""
    return Path(tempfile.mkdtemp(prefix="selectenv-odd-"))


@cache
def problem() -> selectenv.SelectionProblem:
    """Return a problem of 7 states."""
    return selectenv.make_problem("Tree", depth=3, dataset_size=SIZE, cache=False)


@cache
def other_problem() -> selectenv.SelectionProblem:
    """Return a problem of another world."""
    return selectenv.make_problem("Graph", dataset_size=SIZE, cache=False)


@cache
def world() -> selectenv.TabularWorld:
    """Return the world of `problem`."""
    found: selectenv.TabularWorld = problem().evaluator.engine.world  # type: ignore[union-attr]
    return found


def dataset() -> selectenv.OfflineDataset:
    """Return the data of `problem`."""
    return problem().dataset


@cache
def dataset_without_rewards() -> selectenv.OfflineDataset:
    """Return data that have no rewards to reveal."""
    return dataset().without_rewards


def env(**options: Any) -> selectenv.RewardSelectionEnv:
    """Return a new environment, with an episode that has just begun."""
    made = selectenv.RewardSelectionEnv(problem(), 3, **options)
    made.reset(seed=0)
    return made


def closed_env() -> selectenv.RewardSelectionEnv:
    """Return an environment that was closed."""
    made = env()
    made.close()
    return made


def finished_env() -> selectenv.RewardSelectionEnv:
    """Return an environment whose episode is over."""
    made = env()
    made.step(np.arange(3))
    return made


def fresh_env() -> selectenv.RewardSelectionEnv:
    """Return an environment that was never reset."""
    return selectenv.RewardSelectionEnv(problem(), 3)


@cache
def toy_text_env() -> gym.Env[Any, Any]:
    """Return a Gymnasium environment of another kind, with a table."""
    return gym.make("FrozenLake-v1")


@cache
def other_env() -> gym.Env[Any, Any]:
    """Return a Gymnasium environment of another kind, with vector observations."""
    return gym.make("CartPole-v1")


@cache
def agent(name: str = "guided", **options: Any) -> agents.Agent:
    """Return a strategy that has begun an episode, trained on `env` if it trains."""
    made = agents.make(name, **options)
    made.train(env())
    made.begin(env().view())
    return made


@cache
def foreign_agent() -> agents.Agent:
    """Return a strategy that was trained on another world."""
    made = agents.make("best-of", max_evaluations=2)
    made.train(selectenv.RewardSelectionEnv(other_problem(), 3))
    return made


@cache
def dataset_file() -> Path:
    """Return the file of a dataset."""
    return save(dataset(), folder() / "valid.npz")


@cache
def agent_file() -> Path:
    """Return the file of a trained strategy."""
    made: Any = agent("best-of", max_evaluations=2)
    path: Path = made.save(folder() / "valid.json")
    return path


@cache
def sb3_model_file() -> Path:
    """Return the file of a model of Stable-Baselines3."""
    from stable_baselines3 import PPO

    path = folder() / "model.zip"
    PPO("MultiInputPolicy", env(), policy_kwargs={"net_arch": [4]}).save(path)
    return path


@cache
def text_file() -> Path:
    """Return a file of something else."""
    path = folder() / "some.txt"
    path.write_text("not ours")
    return path


@cache
def _first() -> tuple[dict[str, Any], dict[str, Any]]:
    return env().reset(seed=0)


def observation() -> dict[str, Any]:
    """Return the first observation of an episode."""
    return dict(_first()[0])


def info() -> dict[str, Any]:
    """Return the first info of an episode."""
    return dict(_first()[1])


def view_of_another_world() -> selectenv.SelectionView:
    """Return what a strategy may know in another world."""
    made = selectenv.RewardSelectionEnv(other_problem(), 3)
    made.reset(seed=0)
    return made.view()
