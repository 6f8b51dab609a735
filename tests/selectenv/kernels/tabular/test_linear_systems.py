"""Iterative solutions of sparse systems against dense ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectenv.kernels.tabular import linear_systems
from selectenv.kernels.tabular.linear_systems import WORK, System, solve_system


def random_system(seed, m, degree, gamma, near):
    """Rows of a random graph that sum to ``gamma``, or to 0; entries on the diagonal are left out."""
    rng = np.random.default_rng(seed)
    column = (np.arange(m)[:, None] + rng.integers(1, (min(near, m) if near else m) + 1, (m, degree))) % m
    weight = gamma * rng.dirichlet(np.ones(degree), m)
    weight[(column == np.arange(m)[:, None]) | (rng.random((m, 1)) < 0.05)] = 0.0
    first = degree * np.arange(m + 1)
    matrix = np.zeros((m, m))
    np.add.at(matrix, (np.arange(m)[:, None], column), weight)
    return System(first.astype(np.int32), column.ravel().astype(np.int32), weight.ravel()), matrix, rng.normal(size=m)


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.9, 0.999]),
    st.sampled_from([None, 1, 4]),
)
def test_solutions_are_those_of_a_dense_solve(seed, m, degree, gamma, near):
    system, matrix, right = random_system(seed, m, degree, gamma, near)
    x = np.zeros(m)
    solve_system(system, right, x, np.empty((WORK, m)))
    expected = np.linalg.solve(np.eye(m) - matrix, right)
    np.testing.assert_allclose(x, expected, atol=1e-10 * max(1.0, np.abs(expected).max()))


def test_a_coarse_solution_has_the_residual_that_was_asked_for():
    system, matrix, right = random_system(0, 500, 3, 0.99, None)
    x = np.zeros(500)
    solve_system(system, right, x, np.empty((WORK, 500)), 1e-3)
    error = np.abs(x - np.linalg.solve(np.eye(500) - matrix, right)).max()
    assert 1e-12 < error < 0.1  # at most the residual divided by 1 - gamma


def test_the_solution_is_kept_if_it_is_given(monkeypatch):
    system, _, right = random_system(1, 300, 3, 0.9, None)
    x = np.zeros(300)
    solve_system(system, right, x, np.empty((WORK, 300)))
    found = x.copy()
    monkeypatch.setattr(linear_systems, "iterate", None)  # no iteration is needed
    solve_system(system, right, x, np.empty((WORK, 300)), 1e-12)
    np.testing.assert_array_equal(x, found)


@pytest.mark.parametrize("per_slice", [1, 3])
def test_slices_do_not_change_the_solution(per_slice, monkeypatch):
    system, _, right = random_system(2, 200, 3, 0.99, None)
    whole, parts = np.zeros(200), np.zeros(200)
    solve_system(system, right, whole, np.empty((WORK, 200)))
    monkeypatch.setattr(linear_systems, "SLICE_COST", per_slice * 8 * (1 + len(system.weight) + 200))
    solve_system(system, right, parts, np.empty((WORK, 200)))
    np.testing.assert_array_equal(whole, parts)


def test_what_is_not_a_number_does_not_go_on_for_ever():
    system, _, right = random_system(4, 50, 3, 0.9, None)
    right[0] = 1e300  # inner products overflow
    x = np.zeros(50)
    solve_system(system, right, x, np.empty((WORK, 50)))
    assert np.isfinite(x).all()
    assert x[0] >= 1e300
