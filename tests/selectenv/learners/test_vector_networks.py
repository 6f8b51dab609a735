"""Neural learners on vectors: standardised columns, groups, terminated and truncated episodes, bad observations.

What networks on images and on vectors have in common is tested in `test_iql`.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.grouping import group_states
from selectenv.datasets.vector_observations import Vectors
from selectenv.errors import ObservationError
from selectenv.kernels.threads import in_chunks
from selectenv.learners import CloningLearner, IqlLearner, Settings, training_run
from selectenv.learners.training_run import IqlRun
from selectenv.policies import LabelledPolicy
from tests.selectenv.learners.vector_data import choices, vector_data

SHORT = Settings(updates=12, batch=16)


def weights(policy):
    valued = policy.valued if isinstance(policy, LabelledPolicy) else policy
    return np.concatenate([part.ravel() for network in valued.networks for part in network.layers])


def learned(data, labels, rule="uds", **options):
    return IqlLearner(rule=rule, settings=SHORT, **options).fit(data, data.all_rewards, labels)


@given(st.lists(st.integers(-20, 20), min_size=5, max_size=5))
@settings(max_examples=10, deadline=None)
def test_units_of_columns_do_not_matter(powers):
    """Columns are standardised: the same data in other units give the same networks, to the last bit."""
    data = vector_data()
    unit = 2.0 ** np.array(powers)
    other = replace(data, observations=Vectors((data.vectors.values * unit).astype(np.float32)))
    every = np.ones(data.n_states, bool)
    mine, theirs = learned(data, every), learned(other, every)
    np.testing.assert_array_equal(weights(mine.policy), weights(theirs.policy))
    np.testing.assert_array_equal(mine.q, theirs.q)


def test_constant_columns_are_ignored():
    data = vector_data()
    wider = np.concatenate([data.vectors.values, np.full((data.n_states, 1), 0.1, np.float32)], axis=1)
    found = learned(replace(data, observations=Vectors(wider)), np.ones(data.n_states, bool))
    moved = wider + np.array([0, 0, 0, 0, 0, 1e-6], np.float32)
    states = np.arange(data.n_states)
    q, others = (found.policy.values_and_probabilities(states, values)[0] for values in (wider, moved))
    np.testing.assert_allclose(q, others, atol=1e-5)


@pytest.mark.parametrize("rule", ["uds", "adapted"])
def test_labels_on_groups_are_labels_on_their_states(rule):
    data = vector_data()
    rng = np.random.default_rng(0)
    group = rng.permutation(np.arange(data.n_states) % 20)
    grouped = group_states(data, group)
    labels = rng.random(20) < 0.5
    found, plain = learned(grouped, labels, rule), learned(data, labels[group], rule)
    np.testing.assert_array_equal(weights(found.policy), weights(plain.policy))
    assert found.values.shape == (20,)
    assert found.q.shape == found.table.shape == (20, data.n_actions)
    for mine, of_states in ((found.q, plain.q), (found.table, plain.table), (found.values, plain.values)):
        for g in range(20):
            np.testing.assert_allclose(mine[g], of_states[data.state[group[data.state] == g]].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.table.sum(axis=1), 1)


def test_the_adapted_policy_acts_by_the_group_of_an_observation():
    data = vector_data()
    grouped = group_states(data, 10)
    labels = np.arange(10) % 2 == 0
    policy = learned(grouped, labels, "adapted").policy
    new = data.vectors.values + np.float32(0.01)
    cells = grouped.locate(new).astype(np.int64)
    chances = policy.probabilities(cells, new)
    np.testing.assert_array_equal(chances[labels[cells]], policy.valued.probabilities(cells, new)[labels[cells]])
    np.testing.assert_array_equal(chances[~labels[cells]], policy.otherwise.probabilities(cells, new)[~labels[cells]])
    assert (0 < labels[cells].mean() < 1).all()


@pytest.mark.parametrize("rule", ["uds", "adapted"])
def test_labels_on_episodes(rule):
    data = vector_data()
    grouped = group_states(data, "episode")
    labels = np.arange(grouped.n_states) % 2 == 0
    transitions, pool = IqlLearner(rule=rule)._transitions(grouped, grouped.all_rewards, labels)
    known = labels[np.cumsum(data.episode_start) - 1]
    np.testing.assert_array_equal(transitions.reward[known], data.hidden_reward[known].astype(np.float32))
    np.testing.assert_array_equal(pool, np.flatnonzero(known) if rule == "adapted" else np.arange(len(data)))
    assert not transitions.reward[~known].any()
    np.testing.assert_array_equal(transitions.state, data.state)
    np.testing.assert_array_equal(transitions.next_state[known], data.next_state[known])
    assert learned(grouped, labels, rule).q.shape == (grouped.n_states, data.n_actions)


def test_the_adapted_rule_ignores_unlabelled_transitions():
    """Other rewards, actions and next states of unlabelled transitions give the same networks."""
    data = vector_data()
    labels = np.random.default_rng(0).random(data.n_states) < 0.5
    unknown = ~labels[data.state]
    other = replace(
        data,
        hidden_reward=np.where(unknown, 7.0, data.hidden_reward),
        action=np.where(unknown, 0, data.action).astype(np.int32),
        _shared={},
    )
    mine, theirs = learned(data, labels, "adapted"), learned(other, labels, "adapted")
    np.testing.assert_array_equal(weights(mine.policy), weights(theirs.policy))
    changed = learned(replace(data, hidden_reward=np.where(unknown, data.hidden_reward, 7.0)), labels, "adapted")
    assert (weights(mine.policy) != weights(changed.policy)).any()


@pytest.mark.parametrize(("impute", "same"), [(0.0, True), (-1.0, False)])
def test_uds_imputes_rewards(impute, same):
    data = vector_data()
    labels = np.random.default_rng(0).random(data.n_states) < 0.5
    made = replace(data, hidden_reward=np.where(labels[data.state], data.hidden_reward, impute))
    found = learned(data, labels, impute=impute)
    by_hand = learned(made, np.ones_like(labels))
    np.testing.assert_array_equal(weights(found.policy), weights(by_hand.policy))
    assert (weights(found.policy) == weights(learned(data, labels).policy)).all() == same


@pytest.mark.parametrize("rule", ["uds", "adapted"])
def test_labels_may_be_a_column_of_a_matrix(rule):
    data = vector_data()
    masks = np.random.default_rng(0).random((data.n_states, 3)) < 0.5
    column, plain = learned(data, masks[:, 1], rule), learned(data, masks[:, 1].copy(), rule)
    np.testing.assert_array_equal(weights(column.policy), weights(plain.policy))


def test_the_smallest_revealed_reward_is_imputed():
    """Labels that reveal the smallest reward decide what is imputed, although their own reward equals it."""
    data = vector_data()
    data = replace(data, hidden_reward=np.select([data.state % 3 == 0, data.state % 3 == 1], [-1.0, 2.0], 5.0))
    for states, smallest in (([0, 1], -1.0), ([1, 2], 2.0), ([0], -1.0), ([2], 5.0)):
        labels = np.isin(np.arange(data.n_states) % 3, states)
        found, by_hand = learned(data, labels, impute="min"), learned(data, labels, impute=smallest)
        np.testing.assert_array_equal(weights(found.policy), weights(by_hand.policy))


@pytest.mark.parametrize(("ending", "value"), [("terminated", 1.0), ("truncated", 2.0), ("neither", 2.0)])
def test_only_terminated_transitions_have_no_future(ending, value):
    """One state, a reward of 1 per step and gamma = 0.5: an episode that is cut off goes on."""
    size = 64
    ends = np.ones(size, bool)
    data = OfflineDataset(
        ids=np.arange(1),
        n_actions=1,
        state=np.zeros(size, np.int32),
        action=np.zeros(size, np.int32),
        next_state=np.full(size, -1 if ending == "terminated" else 0, np.int32),
        terminated=ends & (ending == "terminated"),
        truncated=ends & (ending == "truncated"),
        episode_start=ends,
        hidden_reward=np.ones(size),
        observations=Vectors(np.array([[2.0, -1.0]], np.float32)),
    )
    learner = IqlLearner(settings=Settings(updates=800, batch=8, target_step=0.05), gamma=0.5)
    found = learner.fit(data, data.all_rewards, np.ones(1, bool))
    np.testing.assert_allclose(found.q, value, atol=0.02)
    np.testing.assert_allclose(found.values, value, atol=0.02)


def test_cloning_finds_the_action_frequencies():
    data = vector_data(n=2_000, size=20_000)
    learner = CloningLearner(settings=Settings(updates=1_500, batch=128))
    policy = learner.fit(data, data.all_rewards, np.zeros(data.n_states, bool)).policy
    values = data.vectors.values
    found, true = policy.probabilities(np.arange(data.n_states), values), choices(values - 3.0)
    assert np.abs(found - true).mean() < 0.04
    np.testing.assert_allclose(found[data.state].mean(axis=0), np.bincount(data.action) / len(data), atol=0.04)


@pytest.mark.parametrize("learner", ["iql", "iql-adapted", "bc", "bc-greedy"])
@pytest.mark.parametrize(
    "wrong", [np.zeros((3, 4)), np.zeros((3, 6)), np.zeros(5), np.zeros((3, 5, 1)), np.full((3, 5), np.nan)]
)
def test_observations_of_another_shape_are_refused(learner, wrong):
    data = vector_data()
    problem = selectenv.make_problem(dataset=data, learner=learner, updates=2)
    policy = problem.learn(np.ones(data.n_states, bool)).policy
    with pytest.raises(ObservationError, match=r"observations? must"):
        policy.probabilities(np.zeros(len(wrong), int), wrong)
    np.testing.assert_allclose(policy.probabilities(np.zeros(3, int), np.zeros((3, 5))).sum(axis=1), 1)


def test_the_learning_rate_falls_to_zero(monkeypatch):
    """A run with decay is a run whose rate is set by hand, stretch by stretch; warm starts begin with the full rate."""
    monkeypatch.setattr(training_run, "STRETCH", 4)
    falling = Settings(updates=12, batch=16, decay=True)
    assert [falling.rate_after(done) for done in (0, 3, 12)] == [1e-3, 0.75e-3, 0.0]
    assert SHORT.rate_after(9) == SHORT.rate
    data, used = vector_data(), []
    every, advance = np.ones(data.n_states, bool), IqlRun.advance

    def noted(run, chosen, done, rate=None):
        used.append((done, rate))
        advance(run, chosen, done, rate)

    monkeypatch.setattr(IqlRun, "advance", noted)
    learner = IqlLearner(settings=replace(falling, evaluations=3), warm_start=True, warm_share=0.5)
    first = learner.fit(data, data.all_rewards, np.arange(data.n_states) < 2 * data.n_states // 3)
    assert used == [(0, 1e-3), (4, 1e-3 * (1 - 4 / 12)), (8, used[2][1]), (9, used[2][1]), (11, used[2][1])]
    assert used[2][1] == pytest.approx(1e-3 / 3)
    used.clear()
    learner.fit_from(first, data, data.all_rewards, every)
    assert used == [(12, 1e-3), (16, pytest.approx(1e-3 / 3))]
    plain, decayed = learned(data, every), IqlLearner(settings=falling).fit(data, data.all_rewards, every)
    assert (weights(plain.policy) != weights(decayed.policy)).any()


def test_runs_without_decay_keep_their_checkpoints():
    assert "decay" not in SHORT.identity
    assert replace(SHORT, decay=True).identity == {**SHORT.identity, "decay": True}


def test_threads_do_not_change_results():
    data = vector_data()
    masks = np.random.default_rng(0).random((6, data.n_states)) < 0.5
    learner, found = IqlLearner(settings=SHORT), np.empty(6, object)

    def learn(first, last):
        for i in range(first, last):
            found[i] = weights(learner.fit(data, data.all_rewards, masks[i]).policy)

    in_chunks(learn, 6, 1)
    for mask, together in zip(masks, found, strict=True):
        np.testing.assert_array_equal(weights(learned(data, mask).policy), together)


def test_read_only_data_train_the_same_networks():
    """Cached data are mapped from a file."""
    data = vector_data()
    mapped = data.vectors.values.copy()
    mapped.flags.writeable = False
    every = np.ones(data.n_states, bool)
    again = learned(replace(data, observations=Vectors(mapped)), every)
    np.testing.assert_array_equal(weights(again.policy), weights(learned(data, every).policy))


@pytest.mark.parametrize("options", [{"learner": "iql"}, {"learner": "iql-adapted", "warm_start": True}])
def test_an_episode_in_a_control_world(options):
    env = selectenv.make_env(
        "CartPole", expert=None, dataset_size=600, cache=False, groups=12, updates=20, rollouts=3, budget=4, **options
    )
    episode, again = (agents.play(env, agents.make("guided"), seed=0) for _ in range(2))
    assert len(episode.labels) == 4
    assert 8 <= episode.performance <= 500
    assert again.performance == episode.performance
    np.testing.assert_array_equal(episode.labels, again.labels)
