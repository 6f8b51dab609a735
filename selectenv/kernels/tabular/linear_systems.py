"""Solve large sparse systems x = b + W x, where W is not negative and its rows (or columns) sum to less than 1.

A policy in a large model leads to such systems: x are its values or, with the transposed matrix, its visits.
Gauss-Seidel sweeps converge, but slowly where episodes are long. A forward and a backward sweep, x -> S x + c, serve as
a preconditioner instead: x also solves (I - S) x = c, and BiCGSTAB (van der Vorst 1992,
https://doi.org/10.1137/0913035) solves this system in a few dozen iterations where states mix quickly, as in random
graphs, which fill in almost completely when they are factorised. Where it does not converge, states mix slowly, so that
the graph has local structure and a factorisation stays sparse.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.threads import SLICE_COST, check_stopped
from selectenv.typing import FloatArray, Int32Array

ITERATIONS = 500
"""Iterations before the matrix is factorised."""
REDUCTION = 1e-10
"""Reduction of the residual after which it is computed anew: the recurrence of the method drifts away from it."""
PRECISION = 4e-16
"""Smallest residual that rounding allows, relative to the largest entry of the solution."""
WORK = 7
"""Number of scratch vectors."""


class System(NamedTuple):
    """The matrix W, row by row; it has no entries on the diagonal."""

    first: Int32Array
    """[m + 1] range of entries of each row."""
    column: Int32Array
    """[entries]"""
    weight: FloatArray
    """[entries]"""


@inlined
def sweep_rows(system: System, right: FloatArray, x: FloatArray) -> None:
    """Replace each entry of ``x`` by the right-hand side of its equation, in place, forwards and then backwards."""
    m = len(x)
    for j in range(2 * m):
        i = j if j < m else 2 * m - 1 - j
        total = right[i]
        for k in range(system.first[i], system.first[i + 1]):
            total += system.weight[k] * x[system.column[k]]
        x[i] = total


@inlined
def subtract_sweep(system: System, zero: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """Write (I - S) x into ``out``."""
    out[:] = x
    sweep_rows(system, zero, out)
    for i in range(len(x)):
        out[i] = x[i] - out[i]


@inlined
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product of two vectors."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
def begin_iterations(system: System, right: FloatArray, x: FloatArray, work: FloatArray) -> tuple[float, float]:
    """Prepare ``work`` [WORK, m] for `iterate`; return the largest entry of the residual c + S x - x, and of ``x``."""
    residual = work[0]
    residual[:] = x
    sweep_rows(system, right, residual)
    largest, size = 0.0, 0.0
    for i in range(len(x)):
        residual[i] -= x[i]
        error = abs(residual[i])
        if not error <= largest:
            largest = np.inf if np.isnan(error) else error  # a residual that is not a number counts as infinite
        size = max(size, abs(x[i]))
    work[1] = residual
    work[2] = residual
    work[6] = 0.0
    return largest, size


@kernel
def iterate(system: System, x: FloatArray, work: FloatArray, enough: float, iterations: int) -> tuple[float, int]:
    """Improve ``x`` until the largest entry of the residual is at most ``enough``; ``work`` is kept from call to call.

    Returns:
        The largest entry of the residual, and the number of iterations made.
    """
    residual, shadow, direction = work[0], work[1], work[2]
    image, half, half_image, zero = work[3], work[4], work[5], work[6]
    m = len(x)
    largest = np.inf
    rho = dot(shadow, residual)
    for iteration in range(iterations):
        subtract_sweep(system, zero, direction, image)
        angle = dot(shadow, image)
        if rho == 0.0 or angle == 0.0:
            return largest, iteration
        step = rho / angle
        for i in range(m):
            half[i] = residual[i] - step * image[i]
        subtract_sweep(system, zero, half, half_image)
        size = dot(half_image, half_image)
        smoothing = dot(half_image, half) / size if size > 0.0 else 0.0
        largest = 0.0
        for i in range(m):
            x[i] += step * direction[i] + smoothing * half[i]
            residual[i] = half[i] - smoothing * half_image[i]
            largest = max(largest, abs(residual[i]))
        if not largest > enough or smoothing == 0.0:
            return largest, iteration + 1
        before = rho
        rho = dot(shadow, residual)
        turn = rho / before * (step / smoothing)
        for i in range(m):
            direction[i] = residual[i] + turn * (direction[i] - smoothing * image[i])
    return largest, iterations


def solve_system(system: System, right: FloatArray, x: FloatArray, work: FloatArray, enough: float = 0.0) -> None:
    """Solve x = right + W x in place.

    Args:
        system: the matrix W.
        right: [m] right-hand side.
        x: [m] first guess; receives the solution.
        work: [WORK, m] scratch space.
        enough: largest entry of the residual to accept; as small as rounding allows by default.
    """
    if not _iterated(system, right, x, work, enough):
        m, entries = len(x), system.first[-1]
        row = np.repeat(np.arange(m), np.diff(system.first))
        matrix = csc_array((system.weight[:entries], (row, system.column[:entries])), shape=(m, m))
        x[:] = splu((eye_array(m) - matrix).tocsc()).solve(right)


def _iterated(system: System, right: FloatArray, x: FloatArray, work: FloatArray, enough: float) -> bool:
    """Return whether iterations solved the system; if not, ``x`` is meaningless."""
    per_slice = max(1, SLICE_COST // (8 * (1 + int(system.first[-1]) + len(x))))
    left, last = ITERATIONS, np.inf
    while True:
        check_stopped()
        largest, size = begin_iterations(system, right, x, work)
        floor = PRECISION * size
        if largest < np.inf and (largest <= max(enough, floor) or 0.5 * last <= largest <= 1e3 * floor):
            return True
        if left <= 0 or not largest < np.inf:
            return False
        last, goal, made, wanted = largest, max(enough, floor, REDUCTION * largest), 0, 0
        while left > 0 and largest > goal and made == wanted:
            check_stopped()
            wanted = min(per_slice, left)
            largest, made = iterate(system, x, work, goal, wanted)
            left -= max(made, 1)
