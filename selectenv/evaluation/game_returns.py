"""Mean returns of episodes of a MinAtar game."""

import warnings
from threading import Lock

import numpy as np

from selectenv.checks import check_int
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.errors import DatasetError, LongEpisodeWarning, UnseenStatesWarning
from selectenv.kernels.network.packed_images import draw_actions
from selectenv.policies import PolicyBatch
from selectenv.typing import FloatArray, IntArray

_PLAYING = Lock()
"""Games are played in Python, so two threads at once would only slow each other down; others may learn meanwhile."""
EPISODE_LIMIT = 100_000
"""Steps after which the evaluation of an episode stops."""
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
        total, steps = np.zeros(len(keys)), np.zeros(2, np.int64)
        playing, factor = np.arange(len(keys)), 1.0
        for step in range(EPISODE_LIMIT):
            images = games.images[playing]
            states = self._data.locate(images).astype(np.int64)
            chances = policies.probabilities(playing // episodes, states, images)
            unknown = np.isnan(chances[:, 0])
            steps += np.array([len(playing), np.count_nonzero(unknown)])
            row = np.where(unknown, -1, np.arange(len(playing))).astype(np.int32)
            actions = draw_actions(chances[None], np.zeros(len(playing), np.int64), row, keys[playing, 0], step)
            moves = games.step(actions, playing)
            total[playing] += factor * moves.reward
            factor *= discount
            playing = playing[~(moves.terminated | moves.truncated)]
            if len(playing) == 0:
                break
        self._spare.append(games)
        warn_of_long_episodes(self.world, len(playing))
        return total.reshape(count, episodes), steps


def warn_of_long_episodes(world: MinAtarWorld, unfinished: int) -> None:
    """Issue a `LongEpisodeWarning` if episodes were stopped at the limit."""
    if unfinished:
        warnings.warn(
            f"{unfinished} episodes of {world.name} were stopped after {EPISODE_LIMIT:,} steps: their returns count "
            "the rewards until then",
            LongEpisodeWarning,
            stacklevel=3,
        )
