"""Learn from one label set, or follow one policy, in a model of any size.

Small models use the same compiled loops as batches. Large ones are solved component by component. Components of up to
`ELIMINATION_LIMIT` states are swept until the error is certain to be below the tie tolerance; in larger ones, and where
that takes too long (discount near 1, large rewards), policy iteration is faster.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.tabular.components import SOLVED, UNSOLVED, greedy_one, push_visits, solve_components
from selectenv.kernels.tabular.large_components import iterate_policies, solve_visits
from selectenv.kernels.tabular.model import ELIMINATION_LIMIT, Model
from selectenv.kernels.tabular.occupancy import eliminated_visits
from selectenv.kernels.tabular.one_set import learn_set
from selectenv.kernels.tabular.tolerances import fill_scales, fill_ties
from selectenv.kernels.threads import SLICE_COST, check_stopped
from selectenv.typing import BoolArray, FloatArray, Int32Array

SWEEPS = 300
"""Sweeps over a component before policy iteration."""
MASS_LEFT = 1e-9
"""Mass that cycles within a component is dropped when less than this share of it remains."""


class Solution(NamedTuple):
    """Optimal values for one label set, from which the solution for a similar label set is found faster."""

    values: FloatArray
    """[n]"""
    choices: Int32Array
    """[n] the best choice of each state in a component that was solved by policy iteration."""


def in_lanes(model: Model) -> bool:
    """Return whether `learn_blocks` and `learn_set` can solve the model."""
    return model.acyclic or model.n_states <= ELIMINATION_LIMIT


def learn_one(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    guess: Solution | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Learn from one label set [n]; return values [n], action values and action probabilities [n, actions].

    See `learn_blocks` for the arguments, and `solve_one` for ``guess``.
    """
    n, actions = behaviour.shape
    q, policy = np.empty((n, actions)), np.empty((n, actions))
    if in_lanes(model):
        values = np.empty(n)
        learn_set(model, label, gamma, impute, labelled_only, behaviour, values, q, policy)
    else:
        values = solve_one(model, label, gamma, impute, labelled_only, guess).values
        _, tie = _scale_and_tie(model, label, gamma, impute)
        greedy_one(model, label, gamma, impute, labelled_only, tie, behaviour, values, q, policy)
    return values, q, policy


def solve_one(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    guess: Solution | None = None,
) -> Solution:
    """Return the optimal values for one label set [n] in a model that is not `in_lanes`.

    Policy iteration starts from ``guess``, the solution for another label set; the guess changes the result by rounding
    errors only.
    """
    scale, tie = _scale_and_tie(model, label, gamma, impute)
    enough = 0.1 * tie * (1.0 - gamma)  # a change of c leaves an error of at most c gamma / (1 - gamma)
    values, choices = np.zeros(model.n_states), model.first_choice[:-1].copy()
    limits, at, result = (SWEEPS, ELIMINATION_LIMIT, _updates_per_slice(model)), np.zeros(2, np.int64), UNSOLVED
    while result != SOLVED:
        check_stopped()
        result = solve_components(model, label, gamma, impute, labelled_only, enough, *limits, at, values)
        if result == UNSOLVED:
            members = _members(model, int(at[0]))
            acting = model.first_choice[members] < model.first_choice[members + 1]
            members = members[acting & (label[members] | (not labelled_only))]
            if guess is not None:
                values[members], choices[members] = guess.values[members], guess.choices[members]
            iterate_policies(model, members, label, gamma, impute, scale, values, choices)
            at[:] = at[0] + 1, 0
    return Solution(values, choices)


def _scale_and_tie(model: Model, label: BoolArray, gamma: float, impute: float) -> tuple[float, float]:
    """Return the scale and the tie tolerance of a label set; see `tolerances`."""
    scale, tie = np.empty(1), np.empty(1)
    fill_scales(model, label[:, None].astype(np.float64), impute, scale)
    fill_ties(scale, gamma, tie)
    return float(scale[0]), float(tie[0])


def _members(model: Model, component: int) -> Int32Array:
    return model.order[model.component[component] : model.component[component + 1]]


def _updates_per_slice(model: Model) -> int:
    """Return how many updates of states make up one slice of a long loop."""
    return max(1, SLICE_COST // (1 + 4 * len(model.next_state) // model.n_states))


def occupancy(model: Model, policy: FloatArray, start: FloatArray, gamma: float) -> FloatArray:
    """Return the discounted occupancy [n] of ``policy`` [n, actions]: d = start + gamma P_pi^T d, scaled to sum to 1.

    If the weights of a state sum to less than 1, the rest of the mass is lost.
    """
    if model.n_states <= ELIMINATION_LIMIT:
        visits = eliminated_visits(model, policy, start, gamma)
    else:
        waiting, visits = start.copy(), np.zeros(len(start))
        limits = MASS_LEFT, ELIMINATION_LIMIT, _updates_per_slice(model)
        component, entered = len(model.component) - 2, -1.0
        while component >= 0:
            check_stopped()
            component, entered = push_visits(model, policy, gamma, *limits, component, entered, waiting, visits)
            members = _members(model, component)
            if component >= 0 and len(members) > ELIMINATION_LIMIT:
                solve_visits(model, members, policy, gamma, waiting, visits)
                component -= 1
    share: FloatArray = visits / visits.sum()
    return share
