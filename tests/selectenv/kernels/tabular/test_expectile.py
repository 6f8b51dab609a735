"""Exact tables that back up an expectile: against plain numpy, and against the maximum and the mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import selectenv
from selectenv.errors import OptionError
from selectenv.kernels.tabular import expectile as kernels
from selectenv.kernels.tabular.expectile import expectile_of
from selectenv.learners import ExactLearner


def plain_expectile(points, weights, tau):
    """Return the expectiles of rows of weighted points [rows, points] by bisection of their defining equation."""
    low, high = points.min(axis=1), points.max(axis=1)
    for _ in range(60):
        middle = (low + high) / 2
        u = points - middle[:, None]
        above = (weights * np.where(u < 0, 1 - tau, tau) * u).sum(axis=1) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2


def plain_values(data, labels, gamma, tau, *, adapted=False, impute=0.0):
    """Return state values by iterating over all transitions in numpy."""
    shape = data.n_states, data.n_actions
    pair = data.state.astype(np.int64) * data.n_actions + data.action
    taken = np.bincount(pair, minlength=np.prod(shape))
    reward = np.where(labels[data.state], data.all_rewards, impute)
    learned = data.labelable & (labels | (not adapted))
    values, change = np.zeros(data.n_states), 1.0
    while change > 1e-11:
        target = reward + gamma * np.where(data.next_state >= 0, values[data.next_state], 0.0)
        q = (np.bincount(pair, target, len(taken)) / np.maximum(taken, 1)).reshape(shape)
        new = np.where(learned, plain_expectile(q, taken.reshape(shape), tau), 0.0)
        values, change = new, np.abs(new - values).max()
    return values


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 1)), min_size=1, max_size=6),
    st.sampled_from([0.1, 0.5, 0.7, 0.99]),
)
def test_the_expectile_solves_its_equation(pairs, tau):
    points, weights = np.array(pairs).T
    found = expectile_of(points, weights, tau)
    assert found == pytest.approx(plain_expectile(points[None], weights[None], tau)[0], abs=1e-9)
    if tau == 0.5:
        assert found == pytest.approx(np.average(points, weights=weights))


def problem(world, **options):
    return selectenv.make_problem(world, dataset_size=600, cache=False, **options)


@given(
    st.sampled_from(["Graph", "FrozenLake", "CliffWalk"]),
    st.integers(0, 1_000),
    st.sampled_from([0.3, 0.7, 0.95]),
    st.booleans(),
    st.sampled_from([0.0, -1.0]),
)
@settings(max_examples=30, deadline=None)
def test_values_are_those_of_plain_numpy(world, seed, tau, adapted, impute):
    task = problem(world, dataset_seed=seed)
    data, labels = task.dataset, np.random.default_rng(seed).random(task.n_states) < 0.5
    impute = 0.0 if adapted else impute
    learner = ExactLearner("adapted" if adapted else "uds", 0.9, impute, expectile=tau)
    found = learner.fit(data, data.all_rewards, labels)
    plain = plain_values(data, labels, 0.9, tau, adapted=adapted, impute=impute)
    np.testing.assert_allclose(found.values, plain, atol=1e-9)


@pytest.mark.parametrize("gamma", [0.9, 0.999])
@pytest.mark.parametrize("rule", ["uds", "adapted"])
def test_policy_iteration_finishes_what_sweeps_do_not(gamma, rule, monkeypatch):
    data = problem("FrozenLake").dataset
    labels = np.random.default_rng(1).random(data.n_states) < 0.7
    labels[data.state[data.all_rewards > 0]] = True
    learner = ExactLearner(rule, gamma, expectile=0.7)
    monkeypatch.setattr(kernels, "SWEEPS", 1_000_000)
    swept = learner.fit(data, data.all_rewards, labels)
    monkeypatch.setattr(kernels, "SWEEPS", 3)
    iterated = learner.fit(data, data.all_rewards, labels)
    assert np.abs(swept.values).max() > 0.1
    np.testing.assert_allclose(iterated.values, swept.values, atol=1e-9)
    np.testing.assert_array_equal(iterated.table, swept.table)


@pytest.mark.parametrize("world", ["Tree", "FrozenLake"])
def test_a_high_expectile_approaches_the_maximum_and_a_half_is_the_mean(world):
    data = problem(world).dataset
    every = np.ones(data.n_states, bool)
    excluding = {"gamma": 0.95, "exclude_unseen": True}

    def values(tau):
        return ExactLearner("uds", **excluding, expectile=tau).fit(data, data.all_rewards, every).values

    best = ExactLearner("uds", **excluding).fit(data, data.all_rewards, every).values
    errors = [np.abs(values(tau) - best).max() for tau in (0.9, 0.99, 0.999, 1 - 1e-7)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-4
    model = data.empirical_model(data.all_rewards, exclude_unseen=True)
    followed = np.zeros(data.n_states)
    for _ in range(2_000):  # policy evaluation of the behaviour
        q = np.zeros((data.n_states, data.n_actions))
        for s in range(data.n_states):
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                outcomes = slice(model.first_outcome[choice], model.first_outcome[choice + 1])
                beyond = model.probability[outcomes] @ followed[model.next_state[outcomes]]
                q[s, model.action[choice]] = model.reward[choice] + 0.95 * beyond
        followed, before = (data.action_frequencies * q).sum(axis=1), followed
        if np.abs(followed - before).max() < 1e-12:
            break
    np.testing.assert_allclose(values(0.5), followed, atol=1e-9)


def test_the_policy_is_greedy_over_the_actions_that_count():
    """Unseen actions are worth 0 in the policy, or left out of it, and never change the values."""
    data = problem("FrozenLake").dataset
    every = np.ones(data.n_states, bool)
    unseen = data.action_frequencies == 0
    zero, excluded = (
        ExactLearner("uds", 0.95, exclude_unseen=exclude, expectile=0.7).fit(data, data.all_rewards, every)
        for exclude in (False, True)
    )
    np.testing.assert_allclose(zero.values, excluded.values, atol=1e-9)
    visited = data.labelable
    assert (zero.q[unseen] == 0).all()
    assert np.isnan(excluded.q[visited][unseen[visited]]).all()
    assert (excluded.table[visited][unseen[visited]] == 0).all()
    best = np.nanmax(excluded.q[visited], axis=1)
    np.testing.assert_allclose((excluded.table * np.nan_to_num(excluded.q))[visited].sum(axis=1), best, atol=1e-7)


def test_many_label_sets_are_the_sets_one_by_one():
    task = problem("Graph", expectile=0.7)
    masks = np.random.default_rng(0).random((20, task.n_states)) < 0.4
    single = [task.performance(mask) for mask in masks]
    np.testing.assert_allclose(task.performance_many(masks), single)
    assert len(set(single)) > 1


def test_a_large_model_is_solved_component_by_component():
    data = selectenv.make_problem("Breakout", dataset_size=20_000, cache=False).dataset
    labels = np.random.default_rng(0).random(data.n_states) < 0.5
    found = ExactLearner("uds", 0.99, expectile=0.7).fit(data, data.all_rewards, labels)
    best = ExactLearner("uds", 0.99).fit(data, data.all_rewards, labels)
    assert data.n_states > 1_000
    assert (found.values <= best.values + 1e-9).all()
    u = found.q - found.values[:, None]
    np.testing.assert_allclose((data.action_frequencies * np.where(u < 0, 0.3, 0.7) * u).sum(axis=1), 0, atol=1e-9)


def test_the_option_reaches_the_learner():
    assert problem("Tree").learner.expectile is None
    assert problem("Tree", expectile=0.8).learner.expectile == 0.8
    data = selectenv.make_problem("Breakout", dataset_size=1_000, cache=False).dataset

    def learner(**options):
        return selectenv.make_problem("Breakout", dataset=data, **options).learner

    assert learner().expectile == 0.7
    assert learner(expectile="max").expectile is None
    assert learner(learner="adapted").expectile == 0.7
    assert learner(learner="iql", expectile=0.9).settings.expectile == 0.9
    for wrong, text in (
        ({"expectile": 1.0}, "expectile"),
        ({"expectile": "maximum"}, "expectile"),
        ({"expectile": 0.7, "solver": "sampled"}, "sampled"),
        ({"expectile": 0.7, "learner": "bc"}, "'bc' cannot have"),
        ({"expectile": "max", "learner": "iql"}, "'iql' cannot have"),
    ):
        with pytest.raises(OptionError, match=text):
            learner(**wrong)
