"""What label sets are worth under many reward functions: against `performance_many`, and in other ways."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from selectenv.datasets import collect, dataset_spec
from selectenv.domains.tabular.cliff_walk import cliff_walk
from selectenv.domains.tabular.world import from_outcomes
from selectenv.evaluation import Evaluator, ExactReturns
from selectenv.kernels.tabular.model import build_chain
from selectenv.kernels.tabular.reward_lanes import Terms, imagined_returns, optimal_values
from selectenv.learners import ExactLearner
from selectenv.problem import SelectionProblem
from tests.selectenv import twins

HORIZON, GAMMA = 30, 0.95
RULES = ("uds", "adapted")
IMPUTED = (0.0, -1.0, "min")


def data_of(world, seed, size=600):
    return collect(world, dataset_spec(world, expert_share=0.3, mixture="all", expert="optimal", size=size, seed=seed))


def empirical_world(data, rewards):
    """The world whose dynamics are those of the data and whose rewards [choices] belong to states and actions.

    Actions that the data never took do what the data do on average in the state.
    """
    unique = data.unique_transitions
    parts = {name: [] for name in ("state", "action", "probability", "next_state", "reward", "terminated")}
    reward = dict(zip(pairs_of(data), rewards, strict=True))
    for s in range(data.n_states):
        for a in range(data.n_actions):
            for b in range(data.n_actions) if (s, a) not in reward else (a,):
                mine = np.flatnonzero((unique.state == s) & (unique.action == b))
                share = data.action_frequencies[s, b] if (s, a) not in reward else 1.0
                for i in mine:
                    ended = unique.next_state[i] < 0
                    parts["state"].append(s)
                    parts["action"].append(a)
                    parts["probability"].append(share * unique.count[i] / unique.count[mine].sum())
                    parts["next_state"].append(0 if ended else unique.next_state[i])
                    parts["reward"].append(reward[s, b])
                    parts["terminated"].append(bool(ended))
    columns = {name: np.array(values) for name, values in parts.items()}
    return from_outcomes("data", **columns, start=data.start, horizon=HORIZON, n_actions=data.n_actions)


def pairs_of(data):
    model = data.empirical_model(exclude_unseen=True)
    state = np.repeat(np.arange(data.n_states), np.diff(model.first_choice))
    return list(zip(state.tolist(), model.action.tolist(), strict=True))


def all_returns(data, rewards, masks, learner, discount=1.0, horizon=HORIZON, sweeps=0):
    """Rewards [functions, pairs] -> returns [sets, functions]."""
    model = data.empirical_model(exclude_unseen=learner.exclude_unseen)
    minimum = learner.impute == "min"
    terms = Terms(
        learner.gamma,
        0.0 if minimum else learner.impute,
        minimum,
        learner.rule == "adapted",
        discount,
        horizon,
        sweeps,
    )
    lanes = np.zeros((len(model.action), len(rewards)))
    lanes[np.flatnonzero(model.seen)] = rewards.T
    return imagined_returns(
        model, build_chain(model), lanes, masks, data.action_frequencies, data.start, terms, one_pass=False
    )


@given(
    twins.worlds, st.integers(0, 100), st.sampled_from(RULES), st.sampled_from(IMPUTED), st.booleans(), st.booleans()
)
def test_returns_are_those_of_performance_many(world, seed, rule, impute, exclude, forever):
    """Each reward function in turn becomes the hidden reward of the data, and the data become the world."""
    data, rng = data_of(world, seed), np.random.default_rng(seed)
    assume(data.labelable.all())
    learner = ExactLearner(rule, GAMMA, impute if rule == "uds" else 0.0, exclude)
    pairs = pairs_of(data)
    rewards = rng.integers(-2, 3, (3, len(pairs))).astype(float)
    masks = (rng.random((10, data.n_states)) < rng.random((10, 1))) & data.labelable
    discount, horizon = (0.9, 0) if forever else (1.0, HORIZON)
    found = all_returns(data, rewards, masks, learner, discount, horizon)
    truths = [empirical_world(data, function) for function in rewards]
    assume(len(truths[0].ids) == data.n_states)  # unless the data begin in the middle of an episode
    for i, (function, truth) in enumerate(zip(rewards, truths, strict=True)):
        told = replace(data, hidden_reward=function[pair_numbers(data)], _shared={})
        engine = ExactReturns(replace(truth, horizon=400) if forever else truth)
        problem = SelectionProblem(told, learner, Evaluator(engine, discount))
        np.testing.assert_allclose(found[:, i], problem.performance_many(masks), atol=1e-7)


def pair_numbers(data):
    """The number of the pair of each transition."""
    number = {pair: i for i, pair in enumerate(pairs_of(data))}
    return np.array([number[pair] for pair in zip(data.state.tolist(), data.action.tolist(), strict=True)])


def some_case(seed=3, size=600):
    data, rng = data_of(cliff_walk(), seed, size), np.random.default_rng(seed)
    rewards = rng.normal(size=(5, len(pairs_of(data))))
    masks = (rng.random((40, data.n_states)) < rng.random((40, 1))) & data.labelable
    return data, rewards, masks


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("horizon", [0, HORIZON])
def test_sweeps_over_large_models_find_the_same(rule, horizon, monkeypatch):
    data, rewards, masks = some_case()
    learner = ExactLearner(rule, GAMMA)
    small = all_returns(data, rewards, masks, learner, 0.9, horizon)
    model = data.empirical_model()
    large = twins.in_components(model)._replace(slot=np.empty((0, 0), np.int32))
    monkeypatch.setattr(type(data), "empirical_model", lambda self, **_: large)
    np.testing.assert_allclose(all_returns(data, rewards, masks, learner, 0.9, horizon), small, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_a_few_sweeps_come_close(rule):
    data, rewards, masks = some_case(size=20_000)
    learner = ExactLearner(rule, GAMMA)
    exact = all_returns(data, rewards, masks, learner, 0.9, 0)
    near = all_returns(data, rewards, masks, learner, 0.9, 0, sweeps=50)
    assert np.corrcoef(exact.ravel(), near.ravel())[0, 1] > 0.98


def test_threads_and_neighbours_do_not_matter(monkeypatch):
    data, rewards, masks = some_case()
    learner = ExactLearner("uds", GAMMA)
    monkeypatch.setenv("SELECTENV_THREADS", "1")
    found = all_returns(data, rewards, masks, learner)
    monkeypatch.setenv("SELECTENV_THREADS", "3")
    assert np.array_equal(all_returns(data, rewards, masks, learner), found)
    alone = np.concatenate([all_returns(data, rewards, mask[None], learner) for mask in masks])
    np.testing.assert_allclose(alone, found, atol=1e-9)


@given(twins.worlds, st.integers(0, 100))
def test_optimal_values_are_those_of_the_learner_with_all_labels(world, seed):
    data, rng = data_of(world, seed, 60), np.random.default_rng(seed)
    rewards = rng.normal(size=(40, len(pairs_of(data))))
    found = optimal_values(data.empirical_model(exclude_unseen=True), np.ascontiguousarray(rewards.T), GAMMA)
    state, action = np.array(pairs_of(data)).T
    for i in (0, 39):
        fit = ExactLearner("uds", GAMMA, 0.0, True).fit(data, rewards[i][pair_numbers(data)], data.labelable)
        np.testing.assert_allclose(found[:, i], fit.q[state, action], atol=1e-8)
