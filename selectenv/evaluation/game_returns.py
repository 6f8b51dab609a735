"""Mean returns of episodes of a MinAtar game."""

import warnings
from threading import Lock

import numpy as np

from selectenv.checks import check_int
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.errors import DatasetError, UnseenStatesWarning
from selectenv.evaluation.played_episodes import play_episodes
from selectenv.policies import PolicyBatch
from selectenv.typing import FloatArray, IntArray

_PLAYING = Lock()
"""Games are played in Python, so two threads at once would only slow each other down; others may learn meanwhile."""
POLICY_BYTES = 1 << 26
"""Upper limit on the memory of the policies that are played side by side."""


class GameReturns:
    """Mean return of episodes of a MinAtar game; all policies are evaluated with common random numbers.

    A table knows nothing about images that are not in the data and acts at random there. If these are most of the
    images met, returns reveal little about the policy, and a warning is issued: in Asterix, Seaquest and Freeway nearly
    every state is new, and no table learned from a million transitions plays well there.
    """

    parallel = True

    def __init__(self, world: MinAtarWorld, dataset: OfflineDataset, episodes: int, seed: int = 0) -> None:
        """Play ``episodes`` episodes per policy over the states of ``dataset``.

        Raises:
            DatasetError: the data have no images of this game.
        """
        images = dataset.base.images
        if images is None or images.shape != world.shape:
            raise DatasetError(f"the dataset has no images of {world.name}: collect it from the game")
        if dataset.n_actions != world.n_actions:
            raise DatasetError(
                f"the dataset has {dataset.n_actions} actions and {world.name} with actions={world.actions!r} has "
                f'{world.n_actions}: its action sets are "all" and "minimal"'
            )
        self.world, self._data = world, dataset
        self._keys = stream_keys(check_int("rollouts", episodes), seed, "evaluation")
        self.policies_at_once = int(np.clip(POLICY_BYTES // (8 * dataset.n_states * dataset.n_actions), 1, 16))
        self._spare: list[Games] = []  # games to reuse; each thread takes one out

    def returns(self, policies: PolicyBatch, discount: float) -> FloatArray:
        """Return the mean return of each policy [policies]."""
        if len(policies) == 0:
            return np.empty(0)
        with _PLAYING:
            returns, (steps, unknown) = self.episode_returns(policies, discount)
        if unknown > 0.5 * steps:
            warnings.warn(
                f"{100 * unknown / steps:.0f} % of the images met in {self.world.name} are not in the data, where a "
                "table can only act at random: use more data, or a learner that generalises",
                UnseenStatesWarning,
                stacklevel=2,
            )
        means: FloatArray = returns.mean(axis=1)
        return means

    def episode_returns(self, policies: PolicyBatch, discount: float = 1.0) -> tuple[FloatArray, IntArray]:
        """Return the returns [policies, episodes], and the numbers of all steps and of steps in unknown states."""
        episodes, count = len(self._keys), len(policies)
        keys = np.tile(self._keys, (count, 1))
        games = self._spare.pop() if self._spare else None
        if games is None or len(games) < len(keys):
            games = Games(self.world, keys)
        else:
            games.begin(keys)
        which = np.arange(len(keys)) // episodes
        total, steps = play_episodes(
            self._data,
            policies,
            which,
            keys[:, 0],
            discount,
            lambda playing: games.images[playing],
            games.step,
            self.world.name,
        )
        self._spare.append(games)
        return total.reshape(count, episodes), steps
