"""An expert of Breakout without a network: play with what is known, solve the empirical model exactly, repeat."""

from typing import Any

import numpy as np

from agents.progress import progress
from selectenv.datasets import OfflineDataset
from selectenv.datasets.pictures import Pictures
from selectenv.datasets.play import collect_play, play_spec
from selectenv.domains.minatar import MinAtarWorld
from selectenv.domains.minatar_experts import TableExpert
from selectenv.evaluators import GameReturns
from selectenv.learners import make_learner


def merge(one: OfflineDataset, other: OfflineDataset) -> OfflineDataset:
    """Return the transitions of both; pictures of the same hash are the same state."""
    assert one.pictures is not None and other.pictures is not None
    ids, first = np.unique(np.concatenate([one.ids, other.ids]), return_index=True)
    words = np.concatenate([one.pictures.words, other.pictures.words])[first]

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
        ids=ids, n_actions=one.n_actions, **{name: joined(name) for name in names}, spec=one.spec,
        pictures=Pictures(words, one.pictures.shape),
    )  # fmt: skip


def train_tabular_expert(
    game: str = "Breakout", *, rounds: int = 20, size: int = 100_000, epsilon: float = 0.1, seed: int = 0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the table of an expert, ids and actions, and its card."""
    world = MinAtarWorld(game)
    expert: TableExpert | None = None
    data: OfflineDataset | None = None
    curve = []
    for number in progress(range(rounds), rounds, f"expert of {game}"):
        spec = play_spec(
            world, expert_share=0.0 if expert is None else 1 - epsilon, mixture="all", expert=expert, size=size,
            seed=seed + number,
        )  # fmt: skip
        more = collect_play(world, spec, expert)
        data = more if data is None else merge(data, more)
        learned = make_learner(data, unseen="exclude").learn(np.ones(data.n_states, bool))
        table = {"ids": data.ids, "action": learned.policy.argmax(axis=1).astype(np.uint8)}
        expert = TableExpert(table, {}, world)
        curve.append(((number + 1) * size, data.n_states, float(more.hidden_reward.sum() / more.episode_start.sum())))
        print(curve[-1])
    returns = GameReturns(world, data, 100, seed + 1_000_003).episode_returns(learned.policy[None])[0]
    print(returns.mean(), returns.std() / 10)
    return table, {}
