"""Walk through a world at random: collect transitions, or play whole episodes."""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.rng import next_unit
from selectenv.kernels.threads import SLICE_COST, check_stopped, slices
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray, UintArray

STEP_COST = 16
"""Cost of one step of a walk, in the operations of `SLICE_COST`."""


class Walk(NamedTuple):
    """A world as the samplers need it; the pair of state s and action a has the number s * n_actions + a."""

    first: Int32Array
    """[pairs + 1] range of outcomes of each pair."""
    cumulative: FloatArray
    """[outcomes] cumulative probability within a pair; the last one is exactly 1."""
    next_state: Int32Array
    """[outcomes] the state entered, -1 if the episode terminates."""
    reward: FloatArray
    """[outcomes]"""
    start: FloatArray
    """[n] cumulative start distribution; the last one is exactly 1."""
    horizon: int
    """Steps after which an episode is truncated."""


@inlined
def draw(cumulative: FloatArray, first: int, last: int, unit: float) -> int:
    """Return the first index in first..last-1 whose cumulative probability exceeds ``unit``."""
    while first < last - 1 and cumulative[first] <= unit:
        first += 1
    return first


@inlined
def draw_start(cumulative: FloatArray, unit: float) -> int:
    """Return the first index whose cumulative probability exceeds ``unit``, by bisection: there may be many starts."""
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > unit:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def walk_on(
    walk: Walk,
    policy: FloatArray,
    seed: UintArray,
    at: IntArray,
    state: Int32Array,
    action: Int32Array,
    next_state: Int32Array,
    reward: FloatArray,
    terminated: BoolArray,
    truncated: BoolArray,
) -> None:
    """Fill the columns of `collect`; ``at`` [2] carries the state and the steps of the episode from call to call."""
    n_actions = policy.shape[1]
    s, steps = at[0], at[1]
    for i in range(len(state)):
        if steps == 0:
            s = draw_start(walk.start, next_unit(seed))
        a = draw(policy[s], 0, n_actions, next_unit(seed))
        pair = s * n_actions + a
        k = draw(walk.cumulative, walk.first[pair], walk.first[pair + 1], next_unit(seed))
        state[i] = s
        action[i] = a
        next_state[i] = walk.next_state[k]
        reward[i] = walk.reward[k]
        s = walk.next_state[k]
        steps += 1
        terminated[i] = s < 0
        truncated[i] = s >= 0 and steps == walk.horizon
        if terminated[i] or truncated[i]:
            steps = 0
    at[0], at[1] = s, steps


def collect(
    walk: Walk, policy: FloatArray, size: int, seed: UintArray
) -> tuple[Int32Array, Int32Array, Int32Array, FloatArray, BoolArray, BoolArray]:
    """Collect transitions with a policy given by cumulative action probabilities [n, actions].

    Returns:
        State, action, next state (-1 if terminated), reward, terminated, truncated; an episode that is not finished at
        the last transition is truncated there.
    """
    state, action, next_state = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    reward, terminated, truncated = np.empty(size), np.empty(size, np.bool_), np.empty(size, np.bool_)
    at = np.zeros(2, np.int64)
    for first, last in slices(size, STEP_COST):
        part = slice(first, last)
        numbers = state[part], action[part], next_state[part]
        walk_on(walk, policy, seed, at, *numbers, reward[part], terminated[part], truncated[part])
    truncated[-1] = not terminated[-1]
    return state, action, next_state, reward, terminated, truncated


@kernel
def play_on(
    walk: Walk,
    policy: FloatArray,
    discount: float,
    seed: UintArray,
    max_steps: int,
    at: IntArray,
    partial: FloatArray,
    lengths: IntArray,
    out: FloatArray,
) -> None:
    """Play the episodes of `rollout_returns` for at most ``max_steps`` steps.

    ``at`` [3] carries the episode, the state and the steps of the episode from call to call, ``partial`` [2] its return
    so far and the discount of its next reward.
    """
    n_actions = policy.shape[1]
    episode, s, steps = at[0], at[1], at[2]
    total, factor = partial[0], partial[1]
    while episode < len(out) and max_steps > 0:
        if steps == 0:
            s = draw_start(walk.start, next_unit(seed))
            total, factor = 0.0, 1.0
        before = steps
        last = min(walk.horizon, steps + max_steps)
        while s >= 0 and steps < last:
            a = draw(policy[s], 0, n_actions, next_unit(seed))
            pair = s * n_actions + a
            k = draw(walk.cumulative, walk.first[pair], walk.first[pair + 1], next_unit(seed))
            total += factor * walk.reward[k]
            factor *= discount
            s = walk.next_state[k]
            steps += 1
        max_steps -= steps - before
        if s < 0 or steps == walk.horizon:
            out[episode] = total
            lengths[episode] = steps
            episode += 1
            steps = 0
    at[0], at[1], at[2] = episode, s, steps
    partial[0], partial[1] = total, factor


def rollout_returns(
    walk: Walk, policy: FloatArray, discount: float, seed: UintArray, lengths: IntArray, out: FloatArray
) -> None:
    """Play ``len(out)`` episodes with cumulative action probabilities [n, actions]; write returns and lengths."""
    at, partial = np.zeros(3, np.int64), np.empty(2)
    while at[0] < len(out):
        check_stopped()
        play_on(walk, policy, discount, seed, SLICE_COST // STEP_COST, at, partial, lengths, out)
