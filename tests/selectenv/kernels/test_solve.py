"""The lane solver against plain value iteration, and against itself by sweeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectenv.datasets import collect, dataset_spec
from selectenv.kernels.solve import learn_blocks
from selectenv.learners import ExactLearner
from tests.selectenv import twins

GAMMA = 0.95


def data_of(world, seed, size=60):
    """Few transitions, so that states and actions stay unseen."""
    return collect(world, dataset_spec(world, expert_share=0.3, mixture="all", expert="optimal", size=size, seed=seed))


@given(twins.worlds, st.integers(0, 100), st.booleans(), st.booleans(), st.sampled_from([0.0, -1.0, 0.5]))
def test_exact_learner_agrees_with_value_iteration(world, seed, adapted, exclude, impute):
    data = data_of(world, seed)
    learner = ExactLearner(data, adapted, GAMMA, impute, exclude)
    label = (np.random.default_rng(seed).random(data.n_states) < 0.5) & data.labelable
    q, values, policy = twins.learn(
        *twins.dense_data(data), label, GAMMA, impute, adapted, exclude, data.action_frequencies, sweeps=800
    )
    learned = learner.learn(label)
    np.testing.assert_allclose(learned.values, values, atol=1e-9)
    np.testing.assert_allclose(learned.policy, policy, atol=1e-12)
    np.testing.assert_allclose(np.nan_to_num(learned.q), np.where(np.isfinite(q), q, 0.0), atol=1e-9)


@given(twins.worlds, st.integers(0, 100), st.booleans(), st.sampled_from([1, 5, 64, 70]))
def test_lanes_agree_with_single_sets_to_the_last_bit(world, seed, adapted, sets):
    data = data_of(world, seed)
    learner = ExactLearner(data, adapted)
    masks = (np.random.default_rng(seed).random((sets, data.n_states)) < 0.5) & data.labelable
    blocks = learner.learn_policies(masks)
    lanes = blocks.shape[3]
    for i, mask in enumerate(masks):
        assert np.array_equal(blocks[i // lanes, :, :, i % lanes], learner.learn(mask).policy)


@given(twins.worlds, st.integers(0, 100), st.booleans())
def test_elimination_agrees_with_sweeps(world, seed, adapted):
    data = data_of(world, seed)
    model, n, actions = data.empirical_model(), data.n_states, data.n_actions
    masks = (np.random.default_rng(seed).random((16, n)) < 0.5) & data.labelable
    found = []
    for by_sweeps in (False, True):
        values, q, policies = np.empty((1, n, 16)), np.empty((1, n, actions, 16)), np.empty((1, n, actions, 16))
        learn_blocks(model, masks, GAMMA, 0.0, adapted, by_sweeps, data.action_frequencies, values, q, policies)
        found.append((values, policies))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9)
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("large", [1.0, 1e6])
def test_ties_survive_large_rewards(large):
    """Two mirror-image ways to the same reward stay a tie whatever its size."""
    world = twins.from_outcomes(
        "mirror", state=[0, 0, 1, 1, 2, 2], action=[0, 1] * 3, probability=np.ones(6), next_state=[1, 2, 0, 0, 0, 0],
        reward=[0, 0, large / 3, 0, large / 3, 0], terminated=[0, 0, 1, 0, 1, 0], start=[1.0, 0, 0], horizon=9,
    )  # fmt: skip
    data = data_of(world, 0, size=2000)
    learned = ExactLearner(data).learn(np.ones(3, bool))
    np.testing.assert_array_equal(learned.policy[0], [0.5, 0.5])
