"""The lane solver against plain value iteration, and against itself by sweeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from selectenv.datasets import collect, dataset_spec
from selectenv.kernels.tabular import single
from selectenv.learners import ExactLearner
from tests.selectenv import twins

GAMMA = 0.95
RULES = {False: "uds", True: "adapted"}


def data_of(world, seed, size=60):
    """Few transitions, so that states and actions stay unseen."""
    return collect(world, dataset_spec(world, expert_share=0.3, mixture="all", expert="optimal", size=size, seed=seed))


@given(twins.worlds, st.integers(0, 100), st.booleans(), st.booleans(), st.sampled_from([0.0, -1.0, 0.5]))
def test_exact_learner_agrees_with_value_iteration(world, seed, adapted, exclude, impute):
    data = data_of(world, seed)
    learner = ExactLearner(RULES[adapted], GAMMA, impute, exclude)
    label = (np.random.default_rng(seed).random(data.n_states) < 0.5) & data.labelable
    q, values, policy = twins.learn(
        *twins.dense_data(data), label, GAMMA, impute, adapted, exclude, data.action_frequencies, sweeps=800
    )
    learned = learner.fit(data, data.all_rewards, label)
    np.testing.assert_allclose(learned.values, values, atol=1e-9)
    np.testing.assert_allclose(learned.table, policy, atol=1e-12)
    np.testing.assert_allclose(np.nan_to_num(learned.q), np.where(np.isfinite(q), q, 0.0), atol=1e-9)


@given(twins.worlds, st.integers(0, 100), st.booleans(), st.sampled_from([1, 5, 64, 70]))
def test_lanes_agree_with_single_sets_to_the_last_bit(world, seed, adapted, sets):
    data = data_of(world, seed)
    learner = ExactLearner(RULES[adapted])
    masks = (np.random.default_rng(seed).random((sets, data.n_states)) < 0.5) & data.labelable
    blocks = learner.fit_many(data, data.all_rewards, masks).blocks
    lanes = blocks.shape[3]
    for i, mask in enumerate(masks):
        assert np.array_equal(blocks[i // lanes, :, :, i % lanes], learner.fit(data, data.all_rewards, mask).table)


@given(twins.worlds, st.integers(0, 100), st.booleans(), st.booleans(), st.sampled_from([0, 3, 300]))
def test_large_models_agree_with_small_ones(world, seed, adapted, exclude, sweeps):
    """Sweeps, sparse policy iteration and elimination in lanes find the same."""
    data = data_of(world, seed)
    learner = ExactLearner(RULES[adapted], GAMMA, 0.0, exclude)
    label = (np.random.default_rng(seed).random(data.n_states) < 0.5) & data.labelable
    small = learner.fit(data, data.all_rewards, label)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single, "in_lanes", lambda model: False)
        patch.setattr(single, "SWEEPS", sweeps)
        model = data.empirical_model(data.all_rewards, exclude_unseen=exclude)
        patch.setitem(data._models, exclude, twins.in_components(model))
        large = learner.fit(data, data.all_rewards, label)
    np.testing.assert_allclose(small.values, large.values, atol=1e-9)
    np.testing.assert_array_equal(small.table, large.table)
    np.testing.assert_allclose(small.q, large.q, atol=1e-9)


def ring(n, reward, gamma):
    """Two ways to the same value: ``reward`` a step for ever around a ring of n states, or all of it at once."""
    states = np.arange(n)
    state, action = np.concatenate([states, [0]]), np.concatenate([np.zeros(n, int), [1]])
    rewards = np.concatenate([np.full(n, reward), [reward / (1 - gamma)]])
    return selectenv.from_arrays(
        state, action, np.concatenate([(states + 1) % n, [0]]), np.concatenate([np.zeros(n, bool), [True]]), rewards
    )


@pytest.mark.parametrize("n", [100, 128, 129, 400])
@pytest.mark.parametrize(("reward", "gamma"), [(1.0, 0.99), (200.0, 0.99), (50.0, 0.999), (1.0, 0.99999)])
def test_ties_do_not_depend_on_the_size_of_the_model(n, reward, gamma):
    data, learner = ring(n, reward, gamma), ExactLearner(gamma=gamma)
    everything, half = np.ones(n, bool), np.arange(n) % 2 == 0
    np.testing.assert_array_equal(learner.fit(data, data.all_rewards, everything).table[0], [0.5, 0.5])
    both = learner.fit_many(data, data.all_rewards, np.stack([half, everything, half])).blocks
    lanes = both.shape[3]
    alone = learner.fit(data, data.all_rewards, everything).table
    np.testing.assert_array_equal(both[1 // lanes, :, :, 1 % lanes], alone)


@pytest.mark.parametrize("large", [1.0, 1e6])
def test_ties_survive_large_rewards(large):
    """Two mirror-image ways to the same reward stay a tie whatever its size."""
    world = twins.from_outcomes(
        "mirror",
        state=[0, 0, 1, 1, 2, 2],
        action=[0, 1] * 3,
        probability=np.ones(6),
        next_state=[1, 2, 0, 0, 0, 0],
        reward=[0, 0, large / 3, 0, large / 3, 0],
        terminated=[0, 0, 1, 0, 1, 0],
        start=[1.0, 0, 0],
        horizon=9,
    )
    data = data_of(world, 0, size=2000)
    learned = ExactLearner().fit(data, data.all_rewards, np.ones(3, bool))
    np.testing.assert_array_equal(learned.table[0], [0.5, 0.5])
