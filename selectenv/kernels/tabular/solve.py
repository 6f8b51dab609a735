"""Solve a model for many label sets at once: one SIMD lane a label set.

For labels L the optimal values satisfy, for every state s,

    V(s) = max_a  r_L(s, a) + gamma sum_s' P(s' | s, a) V(s'),    r_L = r where s is in L, else the imputed reward,

and in the truncated form V(s) = 0 outside L. Gauss-Seidel sweeps in a good order come first: they are exact after one
sweep without cycles, and reach the fixed point to the last bit where rewards end at finite paths. What they leave
open, policy iteration finishes: each policy is evaluated by eliminating I - gamma P_pi, which needs no pivoting
because its rows are diagonally dominant, with the fill-in known beforehand.
"""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Model
from selectenv.typing import BoolArray, FloatArray, Int32Array

LANES = 128
"""At most so many label sets are solved together; measured best of 16 to 128, where short loops no longer cost."""
TIE = 1e-8
"""Actions within this of the best are equally good."""
WARM_SWEEPS = 16
"""Sweeps before policy iteration takes over."""
SWITCH_GAIN = 1e-11
"""Policy iteration changes an action only for more than this, so rounding cannot make it cycle."""


@kernel
def reward_scale(model: Model, impute: float) -> float:
    """Return the largest magnitude of a reward, at least 1."""
    return max(1.0, abs(impute), float(np.abs(model.reward).max()))


@kernel
def tie_tolerance(model: Model, gamma: float, impute: float) -> float:
    """Return how close to the best an action must be: `TIE`, or more where large rewards make rounding larger."""
    return max(TIE, 1e-13 * reward_scale(model, impute) / (1.0 - gamma + 1e-6))


@kernel
def choice_values(
    model: Model, choice: int, label: FloatArray, gamma: float, impute: float, values: FloatArray, q: FloatArray
) -> None:
    """Write the value of one choice, a lane a label set, into ``q``."""
    if not model.seen[choice]:
        q[:] = 0.0
        return
    reward = model.reward[choice]
    for w in range(len(q)):
        q[w] = reward * label[w] + impute * (1.0 - label[w])
    for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
        weight = gamma * model.probability[k]
        beyond = values[model.next_state[k]]
        for w in range(len(q)):
            q[w] += weight * beyond[w]


@kernel
def sweep(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    truncated: bool,
    backwards: bool,
    values: FloatArray,
    scratch: FloatArray,
) -> float:
    """Update every state once, in place; return the largest change."""
    q = scratch[0]
    best = scratch[1]
    change = scratch[2]
    change[:] = 0.0
    n = len(model.order)
    for i in range(n):
        s = model.order[n - 1 - i] if backwards else model.order[i]
        first = model.first_choice[s]
        last = model.first_choice[s + 1]
        if first == last:
            continue
        label = labels[s]
        choice_values(model, first, label, gamma, impute, values, best)
        for choice in range(first + 1, last):
            choice_values(model, choice, label, gamma, impute, values, q)
            for w in range(len(q)):
                best[w] = q[w] if q[w] > best[w] else best[w]
        value = values[s]
        for w in range(len(q)):
            new = best[w] * label[w] if truncated else best[w]
            moved = abs(new - value[w])
            change[w] = moved if moved > change[w] else change[w]
            value[w] = new
    return float(change.max())


@kernel
def improve(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    values: FloatArray,
    margin: float,
    policy: Int32Array,
    scratch: FloatArray,
) -> bool:
    """Switch to better choices where they gain more than ``margin``; return whether any was."""
    q = scratch[0]
    best = scratch[1]
    switched = False
    for s in range(model.first_choice.size - 1):
        first = model.first_choice[s]
        current = policy[s]
        best[:] = -np.inf
        for choice in range(first, model.first_choice[s + 1]):  # first what the current choices are worth
            choice_values(model, choice, labels[s], gamma, impute, values, q)
            for w in range(len(q)):
                best[w] = q[w] + margin if current[w] == choice else best[w]
        for choice in range(first, model.first_choice[s + 1]):
            choice_values(model, choice, labels[s], gamma, impute, values, q)
            for w in range(len(q)):
                if q[w] > best[w]:
                    best[w] = q[w]
                    current[w] = choice
                    switched = True
    return switched


@kernel
def evaluate(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    truncated: bool,
    policy: Int32Array,
    place: Int32Array,
    matrix: FloatArray,
    values: FloatArray,
) -> None:
    """Solve (I - gamma P_pi) V = r_pi for every lane; rows of truncated states read V = 0."""
    n = len(place)
    slot = model.slot
    matrix[:] = 0.0
    for s in range(n):
        row = place[s]
        matrix[slot[row, row]][:] = 1.0
        right = values[s]
        right[:] = 0.0
        label = labels[s]
        current = policy[s]
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            if not model.seen[choice]:
                continue
            reward = model.reward[choice]
            for w in range(len(right)):
                taken = 1.0 if current[w] == choice else 0.0
                taken = taken * label[w] if truncated else taken
                right[w] += taken * (reward * label[w] + impute * (1.0 - label[w]))
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                weight = gamma * model.probability[k]
                entry = matrix[slot[row, place[model.next_state[k]]]]
                for w in range(len(right)):
                    taken = 1.0 if current[w] == choice else 0.0
                    taken = taken * label[w] if truncated else taken
                    entry[w] -= taken * weight
    for k in range(n):  # eliminate column k below the diagonal
        pivot = matrix[slot[k, k]]
        right_k = values[model.order[k]]
        for w in range(len(pivot)):
            pivot[w] = 1.0 / pivot[w]
        for i in range(k + 1, n):
            if slot[i, k] < 0:
                continue
            factor = matrix[slot[i, k]]
            right_i = values[model.order[i]]
            for w in range(len(pivot)):
                factor[w] *= pivot[w]
                right_i[w] -= factor[w] * right_k[w]
            for j in range(k + 1, n):
                if slot[k, j] >= 0:
                    upper = matrix[slot[k, j]]
                    entry = matrix[slot[i, j]]
                    for w in range(len(pivot)):
                        entry[w] -= factor[w] * upper[w]
    for i in range(n):  # substitute backwards
        k = n - 1 - i
        pivot = matrix[slot[k, k]]
        right_k = values[model.order[k]]
        for j in range(k + 1, n):
            if slot[k, j] >= 0:
                upper = matrix[slot[k, j]]
                known = values[model.order[j]]
                for w in range(len(pivot)):
                    right_k[w] -= upper[w] * known[w]
        for w in range(len(pivot)):
            right_k[w] *= pivot[w]


@kernel
def solve(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    truncated: bool,
    values: FloatArray,
    policy: Int32Array,
    place: Int32Array,
    matrix: FloatArray,
    scratch: FloatArray,
) -> None:
    """Write the optimal values [n, lanes] for ``labels`` (1.0 or 0.0, [n, lanes]) into ``values``."""
    values[:] = 0.0
    if model.acyclic:
        sweep(model, labels, gamma, impute, truncated, False, values, scratch)
        return
    for i in range(WARM_SWEEPS):
        if sweep(model, labels, gamma, impute, truncated, i % 2 == 1, values, scratch) == 0.0:
            return
    for s in range(len(place)):
        policy[s] = model.first_choice[s]
    margin = 0.0
    while improve(model, labels, gamma, impute, values, margin, policy, scratch) or margin == 0.0:
        evaluate(model, labels, gamma, impute, truncated, policy, place, matrix, values)
        margin = SWITCH_GAIN * reward_scale(model, impute)


@kernel
def greedy(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    truncated: bool,
    tie: float,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policy: FloatArray,
    scratch: FloatArray,
) -> None:
    """Write action values and action probabilities [n, actions, lanes]; equally good actions share alike.

    In the truncated form, states without a label have no action values (0) and follow ``behaviour``.
    """
    n, n_actions, lanes = policy.shape
    best = scratch[0]
    count = scratch[1]
    for s in range(n):
        first = model.first_choice[s]
        last = model.first_choice[s + 1]
        label = labels[s]
        if first == last:
            policy[s] = 1.0 / n_actions
            q[s] = np.nan
            continue
        policy[s] = 0.0
        q[s] = np.nan
        best[:] = -np.inf
        for choice in range(first, last):
            action_q = q[s, model.action[choice]]
            choice_values(model, choice, label, gamma, impute, values, action_q)
            for w in range(lanes):
                action_q[w] = action_q[w] * label[w] if truncated else action_q[w]
                best[w] = action_q[w] if action_q[w] > best[w] else best[w]
        count[:] = 0.0
        for choice in range(first, last):
            action_q = q[s, model.action[choice]]
            share = policy[s, model.action[choice]]
            for w in range(lanes):
                share[w] = 1.0 if action_q[w] >= best[w] - tie else 0.0
                count[w] += share[w]
        for w in range(lanes):
            count[w] = 1.0 / count[w]
        for action in range(n_actions):
            share = policy[s, action]
            for w in range(lanes):
                share[w] *= count[w]
                if truncated:
                    share[w] = share[w] * label[w] + behaviour[s, action] * (1.0 - label[w])


@kernel
def learn_blocks(
    model: Model,
    masks: BoolArray,
    gamma: float,
    impute: float,
    truncated: bool,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policies: FloatArray,
) -> None:
    """Learn from every row of ``masks`` [sets, n], in a model without cycles or of at most `ELIMINATION_LIMIT` states.

    Args:
        model: the empirical model.
        masks: which states are labelled.
        gamma: discount.
        impute: reward of transitions out of unlabelled states.
        truncated: value unlabelled states at 0 and follow ``behaviour`` there.
        behaviour: [n, actions] action frequencies of the data.
        values: [1 or blocks, n, lanes] receives the values; with one block it is only scratch space.
        q: [1 or blocks, n, actions, lanes] receives the action values; likewise.
        policies: [blocks, n, actions, lanes] receives the action probabilities.
    """
    blocks, n, _, lanes = policies.shape
    labels = np.empty((n, lanes))
    scratch = np.empty((3, lanes))
    choices = np.empty((n, lanes), np.int32)
    matrix = np.empty((0 if model.acyclic else model.slot.max() + 1, lanes))
    place = np.empty(n, np.int32)
    for i in range(n):
        place[model.order[i]] = i
    tie = tie_tolerance(model, gamma, impute)
    for block in range(blocks):
        first = block * lanes
        for w in range(lanes):
            row = min(first + w, len(masks) - 1)  # the last block repeats its last set
            for s in range(n):
                labels[s, w] = 1.0 if masks[row, s] else 0.0
        v = values[min(block, len(values) - 1)]
        solve(model, labels, gamma, impute, truncated, v, choices, place, matrix, scratch)
        block_q = q[min(block, len(q) - 1)]
        greedy(model, labels, gamma, impute, truncated, tie, behaviour, v, block_q, policies[block], scratch)
