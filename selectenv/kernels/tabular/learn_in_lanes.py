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
    learn_acyclic,
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
def learn_in_lanes(
    model: Model,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    masks: BoolArray,
    values: FloatArray,
    q: FloatArray,
    policies: FloatArray,
) -> None:
    """Learn from the label sets ``masks`` [lanes, n]; the other arrays are one block of those of `learn_blocks`."""
    if model.acyclic:
        learn_acyclic(model, gamma, impute, labelled_only, behaviour, masks, values, q, policies)
        return
    _, n, _, lanes = policies.shape
    labels, scratch, scales, ties = np.empty((n, lanes)), np.empty((3, lanes)), np.empty(lanes), np.empty(lanes)
    fill_labels(masks, 0, labels)
    fill_scales(model, labels, impute, scales)
    fill_ties(scales, gamma, ties)
    values[:] = 0.0
    for i in range(WARM_SWEEPS):
        if sweep(model, labels, gamma, impute, labelled_only, i % 2 == 1, values[0], scratch) == 0.0:
            break
    solve_open_lanes(model, labels, gamma, impute, labelled_only, scratch[2], values[0])
    greedy(model, labels, gamma, impute, labelled_only, ties, behaviour, values[0], q[0], policies[0], scratch)
