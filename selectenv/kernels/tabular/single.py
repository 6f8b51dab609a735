"""Learn from one label set, or follow one policy, in a model of any size.

Small models use the same compiled loops as batches. Large ones are swept, component by component, until the error is
certain to be below the tie tolerance; if that takes too long (discount near 1, large rewards), policy iteration with a
sparse factorisation finishes the component.
"""

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from selectenv.kernels.tabular.components import SOLVED, UNSOLVED, best_choices, push_visits, solve_components
from selectenv.kernels.tabular.model import ELIMINATION_LIMIT, Model
from selectenv.kernels.tabular.occupancy import eliminated_visits
from selectenv.kernels.tabular.one_set import learn_set
from selectenv.kernels.tabular.solve import IMPROVEMENTS, greedy
from selectenv.kernels.tabular.tolerances import SWITCH_GAIN, fill_scales, fill_ties
from selectenv.kernels.threads import SLICE_COST, check_stopped
from selectenv.typing import BoolArray, FloatArray, Int32Array

SWEEPS = 300
"""Sweeps before a component is factorised."""
MASS_LEFT = 1e-9
"""Mass that cycles within a component is dropped when less than this share of it remains."""


def in_lanes(model: Model) -> bool:
    """Return whether `learn_blocks` and `learn_set` can solve the model."""
    return model.acyclic or model.n_states <= ELIMINATION_LIMIT


def learn_one(
    model: Model, label: BoolArray, gamma: float, impute: float, labelled_only: bool, behaviour: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Learn from one label set [n]; return values [n], action values and action probabilities [n, actions].

    See `learn_blocks` for the arguments.
    """
    n, actions = behaviour.shape
    if in_lanes(model):
        found = np.empty(n), np.empty((n, actions)), np.empty((n, actions))
        learn_set(model, label, gamma, impute, labelled_only, behaviour, *found)
        return found
    values, q, policy = np.zeros((n, 1)), np.empty((n, actions, 1)), np.empty((n, actions, 1))
    labels, scale, tie = label[:, None].astype(np.float64), np.empty(1), np.empty(1)
    fill_scales(model, labels, impute, scale)
    fill_ties(scale, gamma, tie)
    enough = 0.1 * float(tie[0]) * (1.0 - gamma)  # a change of c leaves an error of at most c gamma / (1 - gamma)
    rule, at, result = (label, gamma, impute, labelled_only), np.zeros(2, np.int64), UNSOLVED
    while result != SOLVED:
        check_stopped()
        result = solve_components(model, *rule, enough, SWEEPS, _updates_per_slice(model), at, values[:, 0])
        if result == UNSOLVED:
            members = model.order[model.component[at[0]] : model.component[at[0] + 1]]
            _iterate_policies(model, *rule, SWITCH_GAIN * float(scale[0]), members, values)
            at[:] = at[0] + 1, 0
    greedy(model, labels, gamma, impute, labelled_only, tie, behaviour, values, q, policy, np.empty((3, 1)))
    return values[:, 0], q[:, :, 0], policy[:, :, 0]


def _updates_per_slice(model: Model) -> int:
    """Return how many updates of states make up one slice of a long loop."""
    return max(1, SLICE_COST // (1 + 4 * len(model.next_state) // model.n_states))


def _iterate_policies(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    gain: float,
    members: Int32Array,
    values: FloatArray,
) -> None:
    """Improve and evaluate the policy of a component's states until no action gains; values are updated in place."""
    acting = np.diff(model.first_choice)[members] > 0
    members = members[acting & (label[members] | (not labelled_only))]
    place = np.full(model.n_states, -1)
    place[members] = np.arange(len(members))
    choices = model.first_choice[members]
    for i in range(IMPROVEMENTS):
        margin = 0.0 if i == 0 else gain
        if not best_choices(model, members, label, gamma, impute, values[:, 0], margin, choices) and i > 0:
            break
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


def occupancy(model: Model, policy: FloatArray, start: FloatArray, gamma: float) -> FloatArray:
    """Return the discounted occupancy [n] of ``policy`` [n, actions]: d = start + gamma P_pi^T d, scaled to sum to 1.

    If the weights of a state sum to less than 1, the rest of the mass is lost.
    """
    if model.n_states <= ELIMINATION_LIMIT:
        visits = eliminated_visits(model, policy, start, gamma)
    else:
        waiting, visits = start.copy(), np.zeros(len(start))
        component, entered = len(model.component) - 2, -1.0
        while component >= 0:
            check_stopped()
            component, entered = push_visits(
                model, policy, gamma, MASS_LEFT, _updates_per_slice(model), component, entered, waiting, visits
            )
    share: FloatArray = visits / visits.sum()
    return share
