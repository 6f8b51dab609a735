"""Returns of experts, and their summary for the card of an expert."""

from typing import Any

import numpy as np

from selectenv.domains.minatar.experts import Expert
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.evaluation.game_returns import EPISODE_LIMIT, warn_of_long_episodes
from selectenv.typing import FloatArray

FINAL_EPISODES = 100
FINAL_SEED = 1_000_003
"""Added to the training seed, so that the final episodes differ from those used for model selection."""


def expert_returns(world: MinAtarWorld, expert: Expert, episodes: int, seed: int) -> FloatArray:
    """Return the returns [episodes] of an expert.

    Warns:
        LongEpisodeWarning: episodes were stopped at the limit of evaluations.
    """
    games, total = Games(world, stream_keys(episodes, seed, "evaluation")), np.zeros(episodes)
    playing = np.arange(episodes)
    for _ in range(EPISODE_LIMIT):
        if len(playing) == 0:
            break
        moves = games.step(expert.actions(games.images[playing]), playing)
        total[playing] += moves.reward
        playing = playing[~(moves.terminated | moves.truncated)]
    warn_of_long_episodes(world, len(playing))
    return total


def measured(returns: FloatArray) -> dict[str, Any]:
    """Return mean, standard error and number of returns as entries of a card."""
    return {
        "return": float(returns.mean()),
        "return_error": float(returns.std(ddof=1) / len(returns) ** 0.5),
        "episodes": len(returns),
    }
