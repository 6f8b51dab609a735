"""One label set at a time and many in lanes: two sets of loops that must agree to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectenv.domains.tabular.random_worlds import pad, random_world
from selectenv.evaluation import Evaluator, ExactReturns
from selectenv.kernels.tabular.learn_in_lanes import learn_in_lanes
from selectenv.kernels.tabular.model import ELIMINATION_LIMIT
from selectenv.kernels.tabular.occupancy import best_predecessors, eliminated_visits
from selectenv.kernels.tabular.one_set import learn_set, return_of_policy
from selectenv.kernels.tabular.packed_tables import (
    EMPIRICAL,
    LEARNED,
    PREDECESSORS,
    VALUE_SCALE,
    Terms,
    model_at,
    new_episodes,
)
from selectenv.kernels.tabular.refits import refit_each, refit_in_lanes
from selectenv.kernels.tabular.returns import returns_of_blocks
from selectenv.kernels.tabular.solve import learn_blocks
from selectenv.kernels.tabular.tolerances import TIE
from selectenv.kernels.tabular.visits_in_lanes import eliminate_in_lanes, short_sums, visit_pattern
from selectenv.learners import ExactLearner
from selectenv.observation import learned_features
from selectenv.problem import SelectionProblem
from selectenv.problem_tables import put_row, repeated, tables_of
from tests.selectenv import twins
from tests.selectenv.kernels.tabular.test_solve import RULES, data_of

CASES = (
    st.one_of(
        twins.worlds, st.integers(0, 10_000).map(lambda seed: random_world(np.random.default_rng(seed), largest=60))
    ),
    st.integers(0, 100),
    st.booleans(),
)
"""World, seed, and whether the rule is the adapted one."""


def bits(array):
    return np.ascontiguousarray(array, np.float64).view(np.int64)


def drawn(data, seed, sets):
    """Return label sets of very different sizes."""
    rng = np.random.default_rng(seed)
    return (rng.random((sets, data.n_states)) < rng.random((sets, 1))) & data.labelable


def rule_of(learner, data, impute):
    return learner.model(data, data.all_rewards, impute), (
        learner.gamma,
        impute,
        learner.rule == "adapted",
        data.action_frequencies,
    )


@given(*CASES, st.booleans(), st.sampled_from([0.0, -0.7]), st.sampled_from([0.3, 0.99]))
def test_learning_from_one_set_has_the_bits_of_a_lane(world, seed, adapted, exclude, impute, gamma):
    data = data_of(world, seed, size=300)
    n, actions, sets = data.n_states, data.n_actions, 9
    learner = ExactLearner(RULES[adapted], gamma, impute, exclude)
    model, rule = rule_of(learner, data, impute)
    masks = drawn(data, seed, sets)
    values, policies = np.empty((1, n, sets)), np.empty((1, n, actions, sets))
    learn_in_lanes(model, *rule, masks, values, policies)
    for i, mask in enumerate(masks):
        alone = np.empty((1, n, 1)), np.empty((1, n, actions, 1)), np.empty((1, n, actions, 1))
        learn_blocks(model, mask[None], *rule, *alone)
        found = np.empty(n), np.empty((n, actions)), np.empty((n, actions))
        learn_set(model, mask, *rule, *found)
        for one, other in zip(alone, found, strict=True):
            assert np.array_equal(one.reshape(other.shape), other, equal_nan=True)
        assert np.array_equal(bits(found[0]), bits(values[0, :, i]))
        assert np.array_equal(bits(found[2]), bits(policies[0, :, :, i]))


@given(*CASES, st.sampled_from([1.0, 0.9]))
def test_one_return_has_the_bits_of_a_lane(world, seed, adapted, discount):
    rng = np.random.default_rng(seed)
    policies = rng.dirichlet(np.full(world.n_actions, 0.5), (world.n_states, 5)).transpose(0, 2, 1)[None]
    policies = np.ascontiguousarray(np.where(rng.random(policies.shape) < 0.3, 0.0, policies))
    engine, lanes = ExactReturns(world), np.empty((1, 5))
    terms = world.model, world.chain, world.start, world.horizon, discount, engine.one_sweep
    returns_of_blocks(*terms, policies, lanes)
    for i in range(5):
        assert return_of_policy(*terms, np.ascontiguousarray(policies[0, :, :, i])) == lanes[0, i]


@given(*CASES, st.floats(0, 0.99))
def test_visits_in_lanes_have_the_bits_of_elimination_one_by_one(world, seed, adapted, gamma):
    data = data_of(world, seed, size=300)
    model, lanes = data.empirical_model(), 6
    rng = np.random.default_rng(seed)
    policy = rng.random((data.n_states, data.n_actions, lanes)) * (rng.random((data.n_states, data.n_actions, 1)) < 0.6)
    pattern = visit_pattern(model)
    visits = np.repeat(data.start[:, None], lanes, axis=1)
    eliminate_in_lanes(
        model, pattern, policy / data.n_actions, gamma, np.empty((pattern.slot.max() + 1, lanes)), visits
    )
    for w in range(lanes):
        alone = eliminated_visits(model, np.ascontiguousarray(policy[:, :, w] / data.n_actions), data.start, gamma)
        assert np.array_equal(bits(alone), bits(visits[:, w]))


@given(st.integers(1, ELIMINATION_LIMIT), st.integers(0, 1000))
def test_short_sums_are_those_of_numpy(n, seed):
    numbers, total = np.random.default_rng(seed).random((n, 5)) ** 4, np.empty(5)
    short_sums(numbers, total)
    for lane, found in zip(numbers.T, total, strict=True):
        assert found == np.ascontiguousarray(lane).sum()


def problem_of(world, seed, adapted, impute=0.0):
    data = data_of(world, seed, size=300)
    return SelectionProblem(data, ExactLearner(RULES[adapted], 0.95, impute), Evaluator(ExactReturns(world), 0.9))


@given(*CASES, st.booleans())
def test_refits_agree_with_the_problem_in_lanes_and_one_by_one(world, seed, adapted, published):
    """The features and returns of both passes are those of the learner and the evaluator themselves."""
    problem, sets = problem_of(world, seed, adapted), 7
    tables, masks, rng = tables_of(problem), drawn(problem.dataset, seed, 7), np.random.default_rng(seed)
    terms = Terms(1, False, published, True, True, True)
    refit, measure = rng.random((2, sets)) < 0.7
    both = [new_episodes(sets, problem.n_states) for _ in range(2)]
    measured = np.full((2, sets), np.nan)
    for episodes in both:
        episodes.labelled_at[:] = masks
    refit_each(0, sets, tables, both[0], terms, refit, measure, measured[0])
    pattern = visit_pattern(problem.dataset.empirical_model())
    refit_in_lanes(0, sets, tables, both[1], terms, refit, measure, measured[1], pattern)
    np.testing.assert_array_equal(both[0].features, both[1].features)
    np.testing.assert_array_equal(both[0].scales, both[1].scales)
    np.testing.assert_array_equal(*measured)
    kind = "published" if published else "normalised"
    for i in range(sets):
        features, scale = learned_features(problem, problem.learn(masks[i]), masks[i], 0.0, kind, "best")
        for row, name in enumerate(("on_policy_visitation", "value", "predecessors"), 1):
            wanted = features[name] if refit[i] else np.zeros_like(features[name])
            np.testing.assert_array_equal(both[0].features[row, i], wanted)
        assert both[0].scales[i, VALUE_SCALE] == (scale if refit[i] else 0)
        assert np.isnan(measured[0, i]) if not measure[i] else measured[0, i] == problem.score(masks[i])


@given(*CASES)
def test_predecessors_are_those_of_the_guided_strategy(world, seed, adapted):
    problem = problem_of(world, seed, adapted, "min")
    masks, episodes = drawn(problem.dataset, seed, 3), new_episodes(3, problem.n_states)
    episodes.labelled_at[:] = masks
    terms = Terms(1, False, False, False, False, True)
    refit_each(0, 3, tables_of(problem), episodes, terms, np.ones(3, bool), np.zeros(3, bool), np.empty(0))
    for i, mask in enumerate(masks):
        values = problem.learn(mask).values
        spread = best_predecessors(values, mask, *problem.dataset.predecessors, TIE)
        np.testing.assert_array_equal(episodes.features[PREDECESSORS, i], spread.astype(np.float32))
    assert not episodes.features[:PREDECESSORS].any()  # nothing else was asked for


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=4), st.booleans())
def test_problems_of_different_sizes_side_by_side(seeds, adapted):
    """Rows grow with the largest problem, and each episode gets the results of its own."""
    worlds = [pad(random_world(np.random.default_rng(seed), largest=20), 20) for seed in seeds]
    problems = [problem_of(world, seed, adapted, -0.5) for world, seed in zip(worlds, seeds, strict=True)]
    stack = repeated(tables_of(problems[0]), len(problems))
    for row, problem in enumerate(problems):
        stack = put_row(stack, row, tables_of(problem))
    episodes, measured = new_episodes(len(problems), 20), np.empty(len(problems))
    masks = [drawn(problem.dataset, seed, 1)[0] for problem, seed in zip(problems, seeds, strict=True)]
    episodes.labelled_at[:] = masks
    every = np.ones(len(problems), bool)
    refit_each(0, len(problems), stack, episodes, Terms(1, False, False, True, True, True), every, every, measured)
    for i, (problem, mask) in enumerate(zip(problems, masks, strict=True)):
        features, _ = learned_features(problem, problem.learn(mask), mask, 0.0, "normalised", "best")
        for row, name in enumerate(features, 1):
            np.testing.assert_array_equal(episodes.features[row, i], features[name])
        assert measured[i] == problem.score(mask)


@pytest.mark.parametrize("exclude", [False, True])
def test_models_come_out_of_the_tables_as_they_went_in(exclude):
    world = random_world(np.random.default_rng(3), largest=30)
    data = data_of(world, 0, size=200)
    problem = SelectionProblem(data, ExactLearner(exclude_unseen=exclude))
    tables = tables_of(problem)
    for number, model in (
        (LEARNED, problem.learner.model(data, data.all_rewards, 0.0)),
        (EMPIRICAL, data.empirical_model()),
    ):
        found = model_at.py_func(tables, 0, number)
        for name, value in model._asdict().items():
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
