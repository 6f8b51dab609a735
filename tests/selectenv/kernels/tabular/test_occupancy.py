"""Occupancy by elimination, by pushing mass and by numpy; and the guided strategy's exploit distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectenv.kernels.tabular import single
from selectenv.kernels.tabular.occupancy import best_predecessors, pooled_predecessors
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


def listed(count):
    """The predecessors of each state as a dataset lists them, from counts [state left, state entered]."""
    entered, left = np.nonzero(count.T)
    first = np.searchsorted(entered, np.arange(len(count) + 1)).astype(np.int32)
    return first, left.astype(np.int32), count[left, entered].astype(float)


def small_problem(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    return rng, rng.integers(0, 3, (n, n)) * rng.integers(0, 2, (n, n)), rng.random(n) < 0.5


@given(st.integers(0, 5000))
def test_best_predecessors_agree_with_a_plain_search(seed):
    rng, count, labelled = small_problem(seed)
    values = rng.integers(-1, 2, len(labelled)).astype(float)
    found = best_predecessors(values, labelled, *listed(count), 1e-8)
    np.testing.assert_allclose(found, plain_predecessors(values, labelled, count), atol=1e-12)


def plain_pool(values, labelled, count):
    """The published rule for games, one state at a time, best value first."""
    weight = {}
    if labelled.any():
        best = max(values[labelled])
        for s in sorted(np.flatnonzero(labelled), key=lambda s: -values[s]):
            if np.exp(values[s] - best) >= 0.9:
                for i in np.flatnonzero((count[:, s] > 0) & ~labelled):
                    weight[i] = count[i, s] * np.exp(values[s] - best)
    spread, total = np.zeros(len(values)), sum(weight.values())
    for i, own in weight.items():
        spread[i] = np.exp(own / total) / sum(np.exp(other / total) for other in weight.values())
    return spread


@given(st.integers(0, 5000))
def test_pooled_predecessors_agree_with_a_plain_loop(seed):
    rng, count, labelled = small_problem(seed)
    values = rng.choice([-1.0, 1.9, 1.95, 2.0, 2.0], len(labelled)) + rng.random(len(labelled)) * 0.02
    found = pooled_predecessors(values, labelled, *listed(count))
    np.testing.assert_allclose(found, plain_pool(values, labelled, count), atol=1e-12)
    assert not found[labelled].any()
    assert found.sum() == pytest.approx(1.0) or not found.any()


def test_a_pool_of_three_states_by_hand():
    """States 3, 4 and 5 are labelled and near the best, 6 is too far below; 0, 1, 2 and 7 precede them."""
    values = np.array([9.0, 0, 0, 5.0, 4.95, 4.9, 4.89, 0])
    labelled = np.array([0, 0, 0, 1, 1, 1, 1, 0], bool)
    count = np.zeros((8, 8), int)
    count[0, 3], count[0, 4] = 6, 2  # precedes two states: the one with the smaller value counts
    count[1, 5], count[2, 6], count[7, 3], count[4, 3] = 3, 50, 1, 8  # 4 is labelled itself
    found = pooled_predecessors(values, labelled, *listed(count))
    weight = np.array([2 * np.exp(-0.05), 3 * np.exp(-0.1), 1.0])
    expected = np.exp(weight / weight.sum())
    np.testing.assert_allclose(found[[0, 1, 7]], expected / expected.sum())
    assert not found[2:7].any()
    assert found[[0, 1, 7]].max() / found[[0, 1, 7]].min() < np.e**0.5  # nearly uniform
    labelled[[0, 1, 7]] = True  # 0 is now the best by far and has no predecessors: there is nothing to exploit
    assert not pooled_predecessors(values, labelled, *listed(count)).any()
    assert not pooled_predecessors(values, np.zeros(8, bool), *listed(count)).any()
