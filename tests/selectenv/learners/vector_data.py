"""A small dataset of vectors for tests."""

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.vector_observations import Vectors

SPREAD = np.array([1.0, 100.0, 0.01, 1.0, 5.0])
"""Columns of very different size."""


def choices(values, n_actions=3):
    """Return the action probabilities [n, actions] of the policy that collects the data."""
    logits = 1.5 * values[:, :n_actions] / SPREAD[:n_actions]
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


def vector_data(seed=0, n=120, size=1_500, n_actions=3):
    """Return transitions between random vectors; episodes terminate or are truncated, and few states have a reward."""
    rng = np.random.default_rng(seed)
    values = (SPREAD * rng.normal(size=(n, len(SPREAD))) + 3.0).astype(np.float32)
    state = rng.integers(n, size=size).astype(np.int32)
    chances = choices(values - 3.0, n_actions)[state]
    action = (rng.random(size)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(max=n_actions - 1).astype(np.int32)
    terminated = rng.random(size) < 0.05
    truncated = ~terminated & (rng.random(size) < 0.05)
    truncated[-1] = not terminated[-1]
    following = np.append(state[1:], state[0])
    return OfflineDataset(
        ids=np.arange(n),
        n_actions=n_actions,
        state=state,
        action=action,
        next_state=np.where(terminated, -1, following).astype(np.int32),
        terminated=terminated,
        truncated=truncated,
        episode_start=np.concatenate([[True], (terminated | truncated)[:-1]]),
        hidden_reward=np.where(state % 10 == 0, rng.normal(size=size), 0.0),
        observations=Vectors(values),
    )
