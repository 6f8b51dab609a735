"""Walk a world by chance: collect transitions, or play whole episodes."""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.rng import next_unit
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray, UintArray


class Walk(NamedTuple):
    """What a walker needs of a world; the pair of state s and action a has the number s * n_actions + a."""

    first: Int32Array
    """[pairs + 1] into the outcomes of a pair."""
    cumulative: FloatArray
    """[outcomes] cumulative probability within a pair; the last one is exactly 1."""
    next_state: Int32Array
    """[outcomes] the state entered, -1 for the end."""
    reward: FloatArray
    """[outcomes]"""
    start: FloatArray
    """[n] cumulative start distribution; the last one is exactly 1."""
    horizon: int
    """Steps after which an episode is cut."""


@kernel
def draw(cumulative: FloatArray, first: int, last: int, unit: float) -> int:
    """Return the first index in first..last-1 whose cumulative probability exceeds ``unit``."""
    while first < last - 1 and cumulative[first] <= unit:
        first += 1
    return first


@kernel
def collect(
    walk: Walk, policy: FloatArray, size: int, seed: UintArray
) -> tuple[Int32Array, Int32Array, Int32Array, FloatArray, BoolArray, BoolArray]:
    """Collect transitions with a policy given by cumulative action probabilities [n, actions].

    Returns:
        State, action, next state (-1 at the end), reward, terminated, truncated; the last transition is cut.
    """
    state = np.empty(size, np.int32)
    action = np.empty(size, np.int32)
    next_state = np.empty(size, np.int32)
    reward = np.empty(size)
    terminated = np.zeros(size, np.bool_)
    truncated = np.zeros(size, np.bool_)
    n_actions = policy.shape[1]
    s = draw(walk.start, 0, len(walk.start), next_unit(seed))
    steps = 0
    for i in range(size):
        a = draw(policy[s], 0, n_actions, next_unit(seed))
        pair = s * n_actions + a
        k = draw(walk.cumulative, walk.first[pair], walk.first[pair + 1], next_unit(seed))
        state[i] = s
        action[i] = a
        next_state[i] = walk.next_state[k]
        reward[i] = walk.reward[k]
        steps += 1
        if walk.next_state[k] < 0:
            terminated[i] = True
        elif steps == walk.horizon or i == size - 1:
            truncated[i] = True
        if terminated[i] or truncated[i]:
            s = draw(walk.start, 0, len(walk.start), next_unit(seed))
            steps = 0
        else:
            s = walk.next_state[k]
    return state, action, next_state, reward, terminated, truncated


@kernel
def rollout_returns(
    walk: Walk, policy: FloatArray, discount: float, seed: UintArray, lengths: IntArray, out: FloatArray
) -> None:
    """Play ``len(out)`` episodes with cumulative action probabilities [n, actions]; write returns and lengths."""
    n_actions = policy.shape[1]
    for episode in range(len(out)):
        s = draw(walk.start, 0, len(walk.start), next_unit(seed))
        total = 0.0
        factor = 1.0
        steps = 0
        while s >= 0 and steps < walk.horizon:
            a = draw(policy[s], 0, n_actions, next_unit(seed))
            pair = s * n_actions + a
            k = draw(walk.cumulative, walk.first[pair], walk.first[pair + 1], next_unit(seed))
            total += factor * walk.reward[k]
            factor *= discount
            s = walk.next_state[k]
            steps += 1
        out[episode] = total
        lengths[episode] = steps
