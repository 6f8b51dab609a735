"""Where a policy spends its time, discounted and without end, and who leads where."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Model
from selectenv.typing import BoolArray, FloatArray, Int32Array


@kernel
def eliminated_visits(model: Model, policy: FloatArray, start: FloatArray, gamma: float) -> FloatArray:
    """Return d with d = start + gamma P_pi^T d by elimination; for small models.

    Args:
        model: the empirical model.
        policy: [n, actions] weights; they may sum to less than 1, the rest of the mass is then lost.
        start: [n] start distribution.
        gamma: discount.
    """
    n = len(start)
    visits = start.copy()
    matrix = np.zeros((n, n))
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
    return visits


@kernel
def best_predecessors(
    values: FloatArray,
    labelled: BoolArray,
    first_predecessor: Int32Array,
    predecessor: Int32Array,
    count: FloatArray,
    tie: float,
) -> FloatArray:
    """Return the guided strategy's exploit distribution over unlabelled states.

    It spreads, by transition counts, over the unlabelled predecessors of the best-valued labelled state that still has
    some; states tied at that value are pooled. All 0 where no labelled state has an unlabelled predecessor.
    """
    n = len(values)
    best = -np.inf
    for s in range(n):
        if labelled[s] and values[s] > best:
            for i in range(first_predecessor[s], first_predecessor[s + 1]):
                if not labelled[predecessor[i]]:
                    best = values[s]
                    break
    spread = np.zeros(n)
    total = 0.0
    for s in range(n):
        if labelled[s] and abs(values[s] - best) <= tie:
            for i in range(first_predecessor[s], first_predecessor[s + 1]):
                if not labelled[predecessor[i]]:
                    spread[predecessor[i]] += count[i]
                    total += count[i]
    if total > 0.0:
        spread /= total
    return spread
