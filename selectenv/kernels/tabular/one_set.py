"""Learn from one label set and evaluate one policy, number by number, in models of at most `ELIMINATION_LIMIT` states.

The arithmetic is that of one lane of `solve` and `returns`, operation by operation, so that the results have the same
bits. Without lanes, entries that are 0 under the policy at hand can be skipped, and the loops over lanes cost nothing.
"""

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.model import Chain, Model
from selectenv.kernels.tabular.solve import IMPROVEMENTS, WARM_SWEEPS
from selectenv.kernels.tabular.tolerances import SWITCH_GAIN, fill_ties
from selectenv.typing import BoolArray, FloatArray, Int32Array


@inlined
def choice_value(
    model: Model, weight: FloatArray, choice: int, label: float, impute: float, values: FloatArray
) -> float:
    """Return the value of one choice; ``label`` is 1.0 or 0.0, ``weight`` [outcomes] the discounted probabilities."""
    q = 0.0
    if model.seen[choice]:
        q = model.reward[choice] * label + impute * (1.0 - label)
        for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
            q += weight[k] * values[model.next_state[k]]
    return q


@inlined
def sweep_states(
    model: Model,
    weight: FloatArray,
    labels: FloatArray,
    impute: float,
    labelled_only: bool,
    backwards: bool,
    values: FloatArray,
) -> bool:
    """Update every state once, in place; return whether any value changed."""
    n = len(values)
    changed = False
    for i in range(n):
        s = model.order[n - 1 - i] if backwards else model.order[i]
        first = model.first_choice[s]
        last = model.first_choice[s + 1]
        if first == last:
            continue
        label = labels[s]
        best = -np.inf
        for choice in range(first, last):
            q = choice_value(model, weight, choice, label, impute, values)
            best = q if q > best else best
        new = best * label if labelled_only else best
        changed |= new != values[s]
        values[s] = new
    return changed


@inlined
def improve_choices(
    model: Model,
    weight: FloatArray,
    labels: FloatArray,
    impute: float,
    values: FloatArray,
    margin: float,
    choices: Int32Array,
) -> bool:
    """Switch to choices that gain more than ``margin``; return whether any choice changed."""
    switched = False
    for s in range(len(values)):
        first = model.first_choice[s]
        last = model.first_choice[s + 1]
        if first == last:
            continue
        best = choice_value(model, weight, choices[s], labels[s], impute, values) + margin
        for choice in range(first, last):
            q = choice_value(model, weight, choice, labels[s], impute, values)
            if q > best:
                best = q
                choices[s] = choice
                switched = True
    return switched


@inlined
def evaluate_choices(
    model: Model,
    weight: FloatArray,
    labels: FloatArray,
    impute: float,
    labelled_only: bool,
    choices: Int32Array,
    place: Int32Array,
    matrix: FloatArray,
    right: FloatArray,
    values: FloatArray,
) -> None:
    """Solve (I - gamma P_pi) V = r_pi; if ``labelled_only``, unlabelled states have the row V = 0."""
    n = len(values)
    for i in range(n):
        s = model.order[i]
        row = matrix[i]
        for j in range(n):
            row[j] = 0.0
        row[i] = 1.0
        right[i] = 0.0
        choice = choices[s]
        acts = model.first_choice[s] < model.first_choice[s + 1] and model.seen[choice]
        if not acts or (labelled_only and labels[s] == 0.0):
            continue
        right[i] += model.reward[choice] * labels[s] + impute * (1.0 - labels[s])
        for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
            row[place[model.next_state[k]]] -= weight[k]
    for k in range(n):  # eliminate column k below the diagonal
        upper = matrix[k]
        pivot = 1.0 / upper[k]
        upper[k] = pivot
        for i in range(k + 1, n):
            if matrix[i, k] == 0.0:
                continue
            factor = matrix[i, k] * pivot
            right[i] -= factor * right[k]
            row = matrix[i]
            for j in range(k + 1, n):
                row[j] -= factor * upper[j]
    for i in range(n):  # substitute backwards
        k = n - 1 - i
        upper = matrix[k]
        known = right[k]
        for j in range(k + 1, n):
            if upper[j] != 0.0:
                known -= upper[j] * right[j]
        right[k] = known * upper[k]
        values[model.order[k]] = right[k]


@inlined
def act_on_values(
    model: Model,
    weight: FloatArray,
    s: int,
    label: float,
    impute: float,
    labelled_only: bool,
    tie: float,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policy: FloatArray,
) -> float:
    """Write a state's action values and probabilities [actions]; return its value."""
    first = model.first_choice[s]
    last = model.first_choice[s + 1]
    unknown = 1.0 / len(policy) if first == last else 0.0
    for action in range(len(policy)):
        q[action] = np.nan
        policy[action] = unknown
    if first == last:
        return 0.0
    best = -np.inf
    for choice in range(first, last):
        value = choice_value(model, weight, choice, label, impute, values)
        best = value if value > best else best
        q[model.action[choice]] = value * label if labelled_only else value
    best = best * label if labelled_only else best
    count = 0.0
    for choice in range(first, last):
        action = model.action[choice]
        if q[action] >= best - tie:
            policy[action] = 1.0
            count += 1.0
    count = 1.0 / count
    for action in range(len(policy)):
        policy[action] *= count
        if labelled_only:
            policy[action] = policy[action] * label + behaviour[action] * (1.0 - label)
    return best


@kernel
def learn_set(
    model: Model,
    mask: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policy: FloatArray,
) -> None:
    """Learn from one label set ``mask`` [n]; see `learn_blocks` for the arguments, here without blocks and lanes."""
    n = len(values)
    labels = np.empty(n)
    scale = np.empty(1)
    tie = np.empty(1)
    scale[0] = 1.0 if abs(impute) < 1.0 else abs(impute)
    for s in range(n):
        labels[s] = 1.0 if mask[s] else 0.0
        if mask[s]:
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                scale[0] = max(scale[0], abs(model.reward[choice]))
    fill_ties(scale, gamma, tie)
    weight = np.empty(len(model.probability))
    for k in range(len(weight)):
        weight[k] = gamma * model.probability[k]
    if model.acyclic:
        for i in range(n):
            s = model.order[i]
            values[s] = act_on_values(
                model, weight, s, labels[s], impute, labelled_only, tie[0], behaviour[s], values, q[s], policy[s]
            )
        return
    values[:] = 0.0
    changed = True
    sweeps = 0
    while changed and sweeps < WARM_SWEEPS:
        changed = sweep_states(model, weight, labels, impute, labelled_only, sweeps % 2 == 1, values)
        sweeps += 1
    if changed:
        choices = np.empty(n, np.int32)
        place = np.empty(n, np.int32)
        matrix = np.empty((n, n))
        right = np.empty(n)
        for i in range(n):
            place[model.order[i]] = i
            choices[i] = model.first_choice[i]
        for i in range(IMPROVEMENTS):
            margin = 0.0 if i == 0 else SWITCH_GAIN * scale[0]
            if not improve_choices(model, weight, labels, impute, values, margin, choices) and i > 0:
                break
            evaluate_choices(model, weight, labels, impute, labelled_only, choices, place, matrix, right, values)
    for s in range(n):
        act_on_values(model, weight, s, labels[s], impute, labelled_only, tie[0], behaviour[s], values, q[s], policy[s])


@kernel
def return_of_policy(
    model: Model, chain: Chain, start: FloatArray, horizon: int, discount: float, one_sweep: bool, policy: FloatArray
) -> float:
    """Return the expected return of one policy [n, actions]; see `returns_of_blocks` for the other arguments."""
    n = len(policy)
    weight = np.zeros(len(chain.successor))
    reward = np.zeros(n)
    value = np.zeros(n)
    following = np.empty(n)
    for s in range(n):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            share = policy[s, model.action[choice]]
            if share == 0.0:
                continue
            reward[s] += share * model.reward[choice]
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                weight[chain.place[k]] += share * (discount * model.probability[k])
    if one_sweep:
        for i in range(n):
            s = model.order[i]
            value[s] = step_state_back(chain, weight, reward, s, value)
    else:
        for _ in range(horizon):
            for s in range(n):
                following[s] = step_state_back(chain, weight, reward, s, value)
            value, following = following, value
    total = 0.0
    for s in range(n):
        if start[s] > 0.0:
            total += start[s] * value[s]
    return total


@inlined
def step_state_back(chain: Chain, weight: FloatArray, reward: FloatArray, s: int, value: FloatArray) -> float:
    """Return r_pi + P_pi v of state ``s``."""
    base: float = reward[s]
    for group in range(chain.first_group[s], chain.first_group[s + 1]):
        i = 4 * group
        base = (base + weight[i] * value[chain.successor[i]] + weight[i + 1] * value[chain.successor[i + 1]]) + (
            weight[i + 2] * value[chain.successor[i + 2]] + weight[i + 3] * value[chain.successor[i + 3]]
        )
    return base
