"""Episodes of policies, played side by side: shared by the engines of games and of worlds with vectors."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.world_step import WorldStep
from selectenv.errors import LongEpisodeWarning
from selectenv.kernels.action_draws import draw_actions
from selectenv.policies import PolicyBatch
from selectenv.typing import FloatArray, IntArray, UintArray

EPISODE_LIMIT = 100_000
"""Steps after which the evaluation of an episode stops."""


def play_episodes(
    dataset: OfflineDataset,
    policies: PolicyBatch,
    which: IntArray,
    keys: UintArray,
    discount: float,
    observe: Callable[[IntArray], NDArray[Any]],
    step: Callable[[IntArray, IntArray], WorldStep],
    world: str,
) -> tuple[FloatArray, IntArray]:
    """Play one episode per entry of ``which``, and issue a `LongEpisodeWarning` if some reach the limit.

    Args:
        dataset: the data; policies are told into which cell of them an observation falls, and the observation itself.
        policies: the policies.
        which: [episodes] the policy that acts in each episode, by number.
        keys: [episodes] the random keys that actions are drawn with.
        discount: discount of the returns.
        observe: returns the current observations of some episodes, given by number.
        step: takes an action in each of some episodes; see `WorldStep`.
        world: the name of the world, for warnings.

    Returns:
        The returns [episodes], and the numbers of all steps and of those in states that the policy does not know.
    """
    total, steps, factor = np.zeros(len(which)), np.zeros(2, np.int64), 1.0
    playing = np.arange(len(which))
    for time in range(EPISODE_LIMIT):
        observations = observe(playing)
        states = dataset.locate(observations).astype(np.int64)
        chances = policies.probabilities(which[playing], states, observations)
        steps += np.array([len(playing), np.count_nonzero(np.isnan(chances[:, 0]))])
        result = step(draw_actions(chances, keys[playing], time), playing)
        total[playing] += factor * result.reward
        factor *= discount
        playing = playing[~(result.terminated | result.truncated)]
        if len(playing) == 0:
            break
    warn_of_long_episodes(world, len(playing))
    return total, steps


def warn_of_long_episodes(world: str, unfinished: int) -> None:
    """Issue a `LongEpisodeWarning` if episodes were stopped at the limit."""
    if unfinished:
        warnings.warn(
            f"{unfinished} episodes of {world} were stopped after {EPISODE_LIMIT:,} steps: their returns count the "
            "rewards until then",
            LongEpisodeWarning,
            stacklevel=4,
        )
