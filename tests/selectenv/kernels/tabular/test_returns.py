"""Returns backwards against the distribution forwards, in numpy and in the kernel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selectenv.evaluation import ExactReturns, RolloutReturns
from selectenv.kernels.tabular.policy_returns import returns_one_by_one
from selectenv.kernels.tabular.returns import expected_visits
from selectenv.policies import PolicyList, TablePolicies, TablePolicy
from tests.selectenv import twins
from tests.selectenv.wide_worlds import wide_world


def random_policies(world, seed, count):
    rng = np.random.default_rng(seed)
    policies = rng.dirichlet(np.ones(world.n_actions), (count, world.n_states))
    pure = rng.random((count, world.n_states)) < 0.5
    return np.where(pure[..., None], np.eye(world.n_actions)[policies.argmax(axis=2)], policies)


@given(twins.worlds, st.integers(0, 100), st.sampled_from([1.0, 0.9]))
def test_exact_returns_agree_with_the_numpy_twin(world, seed, discount):
    p, r, _ = twins.dense_world(world)
    policies = random_policies(world, seed, 3)
    lanes = TablePolicies(np.ascontiguousarray(np.moveaxis(policies, 0, -1)[None]), 3)
    found = ExactReturns(world).returns(lanes, discount)
    expected = [twins.expected_return(p, r, policy, world.start, world.horizon, discount) for policy in policies]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(twins.worlds, st.integers(0, 100), st.sampled_from([1.0, 0.9]))
def test_forward_visits_price_the_same_return(world, seed, discount):
    _, r, _ = twins.dense_world(world)
    policy = random_policies(world, seed, 1)[0]
    visits = expected_visits(world.model, policy, world.start, world.horizon, discount)
    backwards = ExactReturns(world).returns(PolicyList([TablePolicy(policy)]), discount)[0]
    np.testing.assert_allclose((visits[:, None] * policy * r).sum(), backwards, atol=1e-12)


@given(twins.worlds, st.integers(0, 100), st.sampled_from([1.0, 0.9]))
def test_exact_returns_lie_within_four_standard_errors_of_rollouts(world, seed, discount):
    policy = random_policies(world, seed, 1)[0]
    exact = ExactReturns(world).returns(PolicyList([TablePolicy(policy)]), discount)[0]
    returns, lengths = RolloutReturns(world, 4000, seed).episode_returns(TablePolicy(policy), discount)
    assert abs(returns.mean() - exact) <= 4 * returns.std() / np.sqrt(len(returns)) + 1e-9
    assert 1 <= lengths.min() <= lengths.max() <= world.horizon


@given(twins.worlds, st.integers(0, 100), st.sampled_from([1.0, 0.9]), st.sampled_from([1, 3]))
def test_policies_one_by_one_have_the_returns_of_lanes(world, seed, discount, lanes):
    policies = random_policies(world, seed, 3)
    blocks = np.moveaxis(policies.reshape(3 // lanes, lanes, *policies.shape[1:]), 1, -1)
    together = ExactReturns(world).returns(TablePolicies(np.ascontiguousarray(blocks), 3), discount)
    out = np.empty((3 // lanes, lanes))
    returns_one_by_one(world.model, world.start, world.horizon, discount, np.ascontiguousarray(blocks), out)
    np.testing.assert_allclose(out.ravel(), together, atol=1e-12)


def test_returns_in_large_worlds_are_those_of_the_numpy_twin():
    world = wide_world(0)
    p, r, _ = twins.dense_world(world)
    policies = random_policies(world, 0, 2)
    found = ExactReturns(world).returns(PolicyList([TablePolicy(policy) for policy in policies]), 0.9)
    expected = [twins.expected_return(p, r, policy, world.start, world.horizon, 0.9) for policy in policies]
    np.testing.assert_allclose(found, expected, atol=1e-12)
