"""One label set or one policy at a time, in a model of any size.

Small models go through the same compiled loops as batches do. Large ones are swept until the error is surely below the
tie tolerance; where that takes too long (much discounting left, large rewards), policy iteration with a sparse
factorisation finishes the work.
"""

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from selectenv.kernels.model import ELIMINATION_LIMIT, Model
from selectenv.kernels.occupancy import MASS_LEFT, carried_visits, eliminated_visits
from selectenv.kernels.solve import SWITCH_GAIN, greedy, improve, learn_blocks, reward_scale, sweep, tie_tolerance
from selectenv.typing import BoolArray, FloatArray

SWEEPS = 300
"""Sweeps, or rounds of carrying mass forward, before a large model is factorised."""


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
        labels, scratch = label[:, None].astype(np.float64), np.empty((3, 1))
        tie = tie_tolerance(model, gamma, impute)
        enough = 0.1 * tie * (1.0 - gamma)  # a change of c leaves an error of at most c gamma / (1 - gamma)
        for i in range(SWEEPS):
            if sweep(model, labels, gamma, impute, truncated, i % 2 == 1, values, scratch) <= enough:
                break
        else:
            _iterate_policies(model, labels, gamma, impute, truncated, values, scratch)
        greedy(model, labels, gamma, impute, truncated, tie, behaviour, values, q, policy, scratch)
    return values[:, 0], q[:, :, 0], policy[:, :, 0]


def _iterate_policies(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    truncated: bool,
    values: FloatArray,
    scratch: FloatArray,
) -> None:
    """Improve and evaluate until no action gains, in place; values start near the solution."""
    n = model.n_states
    choice = model.first_choice[:-1, None].astype(np.int32)
    acting = np.diff(model.first_choice) > 0
    if truncated:
        acting &= labels[:, 0] > 0
    margin = 0.0
    while improve(model, labels, gamma, impute, values, margin, choice, scratch) or margin == 0.0:
        taken = np.where(acting, choice[:, 0], 0)
        seen = acting & model.seen[taken]
        reward = np.where(seen, np.where(labels[:, 0] > 0, model.reward[taken], impute), 0.0)
        chosen = np.zeros(len(model.action))
        chosen[taken[seen]] = 1.0
        chain = _transposed_chain(model, chosen)
        values[:, 0] = splu((eye_array(n) - gamma * chain.T).tocsc()).solve(reward)
        margin = SWITCH_GAIN * reward_scale(model, impute)


def occupancy(model: Model, policy: FloatArray, start: FloatArray, gamma: float) -> FloatArray:
    """Return where ``policy`` [n, actions] spends its time: d = start + gamma P_pi^T d, scaled to sum to 1.

    Weights of a state may sum to less than 1; the rest of the mass is then lost.
    """
    if model.n_states <= ELIMINATION_LIMIT:
        visits = eliminated_visits(model, policy, start, gamma)
    else:
        visits, left = carried_visits(model, policy, start, gamma, SWEEPS)
        if left > MASS_LEFT:
            state = np.repeat(np.arange(model.n_states), np.diff(model.first_choice))
            chain = _transposed_chain(model, policy[state, model.action])
            visits = splu((eye_array(model.n_states) - gamma * chain).tocsc()).solve(start)
    share: FloatArray = visits / visits.sum()
    return share


def _transposed_chain(model: Model, weight: FloatArray) -> csc_array:
    """Return P^T of the chain that takes every choice with the given weight [choices]."""
    per_choice = np.diff(model.first_outcome)
    state = np.repeat(np.arange(model.n_states), np.diff(model.first_choice))
    share = np.repeat(weight, per_choice) * model.probability
    return csc_array((share, (model.next_state, np.repeat(state, per_choice))), shape=(model.n_states, model.n_states))
