"""Returns backwards against the distribution forwards, in numpy and in the kernel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selectenv.evaluation import ExactReturns, RolloutReturns
from selectenv.kernels.tabular.returns import expected_visits
from selectenv.policies import PolicyList, TablePolicies, TablePolicy
from tests.selectenv import twins


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
