"""One label set or one policy at a time, in a model of any size.

Small models go through the same compiled loops as batches do. Large ones are swept, component by component, until the
error is surely below the tie tolerance; where that takes too long (much discounting left, large rewards), policy
iteration with a sparse factorisation finishes the component.
"""

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from selectenv.kernels.tabular.components import best_choices, pushed_visits, solve_components
from selectenv.kernels.tabular.model import ELIMINATION_LIMIT, Model
from selectenv.kernels.tabular.occupancy import eliminated_visits
from selectenv.kernels.tabular.solve import SWITCH_GAIN, greedy, learn_blocks, reward_scale, tie_tolerance
from selectenv.typing import BoolArray, FloatArray, Int32Array

SWEEPS = 300
"""Sweeps before a component is factorised."""
MASS_LEFT = 1e-9
"""Mass that goes round in a component is no longer followed when less than this share of it is left."""


def in_lanes(model: Model) -> bool:
    """Return whether `learn_blocks` can solve the model."""
    return model.acyclic or model.n_states <= ELIMINATION_LIMIT


def learn_one(
    model: Model, label: BoolArray, gamma: float, impute: float, truncated: bool, behaviour: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Learn from one label set [n]; return values [n], action values and action probabilities [n, actions].

    See `learn_blocks` for the arguments.
    """
    n, actions = behaviour.shape
    values, q, policy = np.zeros((n, 1)), np.empty((n, actions, 1)), np.empty((n, actions, 1))
    if in_lanes(model):
        learn_blocks(model, label[None], gamma, impute, truncated, behaviour, values[None], q[None], policy[None])
    else:
        tie = tie_tolerance(model, gamma, impute)
        enough = 0.1 * tie * (1.0 - gamma)  # a change of c leaves an error of at most c gamma / (1 - gamma)
        rule, component = (label, gamma, impute, truncated), 0
        while True:
            component = solve_components(model, *rule, enough, SWEEPS, component, values[:, 0])
            if component < 0:
                break
            _iterate_policies(model, *rule, model.order[slice(*model.component[component : component + 2])], values)
            component += 1
        labels = label[:, None].astype(np.float64)
        greedy(model, labels, gamma, impute, truncated, tie, behaviour, values, q, policy, np.empty((3, 1)))
    return values[:, 0], q[:, :, 0], policy[:, :, 0]


def _iterate_policies(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    truncated: bool,
    members: Int32Array,
    values: FloatArray,
) -> None:
    """Improve and evaluate a component's states until no action gains, in place; values start near the solution."""
    acting = np.diff(model.first_choice)[members] > 0
    members = members[acting & (label[members] | (not truncated))]
    place = np.full(model.n_states, -1)
    place[members] = np.arange(len(members))
    choices = model.first_choice[members]
    margin = 0.0
    while best_choices(model, members, label, gamma, impute, values[:, 0], margin, choices) or margin == 0.0:
        outcomes = np.diff(model.first_outcome)[choices]
        row = np.repeat(np.arange(len(members)), outcomes)
        entry = np.repeat(model.first_outcome[choices] - np.cumsum(outcomes) + outcomes, outcomes) + np.arange(len(row))
        weight, following = gamma * model.probability[entry], model.next_state[entry]
        inside = place[following] >= 0
        reward = np.where(label[members], model.reward[choices], impute) * model.seen[choices]
        beyond = np.where(inside, 0.0, weight * values[following, 0])
        chain = csc_array((weight[inside], (row[inside], place[following[inside]])), shape=(len(members),) * 2)
        right = reward + np.bincount(row, beyond, len(members))
        values[members, 0] = splu((eye_array(len(members)) - chain).tocsc()).solve(right)
        margin = SWITCH_GAIN * reward_scale(model, impute)


def occupancy(model: Model, policy: FloatArray, start: FloatArray, gamma: float) -> FloatArray:
    """Return where ``policy`` [n, actions] spends its time: d = start + gamma P_pi^T d, scaled to sum to 1.

    Weights of a state may sum to less than 1; the rest of the mass is then lost.
    """
    if model.n_states <= ELIMINATION_LIMIT:
        visits = eliminated_visits(model, policy, start, gamma)
    else:
        visits = pushed_visits(model, policy, start, gamma, MASS_LEFT)
    share: FloatArray = visits / visits.sum()
    return share
