"""Discounted state occupancy of a policy over an infinite horizon, and the predecessors of the best states."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Model
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray

NEAR = 0.9
"""Smallest exp(V - V_best) of a labelled state whose predecessors are pooled."""


@kernel
def eliminate_visits(model: Model, policy: FloatArray, gamma: float, matrix: FloatArray, visits: FloatArray) -> None:
    """Replace ``visits`` [n], a start distribution, by d with d = visits + gamma P_pi^T d; for small models.

    Args:
        model: the empirical model.
        policy: [n, actions] weights; if those of a state sum to less than 1, the rest of the mass is lost.
        gamma: discount.
        matrix: [n, n] scratch space; must be 0.
        visits: start distribution; receives the visits.
    """
    n = len(visits)
    for s in range(n):
        matrix[s, s] = 1.0
    for s in range(n):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            share = gamma * policy[s, model.action[choice]]
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                matrix[model.next_state[k], s] -= share * model.probability[k]
    for k in range(n):
        for i in range(k + 1, n):
            if matrix[i, k] != 0.0:
                factor = matrix[i, k] / matrix[k, k]
                visits[i] -= factor * visits[k]
                for j in range(k + 1, n):
                    matrix[i, j] -= factor * matrix[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            visits[k] -= matrix[k, j] * visits[j]
        visits[k] /= matrix[k, k]


def eliminated_visits(model: Model, policy: FloatArray, start: FloatArray, gamma: float) -> FloatArray:
    """Return d with d = start + gamma P_pi^T d, by elimination; see `eliminate_visits`."""
    visits = start.copy()
    eliminate_visits(model, policy, gamma, np.zeros((len(start), len(start))), visits)
    return visits


@kernel
def spread_over_predecessors(
    values: FloatArray,
    labelled: BoolArray,
    first_predecessor: Int32Array,
    predecessor: Int32Array,
    count: FloatArray,
    tie: float,
    spread: FloatArray,
) -> None:
    """Write the distribution of `best_predecessors` into ``spread`` [n], which must be 0."""
    n = len(values)
    best = -np.inf
    for s in range(n):
        if labelled[s] and values[s] > best:
            for i in range(first_predecessor[s], first_predecessor[s + 1]):
                if not labelled[predecessor[i]]:
                    best = values[s]
                    break
    total = 0.0
    for s in range(n):
        if labelled[s] and abs(values[s] - best) <= tie:
            for i in range(first_predecessor[s], first_predecessor[s + 1]):
                if not labelled[predecessor[i]]:
                    spread[predecessor[i]] += count[i]
                    total += count[i]
    if total > 0.0:
        for s in range(n):
            spread[s] /= total


def best_predecessors(
    values: FloatArray,
    labelled: BoolArray,
    first_predecessor: Int32Array,
    predecessor: Int32Array,
    count: FloatArray,
    tie: float,
) -> FloatArray:
    """Return the guided strategy's exploit distribution over unlabelled states.

    It spreads, in proportion to transition counts, over the unlabelled predecessors of the best-valued labelled state
    that still has some; states tied at that value are pooled. All 0 if no labelled state has an unlabelled predecessor.
    """
    spread = np.zeros(len(values))
    spread_over_predecessors(values, labelled, first_predecessor, predecessor, count, tie, spread)
    return spread


@kernel
def weigh_predecessors(
    states: IntArray,
    weight: FloatArray,
    labelled: BoolArray,
    first_predecessor: Int32Array,
    predecessor: Int32Array,
    count: FloatArray,
    out: FloatArray,
) -> None:
    """Write transition count x weight [states] of unlabelled predecessors to ``out`` [n]; the last state counts."""
    for k in range(len(states)):
        for i in range(first_predecessor[states[k]], first_predecessor[states[k] + 1]):
            if not labelled[predecessor[i]]:
                out[predecessor[i]] = count[i] * weight[k]


def pooled_predecessors(
    values: FloatArray,
    labelled: BoolArray,
    first_predecessor: Int32Array,
    predecessor: Int32Array,
    count: FloatArray,
) -> FloatArray:
    """Return the exploit distribution of guided in the games: all near-best states are pooled.

    The pool is every labelled state with exp(V - V_best) >= 0.9, where V_best is the largest value of a labelled state.
    An unlabelled predecessor of a state in the pool weighs transition count x exp(V - V_best); if it precedes several,
    the one with the smallest value counts, because the pool is visited from the best value downwards and the last
    weight is kept. The weights w, which sum to 1, are flattened to exp(w) / sum exp(w) over the predecessors, which is
    nearly uniform. All 0 if no state of the pool has an unlabelled predecessor.
    """
    spread = np.zeros(len(values))
    known = np.flatnonzero(labelled)
    if len(known) == 0:
        return spread
    known = known[np.argsort(-values[known], kind="stable")]
    nearness = np.exp(values[known] - values[known[0]])
    near = nearness >= NEAR
    weigh_predecessors(known[near], nearness[near], labelled, first_predecessor, predecessor, count, spread)
    support = np.flatnonzero(spread)
    if len(support):
        flattened = np.exp(spread[support] / spread[support].sum())
        spread[support] = flattened / flattened.sum()
    return spread
