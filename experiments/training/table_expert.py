"""Train a tabular expert of Breakout: repeatedly collect data with the current table and solve the empirical model."""

from pathlib import Path
from typing import Any

import numpy as np

from experiments.training.expert_returns import FINAL_EPISODES, FINAL_SEED, expert_returns, measured
from selectenv.checks import check_int, check_real
from selectenv.datasets import OfflineDataset
from selectenv.datasets.images import Images
from selectenv.datasets.minatar_collection import collect_play, play_spec
from selectenv.domains.minatar.experts import TableExpert
from selectenv.domains.minatar.games import MinAtarWorld
from selectenv.errors import DatasetError
from selectenv.io.progress import progress
from selectenv.io.weights import save_weights
from selectenv.learners import make_learner

ROUNDS, ROUND_SIZE = 20, 100_000


def merge(one: OfflineDataset, other: OfflineDataset) -> OfflineDataset:
    """Return the transitions of both datasets; images with the same hash are the same state.

    Raises:
        DatasetError: the hashes of the datasets differ, or two different images have the same hash.
    """
    assert one.images is not None
    assert other.images is not None
    if one.images.salt or other.images.salt:
        raise DatasetError("datasets whose images use a salted hash cannot be merged: their ids are not comparable")
    ids, first = np.unique(np.concatenate([one.ids, other.ids]), return_index=True)
    words = np.concatenate([one.images.words, other.images.words])[first]

    for part in (one, other):
        assert part.images is not None
        if (words[np.searchsorted(ids, part.ids)] != part.images.words).any():
            raise DatasetError("two different images have the same hash")

    def joined(name: str) -> Any:
        columns = []
        for part in (one, other):
            column = getattr(part, name)
            if name in ("state", "next_state"):
                number = np.append(np.searchsorted(ids, part.ids), -1).astype(np.int32)
                column = number[column]
            columns.append(column)
        return np.concatenate(columns)

    names = ("state", "action", "next_state", "terminated", "truncated", "episode_start", "hidden_reward")
    return OfflineDataset(
        ids=ids,
        n_actions=one.n_actions,
        **{name: joined(name) for name in names},
        spec=one.spec,
        observations=Images(words, one.images.shape),
    )


def train_tabular_expert(
    game: str, path: Path, *, rounds: int = ROUNDS, size: int = ROUND_SIZE, epsilon: float = 0.1, seed: int = 0
) -> dict[str, Any]:
    """Train a tabular expert, write it to a file and return its card.

    Each round plays ``size`` steps with the epsilon-greedy policy of the table, then solves the empirical model of all
    transitions so far with all rewards known; actions that were never taken are excluded.
    """
    world = MinAtarWorld(game)
    check_int("rounds", rounds)
    check_real("epsilon", epsilon, "(0, 1]")
    expert: TableExpert | None = None
    data: OfflineDataset | None = None
    curve = []
    for number in progress(range(rounds), rounds, f"expert of {game}"):
        spec = play_spec(
            world,
            expert_share=0.0 if expert is None else 1 - epsilon,
            mixture="all",
            expert=expert,
            size=size,
            seed=seed + number,
        )
        more = collect_play(world, spec, expert)
        data = more if data is None else merge(data, more)
        fitted = make_learner(unseen="exclude").fit(data, data.all_rewards)
        table: dict[str, Any] = {"ids": data.ids, "action": fitted.table.argmax(axis=1).astype(np.uint8)}
        expert = TableExpert(table, {"actions": world.actions}, world)
        assert more.hidden_reward is not None
        curve.append(((number + 1) * size, float(more.hidden_reward.sum() / more.episode_start.sum()), 0.0))
    assert expert is not None
    card = {
        "game": game,
        "actions": world.actions,
        "command": f"selectenv train-expert {game} --recipe tabular --steps {rounds * size} --seed {seed}",
        "seed": seed,
        "steps_trained": rounds * size,
        **measured(expert_returns(world, expert, FINAL_EPISODES, seed + FINAL_SEED)),
        "settings": {"rounds": rounds, "epsilon": epsilon, "states": len(data.ids) if data else 0},
        "curve": curve,
    }
    save_weights(path, table, card)
    return card
