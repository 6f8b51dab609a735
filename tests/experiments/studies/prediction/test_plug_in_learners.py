"""Fitted Q iteration and conservative Q-learning: targets, the penalty, unknown rewards, and what they learn."""

import numpy as np
import pytest
import torch

import selectenv
from experiments.studies.prediction.conservative_q import ConservativeQ
from experiments.studies.prediction.fitted_q import FittedQ, GreedyPolicy, new_network, transitions
from selectenv.errors import LearnerError, SelectEnvError
from tests.selectenv.learners.vector_data import vector_data

FEW = {"iterations": 3, "updates": 5, "batch": 32}


@pytest.fixture(scope="module")
def data():
    return vector_data()


def values(learner, data, rewards):
    return learner.fit(data.without_rewards, rewards).q


def test_the_same_seed_gives_the_same_values(data):
    first, again, other = (values(FittedQ(seed=seed, **FEW), data, data.hidden_reward) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_without_its_penalty_conservative_q_learning_is_fitted_q_iteration(data):
    plain = values(FittedQ(seed=3, **FEW), data, data.hidden_reward)
    np.testing.assert_array_equal(values(ConservativeQ(seed=3, alpha=0.0, **FEW), data, data.hidden_reward), plain)
    assert np.abs(values(ConservativeQ(seed=3, alpha=1.0, **FEW), data, data.hidden_reward) - plain).max() > 1e-3


def test_targets_are_rewards_plus_the_best_value_of_the_next_state(data):
    network = new_network(data.vectors.shape[0], 8, data.n_actions, np.random.default_rng(0))
    made = transitions(data, data.hidden_reward)
    found = FittedQ(gamma=0.9).targets(network, made).numpy()
    q = GreedyPolicy(network, data.vectors.mean, data.vectors.scale).values(data.vectors.values)
    reward = data.hidden_reward / np.abs(data.hidden_reward).max()
    following = np.where(data.next_state >= 0, q.max(axis=1)[data.next_state], 0.0)
    np.testing.assert_allclose(found, reward + 0.9 * following, atol=1e-5)
    assert (data.next_state < 0).any()


def test_the_losses_by_hand():
    q, action, target = torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.tensor([0, 1]), torch.tensor([2.0, 1.0])
    assert FittedQ().loss(q, action, target).item() == pytest.approx((1 + 1) / 2 / 2)
    penalty = (np.log(np.exp(1) + np.exp(3)) - 1 + np.log(2)) / 2
    assert ConservativeQ(alpha=0.5).loss(q, action, target).item() == pytest.approx(0.5 + 0.5 * penalty)


def test_unknown_rewards_count_as_zero(data):
    known = np.arange(len(data)) % 3 == 0
    hidden = np.where(known, data.hidden_reward, np.nan)
    zeros = np.where(known, data.hidden_reward, 0.0)
    np.testing.assert_array_equal(*(values(FittedQ(**FEW), data, rewards) for rewards in (hidden, zeros)))


def test_values_of_groups_are_means_over_their_transitions(data):
    groups = selectenv.group_states(data, 5)
    single, grouped = (values(FittedQ(**FEW), one, data.hidden_reward) for one in (data, groups))
    expected = np.stack([single[data.state[groups.state == group]].mean(axis=0) for group in range(groups.n_states)])
    np.testing.assert_allclose(grouped, expected, atol=1e-6)


@pytest.mark.parametrize("learner", ["fitted_q:FittedQ", "conservative_q:ConservativeQ"])
def test_cartpole_is_learned_with_full_labels(learner):
    """Random actions earn 23."""
    problem = selectenv.make_problem(
        "CartPole",
        dataset_size=5_000,
        groups=50,
        cache=False,
        learner=f"experiments.studies.prediction.{learner}",
        iterations=40,
        updates=50,
        hidden=32,
    )
    assert problem.performance(problem.dataset.labelable) > 100


def test_bad_input_is_refused(data):
    with pytest.raises(LearnerError, match="FittedQ learns from vectors"):
        selectenv.make_problem("Graph", learner="experiments.studies.prediction.fitted_q:FittedQ").performance([1])
    for wrong in ({"gamma": 1.5}, {"iterations": 0}, {"rate": 0.0}, {"seed": -1}):
        with pytest.raises(SelectEnvError, match=next(iter(wrong))):
            FittedQ(**wrong)
    with pytest.raises(SelectEnvError, match="alpha"):
        ConservativeQ(alpha=-1.0)
