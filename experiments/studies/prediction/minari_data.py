"""Minari datasets that are recorded on this computer: a mixture of the shipped expert and random actions."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import selectenv
from selectenv.datasets.arrow_columns import require
from selectenv.datasets.storage import cache_folder
from selectenv.domains.gym_experts import load_gym_expert
from selectenv.streams import generator

FOLDER = "MINARI_DATASETS_PATH"
"""Environment variable that names Minari's directory."""


def recorded(world: str, size: int, seed: int) -> selectenv.OfflineDataset:
    """Return a dataset of a control world that went through Minari; it is recorded at its first use.

    Args:
        world: a control world, such as "CartPole".
        size: number of transitions; the last episode is cut there.
        seed: seed of the environment and of the mixture.

    Raises:
        MissingExtraError: Minari is not installed.
    """
    minari = require("minari")
    name = f"selectenv/{world.lower()}-{size}-seed{seed}-v0"
    with _folder(cache_folder() / "minari"):
        if name not in minari.list_local_datasets():
            _record(minari, world, size, seed, name)
        return selectenv.from_minari(minari.load_dataset(name))


def _record(minari: Any, world: str, size: int, seed: int, name: str) -> None:
    """Play the mixture and store it."""
    row = selectenv.CONTROL[world]
    place = row.make()
    expert = load_gym_expert(place, "published")
    share = row.defaults.expert_share
    low, high = share if isinstance(share, tuple) else (share, share)
    rng, env = generator(seed, "minari", world, size), minari.DataCollector(place.make())
    steps = 0
    while steps < size:
        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        expert_share, over = rng.uniform(low, high), False
        while not over and steps < size:
            action = int(rng.integers(place.n_actions))
            if rng.random() < expert_share:
                action = int(expert.actions(np.asarray(observation, np.float32)[None])[0])
            observation, _, terminated, truncated, _ = env.step(place.first_action + action)
            over, steps = terminated or truncated, steps + 1
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # Minari recommends to name an author and code, and leaves a temporary directory
        env.create_dataset(name)
        env.close()
        del env


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Let Minari use a directory."""
    before = os.environ.get(FOLDER)
    os.environ[FOLDER] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = before
