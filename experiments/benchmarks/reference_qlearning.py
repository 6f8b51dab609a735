"""The published procedure for evaluating a label set in plain Python: the reference of the benchmark."""

import numpy as np

from selectenv.datasets import OfflineDataset
from selectenv.domains.tabular import TabularWorld
from selectenv.typing import BoolArray

STEP_SIZE, GAMMA, STOP = 0.05, 0.99, 0.001
EPISODES = 10_000


def reference_performance(
    world: TabularWorld, data: OfflineDataset, labels: BoolArray, passes: int, seed: int = 0
) -> float:
    """Return the mean return of simulated episodes after Q-learning over all samples.

    Args:
        world: The world to simulate.
        data: The dataset to learn from.
        labels: Which states are labelled, shape [n_states]; other rewards are imputed with 0.
        passes: Maximum number of passes over the data.
        seed: Seed of the order of samples and of the episodes.
    """
    assert data.hidden_reward is not None
    rng = np.random.default_rng(seed)
    samples = list(
        zip(
            data.state.tolist(),
            data.action.tolist(),
            data.next_state.tolist(),
            np.where(labels[data.state], data.hidden_reward, 0.0).tolist(),
            strict=True,
        )
    )
    q = [[0.0] * world.n_actions for _ in range(world.n_states)]
    before = float("inf")
    for _ in range(passes):
        error = 0.0
        for i in rng.permutation(len(samples)).tolist():
            state, action, following, reward = samples[i]
            target = reward + GAMMA * max(q[following]) if following >= 0 else reward
            delta = target - q[state][action]
            q[state][action] += STEP_SIZE * delta
            error += abs(delta)
        if abs(before - error / len(samples)) < STOP:
            break
        before = error / len(samples)
    best = [[a for a, value in enumerate(row) if value == max(row)] for row in q]
    pair = world.state * world.n_actions + world.action
    outcomes = [np.flatnonzero(pair == i) for i in range(world.n_states * world.n_actions)]
    total = 0.0
    for _ in range(EPISODES):
        state = int(np.searchsorted(np.cumsum(world.start), rng.random(), side="right"))
        for _ in range(world.horizon):
            action = best[state][int(rng.integers(len(best[state])))]
            rows = outcomes[state * world.n_actions + action]
            chosen = min(
                int(np.searchsorted(np.cumsum(world.probability[rows]), rng.random(), side="right")), len(rows) - 1
            )
            total += float(world.reward[rows[chosen]])
            state = int(world.next_state[rows[chosen]])
            if state < 0:
                break
    return total / EPISODES
