"""Two small labellers for a first look at an environment: by chance, and by one step of lookahead."""

from typing import Any

import gymnasium as gym
import numpy as np

from selectenv.env import RewardSelectionEnv


def uniform_label(env: gym.Env[Any, Any], info: dict[str, Any], rng: np.random.Generator) -> int:
    """Return any state that can still be labelled."""
    return int(rng.choice(np.flatnonzero(info["action_mask"])))


def lookahead_label(env: gym.Env[Any, Any], info: dict[str, Any], rng: np.random.Generator) -> int:
    """Ask the evaluator what each next label would earn and return the best; ties go to the lower number."""
    inner = env.unwrapped
    assert isinstance(inner, RewardSelectionEnv)
    candidates = np.flatnonzero(info["action_mask"])
    masks = np.repeat(inner.labelled_at[None] > 0, len(candidates), axis=0)
    masks[np.arange(len(candidates)), candidates] = True
    return int(candidates[inner.problem.performance_many(masks).argmax()])
