"""`fit` and `fit_many`: rewards with NaN where unknown, and learners of other packages."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import selectenv
from selectenv.datasets import collect, dataset_spec
from selectenv.errors import LearnerError
from selectenv.learners import ExactLearner, FitResult, SampledLearner
from selectenv.policies import TablePolicy
from tests.selectenv import twins

LEARNERS = (ExactLearner, SampledLearner)
RULES = ("uds", "adapted")


def data_of(world, seed, size=80):
    """Few transitions, so that some states and actions are not in the data."""
    return collect(world, dataset_spec(world, expert_share=0.3, mixture="all", expert="optimal", size=size, seed=seed))


def some_states(data, seed, share=0.5):
    return (np.random.default_rng(seed).random(data.n_states) < share) & data.labelable


def make(kind, rule, impute, exclude=False):
    return kind(rule, 0.9, impute if rule == "uds" else 0.0, exclude)


learners = st.builds(
    make, st.sampled_from(LEARNERS), st.sampled_from(RULES), st.sampled_from([0.0, -1.0, 0.5]), st.booleans()
)


@given(twins.worlds, st.integers(0, 100), learners)
def test_revealed_rewards_are_enough(world, seed, learner):
    """Learning from the rewards of labelled states is learning from all rewards and the labels."""
    data = data_of(world, seed)
    labels = some_states(data, seed)
    told, shown = learner.fit(data, data.reveal(labels)), learner.fit(data, data.all_rewards, labels)
    np.testing.assert_array_equal(told.table, shown.table)
    np.testing.assert_allclose(told.values, shown.values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(told.q, shown.q, rtol=0, atol=1e-9)
    hidden = learner.fit(data.without_rewards, data.reveal(labels))
    np.testing.assert_array_equal(hidden.table, shown.table)


@given(twins.worlds, st.integers(0, 100), st.sampled_from(LEARNERS))
def test_the_smallest_known_reward_can_be_imputed(world, seed, kind):
    data = data_of(world, seed)
    labels = some_states(data, seed)
    assume(labels.any())
    rewards = data.reveal(labels)
    smallest = make(kind, "uds", "min").fit(data, rewards)
    given_number = make(kind, "uds", float(np.nanmin(rewards))).fit(data, rewards)
    np.testing.assert_array_equal(smallest.table, given_number.table)
    np.testing.assert_allclose(smallest.values, given_number.values, rtol=0, atol=1e-9)


@given(twins.worlds, st.integers(0, 100), learners, st.sampled_from([1, 3, 70]))
@settings(max_examples=40)
def test_many_label_sets_are_learned_as_single_ones(world, seed, learner, sets):
    data = data_of(world, seed)
    masks = np.stack([some_states(data, (seed, i)) for i in range(sets)])
    batch = learner.fit_many(data, data.all_rewards, masks)
    assert len(batch) == sets
    states = np.arange(data.n_states)
    lanes = batch.blocks.shape[3]
    for i, mask in enumerate(masks):
        alone = learner.fit(data, data.all_rewards, mask).table
        np.testing.assert_array_equal(batch.blocks[i // lanes, :, :, i % lanes], alone)
        np.testing.assert_array_equal(batch.probabilities(np.full(data.n_states, i), states), alone)


@given(twins.worlds, st.integers(0, 100), learners)
@settings(max_examples=40)
def test_many_label_sets_of_rewards_that_were_told(world, seed, learner):
    """`fit_many` takes rewards that are not those of the dataset, too."""
    data = data_of(world, seed)
    rewards = np.random.default_rng(seed).integers(-2, 3, len(data)).astype(float)
    masks = np.stack([some_states(data, (seed, i)) for i in range(3)])
    batch = learner.fit_many(data, rewards, masks)
    for i, mask in enumerate(masks):
        told = learner.fit(data, np.where(mask[data.state], rewards, np.nan))
        found = batch.probabilities(np.full(data.n_states, i), np.arange(data.n_states))
        np.testing.assert_array_equal(found, told.table)


@given(twins.worlds, st.integers(0, 100), st.sampled_from([0.0, -1.0, 0.5]), st.booleans())
def test_partly_known_rewards_are_averaged_over_the_known_ones(world, seed, impute, exclude):
    """The expected reward of an action is the mean of its known rewards; without any it is imputed (UDS)."""
    data = data_of(world, seed)
    rng = np.random.default_rng(seed)
    rewards = np.where(rng.random(len(data)) < 0.5, rng.integers(-3, 4, len(data)), np.nan)
    p, r, seen = twins.dense_data(data)
    for s, a in np.argwhere(seen):
        own = rewards[(data.state == s) & (data.action == a)]
        r[s, a] = impute if np.isnan(own).all() else np.nanmean(own)
    q, values, policy = twins.learn(
        p, r, seen, np.ones(data.n_states, bool), 0.9, exclude=exclude, behaviour=data.action_frequencies, sweeps=400
    )
    found = ExactLearner("uds", 0.9, impute, exclude).fit(data, rewards)
    np.testing.assert_allclose(found.values, values, atol=1e-9)
    np.testing.assert_allclose(np.nan_to_num(found.q), np.where(np.isfinite(q), q, 0.0), atol=1e-9)
    np.testing.assert_allclose(found.table, policy, atol=1e-12)


def test_learners_of_one_dataset_do_not_disturb_each_other():
    """Models with the dataset's own rewards are kept, whatever the imputed reward of the learner that made them."""
    world = twins.random_world(3)
    fresh, used = data_of(world, 0, size=15), data_of(world, 0, size=15)
    labels = some_states(used, 1)
    for impute in (1e9, -1e9, 0.5):
        ExactLearner("uds", 0.9, impute).fit(used, used.all_rewards, labels)
    kept = used.empirical_model(used.all_rewards).reward
    np.testing.assert_array_equal(kept, fresh.empirical_model(fresh.all_rewards).reward)


class OnlyFit:
    """Labels in, the action with the highest mean known reward out; 0 where nothing is known."""

    def __init__(self, with_values):
        self.with_values, self.seen = with_values, []

    def fit(self, dataset, rewards):
        self.seen.append((dataset, rewards))
        total = np.zeros((dataset.n_states, dataset.n_actions))
        known = ~np.isnan(rewards)
        np.add.at(total, (dataset.state[known], dataset.action[known]), rewards[known])
        best = total == total.max(axis=1, keepdims=True)
        policy = TablePolicy(best / best.sum(axis=1, keepdims=True))
        return FitResult(policy, total) if self.with_values else policy


@pytest.mark.parametrize("with_values", [False, True])
def test_a_learner_needs_only_fit(with_values):
    source = selectenv.make_problem("Tree", dataset_size=2000)
    learner = OnlyFit(with_values)
    problem = selectenv.SelectionProblem(source.dataset, learner, source.evaluator)
    masks = np.random.default_rng(0).random((6, 31)) < 0.3
    many = problem.performance_many(masks)
    assert many.tolist() == [problem.performance(mask) for mask in masks]
    assert many.tolist() == [problem.evaluator.evaluate(problem.learn(mask).policy) for mask in masks]
    assert len(set(many.tolist())) > 1
    result = problem.learn([15])
    assert (result.q is not None) == with_values
    assert result.table.shape == (31, 2)
    assert result.values.any() == with_values
    env = selectenv.RewardSelectionEnv(problem, 3)
    env.reset(seed=0)
    for state in (15, 19, 23):
        obs, reward, over, _, _ = env.step(state)
        assert obs["value"].any() == with_values
        assert obs["on_policy_visitation"].sum() == pytest.approx(1, abs=1e-5)
    assert over
    assert reward == problem.score([15, 19, 23])


def test_a_learner_never_sees_hidden_rewards():
    source = selectenv.make_problem("Tree", dataset_size=2000)
    learner = OnlyFit(False)
    problem = selectenv.SelectionProblem(source.dataset, learner, source.evaluator)
    masks = np.random.default_rng(0).random((4, 31)) < 0.3
    problem.performance_many(masks)
    problem.learn([3, 7])
    env = selectenv.RewardSelectionEnv(problem, 2)
    env.reset(seed=0)
    env.step(4)
    wanted = [*masks, problem.mask([3, 7]), problem.mask([]), problem.mask([4])]
    assert len(learner.seen) == len(wanted)
    remaining = {mask.tobytes() for mask in wanted}
    for dataset, rewards in learner.seen:
        assert dataset.hidden_reward is None
        known = dataset.states_with_rewards(rewards)
        remaining.discard(known.tobytes())
        np.testing.assert_array_equal(rewards, source.dataset.reveal(known))
    assert not remaining


@pytest.mark.parametrize("wrong", [None, "policy", np.ones((31, 2)), {"policy": 1}])
def test_invalid_results_of_a_learner_are_refused(wrong):
    class Wrong:
        def fit(self, dataset, rewards):
            return wrong

    data = selectenv.make_problem("Tree", dataset_size=200).dataset
    with pytest.raises(LearnerError, match=r"^Wrong\.fit must return a policy"):
        selectenv.SelectionProblem(data, Wrong()).learn([0])
    with pytest.raises(LearnerError, match="needs a method fit"):
        selectenv.SelectionProblem(data, wrong)


def test_labels_without_hidden_rewards_need_told_ones():
    """Data without rewards are learned from as soon as somebody tells their rewards."""
    source = selectenv.make_problem("Graph", dataset_size=2000).dataset
    blind = replace(source, hidden_reward=None)
    labels = np.zeros(15, bool)
    labels[[7, 9, 11]] = True
    for kind in LEARNERS:
        told, nothing = kind().fit(blind, source.reveal(labels)), kind().fit(blind, blind.all_rewards)
        np.testing.assert_array_equal(told.table, kind().fit(source, source.all_rewards, labels).table)
        assert (nothing.values == 0).all()
