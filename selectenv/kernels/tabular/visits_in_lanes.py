"""Discounted state occupancy of many policies at once, with one SIMD lane per policy.

The arithmetic is that of `eliminate_visits`, in the same order, so that the results have the same bits. Which entries
elimination may touch, whatever the policy, is known in advance.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.model import ELIMINATION_LIMIT, Model
from selectenv.typing import BoolArray, FloatArray, Int32Array


class VisitPattern(NamedTuple):
    """The entries of I - gamma P^T that elimination in the order of the states may touch, fill-in included."""

    slot: Int32Array
    """[n, n] the number of each entry, else -1."""
    first_below: Int32Array
    """[n + 1] range of `below` of each column."""
    below: Int32Array
    """Rows of the entries below the diagonal, column by column."""
    first_right: Int32Array
    """[n + 1] range of `right` of each row."""
    right: Int32Array
    """Columns of the entries to the right of the diagonal, row by row."""
    changes: BoolArray
    """[n] whether the entry on the diagonal can differ from 1."""


def visit_pattern(model: Model) -> VisitPattern:
    """Return the pattern of a model of at most `ELIMINATION_LIMIT` states."""
    n = model.n_states
    assert n <= ELIMINATION_LIMIT
    touched = np.zeros((n, n), bool)
    choice_state = np.repeat(np.arange(n), np.diff(model.first_choice))
    touched[model.next_state, np.repeat(choice_state, np.diff(model.first_outcome))] = True
    for k in range(n):
        rows = k + 1 + np.flatnonzero(touched[k + 1 :, k])
        touched[rows, k + 1 :] |= touched[k, k + 1 :]
    changes = touched.diagonal().copy()
    np.fill_diagonal(touched, True)
    slot = np.full((n, n), -1, np.int32)
    slot[touched] = np.arange(touched.sum())
    return VisitPattern(slot, *_lists(np.tril(touched, -1).T), *_lists(np.triu(touched, 1)), changes)


def _lists(marked: BoolArray) -> tuple[Int32Array, Int32Array]:
    """Return the marked columns of each row: the range of each row, and the columns."""
    first = np.concatenate([[0], np.cumsum(marked.sum(axis=1))])
    return first.astype(np.int32), np.nonzero(marked)[1].astype(np.int32)


@kernel
def eliminate_in_lanes(
    model: Model, pattern: VisitPattern, policy: FloatArray, gamma: float, matrix: FloatArray, visits: FloatArray
) -> None:
    """Replace ``visits`` [n, lanes], start distributions, by d with d = visits + gamma P_pi^T d.

    Args:
        model: the empirical model.
        pattern: the entries that may be touched.
        policy: [n, actions, lanes] weights; see `eliminate_visits`.
        gamma: discount.
        matrix: [entries, lanes] scratch space.
        visits: start distributions; receives the visits.
    """
    n, lanes = visits.shape
    slot, first_below, below, first_right, right, changes = pattern
    matrix[:] = 0.0
    for s in range(n):
        for w in range(lanes):
            matrix[slot[s, s], w] = 1.0
    for s in range(n):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            action = model.action[choice]
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                p = model.probability[k]
                entry = slot[model.next_state[k], s]
                for w in range(lanes):
                    matrix[entry, w] -= gamma * policy[s, action, w] * p
    for k in range(n):
        pivot = slot[k, k]
        for at in range(first_below[k], first_below[k + 1]):
            i = below[at]
            factor = slot[i, k]
            if changes[k]:
                for w in range(lanes):
                    matrix[factor, w] = matrix[factor, w] / matrix[pivot, w]
            for w in range(lanes):
                visits[i, w] -= matrix[factor, w] * visits[k, w]
            for j in range(first_right[k], first_right[k + 1]):
                upper = slot[k, right[j]]
                entry = slot[i, right[j]]
                for w in range(lanes):
                    matrix[entry, w] -= matrix[factor, w] * matrix[upper, w]
    for i in range(n):
        k = n - 1 - i
        for j in range(first_right[k], first_right[k + 1]):
            upper = slot[k, right[j]]
            known = right[j]
            for w in range(lanes):
                visits[k, w] -= matrix[upper, w] * visits[known, w]
        if changes[k]:
            pivot = slot[k, k]
            for w in range(lanes):
                visits[k, w] = visits[k, w] / matrix[pivot, w]


@inlined
def short_sums(numbers: FloatArray, total: FloatArray) -> None:
    """Write the sum of each lane of ``numbers`` [n, lanes] in the order in which NumPy adds at most 128 numbers."""
    n, lanes = numbers.shape
    whole = n - n % 8 if n >= 8 else 0
    total[:] = 0.0
    if whole > 0:  # eight sums side by side
        parts = numbers[:8].copy()
        for i in range(8, whole):
            for w in range(lanes):
                parts[i % 8, w] += numbers[i, w]
        for w in range(lanes):
            first = (parts[0, w] + parts[1, w]) + (parts[2, w] + parts[3, w])
            total[w] = first + ((parts[4, w] + parts[5, w]) + (parts[6, w] + parts[7, w]))
    for i in range(whole, n):
        for w in range(lanes):
            total[w] += numbers[i, w]
