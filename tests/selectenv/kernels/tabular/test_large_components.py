"""Policy iteration in large components against dense elimination, for values, policies and visits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selectenv.kernels.tabular import linear_systems, single
from selectenv.learners import ExactLearner
from tests.selectenv.wide_worlds import copy_of, data_of, elimination_everywhere, wide_world

reaches = st.sampled_from([2, 10, 1000])
"""How far actions lead: nearby states mix slowly, all states mix fast."""


def both_ways(learner, data, label):
    """The fit of the large solver and of elimination."""
    large = learner.fit(data, data.all_rewards, label)
    with elimination_everywhere():
        dense = copy_of(data)
        return large, learner.fit(dense, dense.all_rewards, label)


@settings(max_examples=30)
@given(
    st.integers(0, 10_000),
    reaches,
    st.sampled_from([0.01, 0.5, 1.0]),
    st.sampled_from(["uds", "adapted"]),
    st.sampled_from([0.0, -1.0, 0.5, "min"]),
    st.booleans(),
    st.sampled_from([0.0, 0.9, 0.99, 0.999]),
)
def test_large_components_are_solved_as_by_elimination(seed, reach, share, rule, impute, exclude, gamma):
    data = data_of(wide_world(seed, reach), seed)
    label = (np.random.default_rng(seed).random(data.n_states) < share) & data.labelable
    large, dense = both_ways(ExactLearner(rule, gamma, 0.0 if rule == "adapted" else impute, exclude), data, label)
    tolerance = 1e-9 * max(1.0, np.abs(dense.values).max())
    np.testing.assert_allclose(large.values, dense.values, atol=tolerance)
    np.testing.assert_allclose(large.q, dense.q, atol=tolerance)
    np.testing.assert_array_equal(large.table, dense.table)


@pytest.mark.parametrize("seed", range(8))
def test_coarse_evaluations_do_not_make_policies_cycle(seed):
    """With a discount close to 1, a small residual of the evaluation can be a large error of the values."""
    data = data_of(wide_world(seed, reach=2), seed)
    large, dense = both_ways(ExactLearner("uds", 0.99999, -1.0), data, data.labelable)
    np.testing.assert_allclose(large.values, dense.values, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rule", ["uds", "adapted"])
def test_systems_that_do_not_converge_are_factorised(rule, monkeypatch):
    data = data_of(wide_world(3, reach=2), 0)
    label = np.arange(data.n_states) % 3 == 0
    learner = ExactLearner(rule)
    usual = learner.fit(data, data.all_rewards, label)
    visits = single.occupancy(data.empirical_model(), usual.table.copy(), data.start, 0.99)
    monkeypatch.setattr(linear_systems, "ITERATIONS", 0)
    factorised = learner.fit(data, data.all_rewards, label)
    np.testing.assert_allclose(factorised.values, usual.values, atol=1e-9)
    np.testing.assert_array_equal(factorised.table, usual.table)
    again = single.occupancy(data.empirical_model(), usual.table.copy(), data.start, 0.99)
    np.testing.assert_allclose(again, visits, atol=1e-12)


@given(st.integers(0, 10_000), reaches, st.sampled_from([1.0, 0.5]), st.sampled_from([0.9, 0.99]))
def test_visits_are_those_of_elimination(seed, reach, kept, gamma):
    data, rng = data_of(wide_world(seed, reach), seed), np.random.default_rng(seed)
    policy = kept * rng.dirichlet(np.full(data.n_actions, 0.3), data.n_states)
    policy[policy < 0.05] = 0.0
    found = single.occupancy(data.empirical_model(), policy, data.start, gamma)
    with elimination_everywhere():
        expected = single.occupancy(data.empirical_model(), policy, data.start, gamma)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (found >= 0).all()
    assert (found[expected == 0] == 0).all()


@given(st.integers(0, 10_000), reaches, st.sampled_from(["uds", "adapted"]), st.sampled_from([0.0, -1.0]))
def test_a_guess_changes_nothing(seed, reach, rule, impute):
    data, rng = data_of(wide_world(seed, reach), seed), np.random.default_rng(seed)
    model = data.empirical_model(data.all_rewards)
    before, label = ((rng.random(data.n_states) < share) & data.labelable for share in (0.2, 0.3))
    if single.in_lanes(model):
        return
    terms = 0.99, impute, rule == "adapted"
    guess = single.solve_one(model, before, *terms)
    kept = guess.values.copy(), guess.choices.copy()
    _, q, table = single.learn_one(model, label, *terms, data.action_frequencies)
    _, warm_q, warm_table = single.learn_one(model, label, *terms, data.action_frequencies, guess)
    np.testing.assert_allclose(warm_q, q, atol=1e-11)
    np.testing.assert_array_equal(warm_table, table)
    np.testing.assert_array_equal(guess.values, kept[0])
    np.testing.assert_array_equal(guess.choices, kept[1])
