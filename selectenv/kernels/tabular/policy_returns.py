"""The exact expected return of policies in large worlds: one policy at a time, without the actions it never takes."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Model
from selectenv.kernels.threads import slices
from selectenv.typing import FloatArray, Int32Array


@kernel
def fill_chain(
    model: Model,
    policies: FloatArray,
    lane: int,
    discount: float,
    first: Int32Array,
    successor: Int32Array,
    weight: FloatArray,
    reward: FloatArray,
) -> None:
    """Write r_pi [n] and the rows of P_pi, times the discount, of one of the policies [n, actions, lanes]."""
    at = 0
    for s in range(len(reward)):
        first[s] = at
        expected = 0.0
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            share = policies[s, model.action[choice], lane]
            if share == 0.0:
                continue
            expected += share * model.reward[choice]
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                successor[at] = model.next_state[k]
                weight[at] = discount * share * model.probability[k]
                at += 1
        reward[s] = expected
    first[len(reward)] = at


@kernel
def step_back_through(
    first: Int32Array,
    successor: Int32Array,
    weight: FloatArray,
    reward: FloatArray,
    start: FloatArray,
    steps: int,
    value: FloatArray,
    scratch: FloatArray,
) -> float:
    """Move the values [n] ``steps`` steps further from the horizon, v = r_pi + P_pi v, in place; return the return."""
    now, following = value, scratch
    for _ in range(steps):
        for s in range(len(reward)):
            total = reward[s]
            for k in range(first[s], first[s + 1]):
                total += weight[k] * now[successor[k]]
            following[s] = total
        now, following = following, now
    if steps % 2 == 1:  # the two arrays have changed places
        value[:] = scratch
    total = 0.0
    for s in range(len(start)):
        total += start[s] * value[s]
    return float(total)


def returns_one_by_one(
    model: Model, start: FloatArray, horizon: int, discount: float, policies: FloatArray, out: FloatArray
) -> None:
    """Write the expected return of every policy [blocks, n, actions, lanes] into ``out`` [blocks, lanes].

    See `returns_of_blocks` for the arguments. A step costs one operation per outcome of the actions a policy takes.
    """
    n, room = model.n_states, len(model.next_state)
    first, successor, weight = np.empty(n + 1, np.int32), np.empty(room, np.int32), np.empty(room)
    reward, value, scratch = np.empty(n), np.empty(n), np.empty(n)
    for block in range(len(policies)):
        for lane in range(policies.shape[3]):
            fill_chain(model, policies[block], lane, discount, first, successor, weight, reward)
            value[:] = 0.0
            for begin, end in slices(horizon, 4 * (n + int(first[n]))):
                out[block, lane] = step_back_through(
                    first, successor, weight, reward, start, end - begin, value, scratch
                )
