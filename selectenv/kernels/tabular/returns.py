"""The expected return of policies, exactly: rewards summed backwards, or the state distribution carried forwards.

With r_pi and P_pi the reward and transition matrix of a policy, the value with t steps to go is
v_t = r_pi + discount P_pi v_{t-1}, v_0 = 0, and the return is the start distribution times v_horizon.
"""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Chain, Model
from selectenv.typing import BoolArray, FloatArray


@kernel
def policy_chain(
    model: Model, chain: Chain, policy: FloatArray, discount: float, weight: FloatArray, reward: FloatArray
) -> None:
    """Write P_pi (times the discount, by place) and r_pi of each lane's policy [n, actions, lanes]."""
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


@kernel
def step_back(chain: Chain, weight: FloatArray, reward: FloatArray, s: int, value: FloatArray, out: FloatArray) -> None:
    """Write r_pi + P_pi v of state ``s`` into ``out``."""
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


@kernel
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

    ``one_sweep`` says that no path is longer than the horizon and the model has no cycle: then successors first,
    every state once, is exact.
    """
    blocks, n, _, lanes = policies.shape
    weight = np.empty((len(chain.successor), lanes))
    reward = np.empty((n, lanes))
    value = np.empty((n, lanes))
    following = np.empty((n, lanes))
    for block in range(blocks):
        policy_chain(model, chain, policies[block], discount, weight, reward)
        value[:] = 0.0
        if one_sweep:
            for s in model.order:
                step_back(chain, weight, reward, s, value, value[s])
        else:
            for _ in range(horizon):
                for s in range(n):
                    step_back(chain, weight, reward, s, value, following[s])
                value, following = following, value
        total = out[block]
        total[:] = 0.0
        for s in range(n):
            if start[s] > 0.0:
                v = value[s]
                for w in range(lanes):
                    total[w] += start[s] * v[w]


@kernel
def best_values(model: Model, forced: FloatArray, is_forced: BoolArray, horizon: int, discount: float) -> FloatArray:
    """Return the most that any policy can still earn from each state [n] with ``horizon`` steps to go.

    States marked in ``is_forced`` follow the action probabilities ``forced`` [n, actions]; the others are free to
    choose at every step: v_t(s) = max_a r(s, a) + discount sum_s' P(s' | s, a) v_{t-1}(s').
    """
    n = len(is_forced)
    value = np.zeros(n)
    following = np.empty(n)
    for _ in range(horizon):
        for s in range(n):
            best = 0.0 if is_forced[s] else -np.inf
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                worth = model.reward[choice]
                for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                    worth += discount * model.probability[k] * value[model.next_state[k]]
                if is_forced[s]:
                    best += forced[s, model.action[choice]] * worth
                elif worth > best:
                    best = worth
            following[s] = best
        value, following = following, value
    return value


@kernel
def expected_visits(model: Model, policy: FloatArray, start: FloatArray, steps: int, discount: float) -> FloatArray:
    """Return sum_t discount^t P(S_t = s) for t < steps under ``policy`` [n, actions]: the forward direction."""
    n = len(start)
    visits = np.zeros(n)
    now = start.copy()
    following = np.empty(n)
    for _ in range(steps):
        following[:] = 0.0
        for s in range(n):
            if now[s] == 0.0:
                continue
            visits[s] += now[s]
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                mass = discount * now[s] * policy[s, model.action[choice]]
                if mass > 0.0:
                    for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                        following[model.next_state[k]] += mass * model.probability[k]
        now, following = following, now
    return visits
