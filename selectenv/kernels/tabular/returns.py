"""The exact expected return of policies: rewards summed backwards, or the state distribution carried forwards.

With r_pi and P_pi the reward and transition matrix of a policy, the value with t steps to go is
v_t = r_pi + discount P_pi v_{t-1}, v_0 = 0, and the return is the start distribution times v_horizon.
"""

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.model import Chain, Model
from selectenv.kernels.threads import slices
from selectenv.typing import BoolArray, FloatArray


@inlined
def policy_chain(
    model: Model, chain: Chain, policy: FloatArray, discount: float, weight: FloatArray, reward: FloatArray
) -> None:
    """Write P_pi (times the discount, by place) and r_pi of the policy [n, actions, lanes] of each lane."""
    weight[:] = 0.0
    reward[:] = 0.0
    for s in range(len(reward)):
        expected = reward[s]
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            share = policy[s, model.action[choice]]
            r = model.reward[choice]
            for w in range(len(share)):
                expected[w] += share[w] * r
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                p = discount * model.probability[k]
                entry = weight[chain.place[k]]
                for w in range(len(share)):
                    entry[w] += share[w] * p


@inlined
def step_back(chain: Chain, weight: FloatArray, reward: FloatArray, s: int, value: FloatArray, out: FloatArray) -> None:
    """Write r_pi + P_pi v of state ``s`` into ``out`` [lanes]."""
    first = chain.first_group[s]
    last = chain.first_group[s + 1]
    base = reward[s]
    if first == last:
        for w in range(len(out)):
            out[w] = base[w]
    for group in range(first, last):
        i = 4 * group
        weight_0, weight_1, weight_2, weight_3 = weight[i], weight[i + 1], weight[i + 2], weight[i + 3]
        value_0, value_1 = value[chain.successor[i]], value[chain.successor[i + 1]]
        value_2, value_3 = value[chain.successor[i + 2]], value[chain.successor[i + 3]]
        for w in range(len(out)):
            out[w] = (base[w] + weight_0[w] * value_0[w] + weight_1[w] * value_1[w]) + (
                weight_2[w] * value_2[w] + weight_3[w] * value_3[w]
            )
        base = out


@inlined
def average_over_starts(start: FloatArray, value: FloatArray, out: FloatArray) -> None:
    """Write the start distribution [n] times the values [n, lanes] into ``out`` [lanes]."""
    for w in range(len(out)):
        out[w] = 0.0
    for s in range(len(start)):
        if start[s] > 0.0:
            v = value[s]
            for w in range(len(out)):
                out[w] += start[s] * v[w]


@kernel
def returns_by_one_sweep(
    model: Model, chain: Chain, start: FloatArray, discount: float, policies: FloatArray, out: FloatArray
) -> None:
    """Write returns in a model without cycles whose paths all end before the horizon: every state once."""
    blocks, n, _, lanes = policies.shape
    weight = np.empty((len(chain.successor), lanes))
    reward = np.empty((n, lanes))
    value = np.empty((n, lanes))
    for block in range(blocks):
        policy_chain(model, chain, policies[block], discount, weight, reward)
        value[:] = 0.0
        for i in range(n):
            s = model.order[i]
            step_back(chain, weight, reward, s, value, value[s])
        average_over_starts(start, value, out[block])


@kernel
def returns_after_steps(
    model: Model,
    chain: Chain,
    start: FloatArray,
    discount: float,
    steps: int,
    fresh: bool,
    policies: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Move the values [1 or blocks, n, lanes] ``steps`` steps further from the horizon and write returns.

    If ``fresh``, values start from 0, and a single block is scratch space that all blocks share.
    """
    blocks, n, _, lanes = policies.shape
    weight = np.empty((len(chain.successor), lanes))
    reward = np.empty((n, lanes))
    scratch = np.empty((n, lanes))
    for block in range(blocks):
        policy_chain(model, chain, policies[block], discount, weight, reward)
        value = values[block if len(values) > 1 else 0]
        following = scratch
        if fresh:
            value[:] = 0.0
        for _ in range(steps):
            for s in range(n):
                step_back(chain, weight, reward, s, value, following[s])
            value, following = following, value
        average_over_starts(start, value, out[block])
        if steps % 2 == 1:  # the two arrays have changed places
            following[:] = value


def returns_of_blocks(
    model: Model,
    chain: Chain,
    start: FloatArray,
    horizon: int,
    discount: float,
    one_sweep: bool,
    policies: FloatArray,
    out: FloatArray,
) -> None:
    """Write the expected return of every policy [blocks, n, actions, lanes] into ``out`` [blocks, lanes].

    Args:
        model: the world.
        chain: its successors.
        start: [n] start distribution.
        horizon: steps after which an episode is truncated.
        discount: discount.
        one_sweep: whether the model has no cycle and no path longer than the horizon.
        policies: action probabilities.
        out: receives the returns.
    """
    if one_sweep:
        returns_by_one_sweep(model, chain, start, discount, policies, out)
        return
    blocks, n, _, lanes = policies.shape
    parts = slices(horizon, blocks * lanes * (n + len(chain.successor)))
    values = np.empty((0, n, lanes))
    for first, last in parts:
        if first == 0:
            values = np.empty((1 if last == horizon else blocks, n, lanes))
        returns_after_steps(model, chain, start, discount, last - first, first == 0, policies, values, out)


@kernel
def improve_values(
    model: Model,
    forced: FloatArray,
    is_forced: BoolArray,
    steps: int,
    discount: float,
    value: FloatArray,
    scratch: FloatArray,
) -> None:
    """Move the values [n] of `best_values` ``steps`` steps further from the horizon, in place."""
    n = len(is_forced)
    now, following = value, scratch
    for _ in range(steps):
        for s in range(n):
            best = 0.0 if is_forced[s] else -np.inf
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                worth = model.reward[choice]
                for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                    worth += discount * model.probability[k] * now[model.next_state[k]]
                if is_forced[s]:
                    best += forced[s, model.action[choice]] * worth
                elif worth > best:
                    best = worth
            following[s] = best
        now, following = following, now
    if steps % 2 == 1:  # the two arrays have changed places
        value[:] = scratch


def best_values(model: Model, forced: FloatArray, is_forced: BoolArray, horizon: int, discount: float) -> FloatArray:
    """Return the most that any policy can still earn from each state [n] with ``horizon`` steps to go.

    States marked in ``is_forced`` follow the action probabilities ``forced`` [n, actions]; the others are free to
    choose at every step: v_t(s) = max_a r(s, a) + discount sum_s' P(s' | s, a) v_{t-1}(s').
    """
    value, scratch = np.zeros(len(is_forced)), np.empty(len(is_forced))
    for first, last in slices(horizon, len(model.reward) + 4 * len(model.next_state)):
        improve_values(model, forced, is_forced, last - first, discount, value, scratch)
    return value


@kernel
def add_visits(
    model: Model,
    policy: FloatArray,
    steps: int,
    discount: float,
    mass: FloatArray,
    scratch: FloatArray,
    visits: FloatArray,
) -> None:
    """Carry the distribution ``mass`` [n] ``steps`` steps forwards, in place, and add it up in ``visits`` [n]."""
    n = len(mass)
    now, following = mass, scratch
    for _ in range(steps):
        following[:] = 0.0
        for s in range(n):
            if now[s] == 0.0:
                continue
            visits[s] += now[s]
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                share = discount * now[s] * policy[s, model.action[choice]]
                if share > 0.0:
                    for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                        following[model.next_state[k]] += share * model.probability[k]
        now, following = following, now
    if steps % 2 == 1:  # the two arrays have changed places
        mass[:] = scratch


def expected_visits(model: Model, policy: FloatArray, start: FloatArray, steps: int, discount: float) -> FloatArray:
    """Return sum_t discount^t P(S_t = s) for t < steps under ``policy`` [n, actions]: the forward direction."""
    mass, scratch, visits = start.copy(), np.empty(len(start)), np.zeros(len(start))
    for first, last in slices(steps, len(model.reward) + 4 * len(model.next_state)):
        add_visits(model, policy, last - first, discount, mass, scratch, visits)
    return visits
