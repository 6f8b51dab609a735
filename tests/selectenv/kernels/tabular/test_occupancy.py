"""Occupancy by elimination, by pushing mass and by numpy; and the guided strategy's exploit distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectenv.kernels.tabular import single
from selectenv.kernels.tabular.occupancy import best_predecessors
from tests.selectenv import twins


@given(twins.worlds, st.integers(0, 100), st.sampled_from([1.0, 0.5]))
def test_occupancy_agrees_with_a_linear_solve(world, seed, kept):
    p, _, _ = twins.dense_world(world)
    policy = np.random.default_rng(seed).dirichlet(np.ones(world.n_actions), world.n_states) * kept
    chain = np.einsum("sa,sat->st", policy, p)
    expected = np.linalg.solve(np.eye(world.n_states) - 0.9 * chain.T, world.start)
    n = world.n_states
    # by elimination; by solving sparse systems, in components or not; by pushing mass on, in components smaller than n
    for limit, in_parts in ((128, False), (0, False), (0, True), (n - 1, True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(single, "ELIMINATION_LIMIT", limit)
            model = twins.in_components(world.model) if in_parts else world.model
            found = single.occupancy(model, policy, world.start, 0.9)
        np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-8)
        assert abs(found.sum() - 1) < 1e-12


def plain_predecessors(values, labelled, count):
    """Sort the labelled states by value, best first; pool ties; spread over unlabelled predecessors."""
    for value in sorted({v for v, known in zip(values, labelled, strict=True) if known}, reverse=True):
        pooled = sum(count[:, s] for s in range(len(values)) if labelled[s] and values[s] == value)
        pooled = np.where(labelled, 0, pooled)
        if pooled.sum() > 0:
            return pooled / pooled.sum()
    return np.zeros(len(values))


@given(st.integers(0, 5000))
def test_best_predecessors_agree_with_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    count = rng.integers(0, 3, (n, n)) * rng.integers(0, 2, (n, n))
    values, labelled = rng.integers(-1, 2, n).astype(float), rng.random(n) < 0.5
    pairs = [(s, i) for s in range(n) for i in range(n) if count[i, s]]
    first = np.searchsorted([s for s, _ in pairs], np.arange(n + 1)).astype(np.int32)
    state = np.array([i for _, i in pairs], np.int32)
    weight = np.array([count[i, s] for s, i in pairs], float)
    found = best_predecessors(values, labelled, first, state, weight, 1e-8)
    np.testing.assert_allclose(found, plain_predecessors(values, labelled, count), atol=1e-12)
