"""What an expert earns, and the data that mixtures of its actions and random ones give: the numbers on its card."""

from typing import Any

import numpy as np

from selectenv.datasets.minatar_collection import collect_play, play_spec
from selectenv.domains.minatar.experts import Expert
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.evaluation.played_episodes import EPISODE_LIMIT, warn_of_long_episodes
from selectenv.typing import FloatArray

FINAL_EPISODES = 100
FINAL_SEED = 1_000_003
"""Added to the training seed, so that the final episodes differ from those seen in training."""
RANDOM_SHARES = (0.0, 0.3, 0.5, 0.7, 1.0)
DATA_SIZE = 1_000_000
"""Transitions of the mixtures on a card, as published."""


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
        result = games.step(expert.actions(games.images[playing]), playing)
        total[playing] += result.reward
        playing = playing[~(result.terminated | result.truncated)]
    warn_of_long_episodes(world.name, len(playing))
    return total


def measured(returns: FloatArray) -> dict[str, Any]:
    """Return mean, standard error and number of returns as entries of a card."""
    return {
        "return": float(returns.mean()),
        "return_error": float(returns.std(ddof=1) / len(returns) ** 0.5),
        "episodes": len(returns),
    }


def mixture_counts(world: MinAtarWorld, expert: Expert) -> list[list[float]]:
    """Return rows (random share, unique states, sum of rewards) of the data that mixtures of an expert collect."""
    rows: list[list[float]] = []
    for share in RANDOM_SHARES:
        spec = play_spec(world, expert_share=1 - share, mixture="all", expert=expert, size=DATA_SIZE, seed=0)
        data = collect_play(world, spec, expert)
        assert data.hidden_reward is not None
        rows.append([share, data.n_states, float(data.hidden_reward.sum())])
    return rows
