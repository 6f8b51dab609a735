"""Learn from many label sets at once so that each gets the same bits as alone."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Model
from selectenv.kernels.tabular.solve import (
    IMPROVEMENTS,
    WARM_SWEEPS,
    evaluate,
    fill_labels,
    greedy,
    improve,
    sweep,
)
from selectenv.kernels.tabular.tolerances import SWITCH_GAIN, fill_scales, fill_ties
from selectenv.typing import BoolArray, FloatArray


@kernel
def solve_open_lanes(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    change: FloatArray,
    values: FloatArray,
) -> None:
    """Finish by policy iteration those lanes that the sweeps still changed, ``change`` [lanes] > 0.

    The others have reached the fixed point and are left alone: policy iteration would change their last bits.
    """
    n = len(values)
    lanes = np.flatnonzero(change > 0.0)
    if len(lanes) == 0:
        return
    open_labels, open_values = np.empty((n, len(lanes))), np.empty((n, len(lanes)))
    for s in range(n):
        for w in range(len(lanes)):
            open_labels[s, w] = labels[s, lanes[w]]
            open_values[s, w] = values[s, lanes[w]]
    scales, margins, scratch = np.empty(len(lanes)), np.zeros(len(lanes)), np.empty((2, len(lanes)))
    fill_scales(model, open_labels, impute, scales)
    choices = np.empty((n, len(lanes)), np.int32)
    matrix = np.empty((model.slot[n - 1, n - 1] + 1, len(lanes)))  # entries are numbered row by row
    place = np.empty(n, np.int32)
    for i in range(n):
        place[model.order[i]] = i
        choices[i] = model.first_choice[i]
    for i in range(IMPROVEMENTS):
        if not improve(model, open_labels, gamma, impute, open_values, margins, choices, scratch) and i > 0:
            break
        evaluate(model, open_labels, gamma, impute, labelled_only, choices, place, matrix, open_values)
        for w in range(len(lanes)):
            margins[w] = SWITCH_GAIN * scales[w]
    for s in range(n):
        for w in range(len(lanes)):
            values[s, lanes[w]] = open_values[s, w]


@kernel
def learn_ordered(
    model: Model,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    labels: FloatArray,
    ties: FloatArray,
    values: FloatArray,
    policy: FloatArray,
) -> None:
    """Learn in a model without cycles: each state once, successors first.

    The arithmetic is that of `learn_acyclic`. Entries are addressed one by one instead of row by row, because every
    row that is taken out of an array costs more here than the arithmetic on it.

    Args:
        model: the empirical model.
        gamma: discount.
        impute: reward of transitions out of unlabelled states.
        labelled_only: whether the rule is the adapted one.
        behaviour: [n, actions] action frequencies of the data.
        labels: [n, lanes] 1.0 or 0.0.
        ties: [lanes] how close to the best an action must be.
        values: [n, lanes] receives the values.
        policy: [n, actions, lanes] receives the action probabilities.
    """
    n, actions, lanes = policy.shape
    q, best, count = np.empty((actions, lanes)), np.empty(lanes), np.empty(lanes)
    for i in range(n):
        s = model.order[i]
        first, last = model.first_choice[s], model.first_choice[s + 1]
        for action in range(actions):
            for w in range(lanes):
                policy[s, action, w] = 1.0 / actions if first == last else 0.0
        for w in range(lanes):
            best[w] = 0.0 if first == last else -np.inf
            count[w] = 0.0
        for choice in range(first, last):
            action = model.action[choice]
            reward, seen = model.reward[choice], model.seen[choice]
            for w in range(lanes):
                q[action, w] = reward * labels[s, w] + impute * (1.0 - labels[s, w]) if seen else 0.0
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1] if seen else 0):
                weight = gamma * model.probability[k]
                beyond = model.next_state[k]
                for w in range(lanes):
                    q[action, w] += weight * values[beyond, w]
            for w in range(lanes):
                best[w] = q[action, w] if q[action, w] > best[w] else best[w]
        if labelled_only:
            for w in range(lanes):
                best[w] = best[w] * labels[s, w]
            for choice in range(first, last):
                action = model.action[choice]
                for w in range(lanes):
                    q[action, w] = q[action, w] * labels[s, w]
        for choice in range(first, last):
            action = model.action[choice]
            for w in range(lanes):
                share = 1.0 if q[action, w] >= best[w] - ties[w] else 0.0
                policy[s, action, w] = share
                count[w] += share
        for w in range(lanes):
            values[s, w] = best[w]
            count[w] = 1.0 / count[w]
        for action in range(actions if first < last else 0):
            for w in range(lanes):
                policy[s, action, w] *= count[w]
            if labelled_only:
                usual = behaviour[s, action]
                for w in range(lanes):
                    policy[s, action, w] = policy[s, action, w] * labels[s, w] + usual * (1.0 - labels[s, w])


@kernel
def learn_in_lanes(
    model: Model,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    masks: BoolArray,
    values: FloatArray,
    policies: FloatArray,
) -> None:
    """Learn from the label sets ``masks`` [lanes, n]; the other arrays are one block of those of `learn_blocks`."""
    _, n, _, lanes = policies.shape
    labels, scratch, scales, ties = np.empty((n, lanes)), np.empty((3, lanes)), np.empty(lanes), np.empty(lanes)
    fill_labels(masks, 0, labels)
    fill_scales(model, labels, impute, scales)
    fill_ties(scales, gamma, ties)
    if model.acyclic:
        learn_ordered(model, gamma, impute, labelled_only, behaviour, labels, ties, values[0], policies[0])
        return
    values[:] = 0.0
    for i in range(WARM_SWEEPS):
        if sweep(model, labels, gamma, impute, labelled_only, i % 2 == 1, values[0], scratch) == 0.0:
            break
    solve_open_lanes(model, labels, gamma, impute, labelled_only, scratch[2], values[0])
    q = np.empty(policies.shape[1:])
    greedy(model, labels, gamma, impute, labelled_only, ties, behaviour, values[0], q, policies[0], scratch)
