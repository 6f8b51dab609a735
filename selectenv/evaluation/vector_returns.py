"""Mean returns of episodes of a Gymnasium environment with vector observations."""

import warnings
from threading import Lock

import numpy as np

from selectenv.checks import check_int
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.compiled_lanes import CompiledLanes, make_lanes
from selectenv.domains.gym_env import GymWorld, Lanes, VectorLanes
from selectenv.errors import DatasetError, UnseenStatesWarning
from selectenv.evaluation.played_episodes import play_episodes
from selectenv.options import LARGEST_SIZE
from selectenv.policies import PolicyBatch
from selectenv.streams import generator
from selectenv.typing import FloatArray, IntArray

_PLAYING = Lock()
"""Environments are stepped in Python, so two threads at once would only slow each other down."""


class VectorReturns:
    """Mean return of episodes that are played side by side; all policies are evaluated with common random numbers.

    A policy is told into which cell of the data each observation falls, and the observation itself. The return of a
    policy does not depend on which other policies are evaluated with it.
    """

    parallel = True
    policies_at_once = 1

    def __init__(self, world: GymWorld, dataset: OfflineDataset, episodes: int, seed: int = 0) -> None:
        """Play ``episodes`` episodes per policy.

        Raises:
            DatasetError: the data have other observations or actions than the environment.
        """
        base = dataset.base
        if base.vectors is None or base.vectors.shape != (world.width,):
            has = "no vectors" if base.vectors is None else f"vectors of {base.vectors.shape[0]} columns"
            raise DatasetError(f"{world.name} has observations of {world.width} columns, and the data have {has}")
        if base.n_actions != world.n_actions:
            raise DatasetError(f"{world.name} has {world.n_actions} actions, and the data have {base.n_actions}")
        self.world, self._data = world, dataset
        self._episodes = check_int("rollouts", episodes, 1, LARGEST_SIZE)
        rng = generator(check_int("seed", seed, 0), "evaluation")
        self._seeds: list[int | None] = rng.integers(2**31, size=self._episodes).tolist()
        self._keys = rng.integers(2**64, size=self._episodes, dtype=np.uint64)
        self._lanes: Lanes | VectorLanes | CompiledLanes | None = None

    def returns(self, policies: PolicyBatch, discount: float) -> FloatArray:
        """Return the mean return of each policy [policies]."""
        with _PLAYING:
            found = [self.episode_returns(policies, i, discount) for i in range(len(policies))]
        steps = sum((counts for _, counts in found), np.zeros(2, np.int64))
        if steps[1] > 0.5 * steps[0]:
            warnings.warn(
                f"{100 * steps[1] / steps[0]:.0f} % of the observations met in {self.world.name} fall into no state of "
                "the data, where a table can only act at random: use groups=, or a learner that generalises",
                UnseenStatesWarning,
                stacklevel=2,
            )
        return np.array([returns.mean() for returns, _ in found])

    def episode_returns(self, policies: PolicyBatch, which: int, discount: float = 1.0) -> tuple[FloatArray, IntArray]:
        """Return the returns [episodes] of one policy, and the numbers of all steps and of those in unknown states."""
        lanes = self._lanes = make_lanes(self.world, self._episodes) if self._lanes is None else self._lanes
        lanes.reset(self._seeds)
        return play_episodes(
            self._data,
            policies,
            np.full(self._episodes, which),
            self._keys,
            discount,
            lambda playing: lanes.observations[playing],
            lanes.step,
            self.world.name,
        )
