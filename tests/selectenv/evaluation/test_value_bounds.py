"""Bounds on values with unknown rewards: never violated, monotone in the labels, tight where all is known."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import selectenv
from selectenv.datasets import collect, dataset_spec
from selectenv.errors import OptionError, PolicyError
from selectenv.evaluation.value_bounds import ValueBounds, value_bounds
from selectenv.learners import make_learner
from tests.selectenv.twins import random_world
from tests.stress import repetitions

LOW, HIGH = -2.0, 2.0
"""Range of the rewards of `random_world`."""


def random_data(seed, size=60):
    """Return a few transitions of a small random world: not every action is taken in every state."""
    world = random_world(seed)
    spec = dataset_spec(world, expert_share=0.3, mixture="all", expert="optimal", size=size, seed=seed)
    return collect(world, spec)


def dense_model(data):
    """Return the transition matrix [n, actions, n] and which actions [n, actions] the data took, counted one by one."""
    n, actions = data.n_states, data.n_actions
    count, total = np.zeros((n, actions, n)), np.zeros((n, actions))
    for s, a, following in zip(data.state, data.action, data.next_state, strict=True):
        total[s, a] += 1
        if following >= 0:
            count[s, a, following] += 1
    return count / np.maximum(total, 1)[:, :, None], total > 0


def mean_rewards(data, rewards):
    """Return the mean reward [n, actions] of each action, 0 where it was not taken."""
    total, count = np.zeros((data.n_states, data.n_actions)), np.zeros((data.n_states, data.n_actions))
    np.add.at(total, (data.state, data.action), rewards)
    np.add.at(count, (data.state, data.action), 1)
    return total / np.maximum(count, 1)


def dense_value(data, rewards, policy, gamma):
    """Return the value of a policy by solving a dense system."""
    probability, taken = dense_model(data)
    share = np.where(taken, policy, 0.0)
    mass = share.sum(axis=1, keepdims=True)
    share = np.where(mass > 0, share / np.where(mass > 0, mass, 1), data.action_frequencies * taken)
    chain = np.einsum("sa,sat->st", share, probability)
    earned = (share * mean_rewards(data, rewards)).sum(axis=1)
    return float(data.start @ np.linalg.solve(np.eye(data.n_states) - gamma * chain, earned))


def deterministic_policies(data):
    """Return every policy that takes one of the data's actions in each state."""
    taken = dense_model(data)[1]
    choices = [np.flatnonzero(row) if row.any() else [0] for row in taken]
    for actions in itertools.product(*choices):
        policy = np.zeros(taken.shape)
        policy[np.arange(len(actions)), actions] = 1
        yield policy


def draw_case(seed):
    rng = np.random.default_rng(seed)
    data = random_data(seed)
    labels = rng.random(data.n_states) < rng.random()
    policy = rng.dirichlet(np.ones(data.n_actions) * 0.3, data.n_states)
    gamma = float(rng.choice([0.0, 0.5, 0.9, 0.99]))
    return rng, data, labels, policy, gamma


@pytest.mark.parametrize("seed", range(0, repetitions(60, 300)))
def test_bounds_equal_brute_force(seed):
    _, data, labels, policy, gamma = draw_case(seed)
    known = labels[data.state]
    found = value_bounds(data, np.where(known, data.hidden_reward, np.nan), policy, gamma, LOW, HIGH)
    low, high = (np.where(known, data.hidden_reward, end) for end in (LOW, HIGH))
    assert found.least == pytest.approx(dense_value(data, low, policy, gamma), abs=1e-8)
    assert found.most == pytest.approx(dense_value(data, high, policy, gamma), abs=1e-8)
    policies = list(itertools.islice(deterministic_policies(data), 300))
    best = max(dense_value(data, high, policy, gamma) for policy in policies)
    assert found.upper >= best - 1e-8
    if len(policies) < 300:
        assert found.upper == pytest.approx(best, abs=1e-8)
    assert found.regret == pytest.approx(max(0.0, found.upper - found.least), abs=found.tolerance)


@settings(max_examples=repetitions(100, 1000))
@given(seed=st.integers(0, 2**31))
def test_bounds_are_never_violated(seed):
    """Whatever the unknown rewards are, the policy earns within its bounds, and no policy beats the upper bound."""
    rng, data, labels, policy, gamma = draw_case(seed)
    lows = rng.uniform(-2, 0, data.n_states)
    highs = lows + rng.uniform(0, 2, data.n_states)
    rewards = (
        rng.uniform(lows, highs)[data.state] if rng.random() < 0.5 else rng.uniform(lows[data.state], highs[data.state])
    )
    if rng.random() < 0.2:
        policy = make_learner("uds", gamma=gamma).fit(data, np.where(labels[data.state], rewards, np.nan)).table
    found = value_bounds(data, np.where(labels[data.state], rewards, np.nan), policy, gamma, lows, highs)
    earned = dense_value(data, rewards, policy, gamma)
    best = make_learner("uds", gamma=gamma, unseen="exclude").fit(data, rewards).table
    optimum = dense_value(data, rewards, best, gamma)
    slack = 1e-7 / (1 - gamma)
    assert found.least - slack <= earned <= found.most + slack
    assert optimum <= found.upper + slack
    assert optimum - earned <= found.regret + slack


@settings(max_examples=repetitions(60, 1000))
@given(seed=st.integers(0, 2**31))
def test_bounds_are_monotone_in_the_labels(seed):
    rng, data, _, policy, gamma = draw_case(seed)
    rewards = rng.uniform(LOW, HIGH, len(data))
    labels, before = np.zeros(data.n_states, bool), None
    for state in [None, *rng.permutation(data.n_states)]:
        if state is not None:
            labels[state] = True
        found = value_bounds(data, np.where(labels[data.state], rewards, np.nan), policy, gamma, LOW, HIGH)
        if before is not None:
            slack = 1e-9 / (1 - gamma)
            assert found.upper <= before.upper + slack
            assert found.least >= before.least - slack
            assert found.most <= before.most + slack
        before = found
    assert before.least == pytest.approx(before.most, abs=1e-9)
    exact = make_learner("uds", gamma=gamma, unseen="exclude").fit(data, rewards).table
    assert value_bounds(data, rewards, exact, gamma, LOW, HIGH).regret == 0


@pytest.mark.parametrize("world", ["Tree", "CliffWalk", "TwoRooms", "FrozenLake"])
def test_bounds_in_published_worlds(world):
    problem = selectenv.make_problem(world, dataset_size=3_000, unseen="exclude", cache=False)
    data, rewards = problem.dataset, problem.dataset.hidden_reward
    low, high = float(rewards.min()), float(rewards.max())
    full = value_bounds(data, rewards, problem.learn(data.labelable).table, 0.99, low, high)
    assert full.regret == 0
    assert full.least == pytest.approx(float(data.start @ problem.learn(data.labelable).values))
    none = value_bounds(data, np.full(len(data), np.nan), problem.learn([]).table, 0.99, low, high)
    assert none.least <= full.least + 1e-9
    assert full.upper <= none.upper + 1e-9


def test_large_models_are_solved_by_the_other_solver():
    """More states than the compiled elimination handles: components, sweeps and sparse factorisation."""
    rng = np.random.default_rng(0)
    n = 400
    states = rng.integers(0, n, 6_000)
    data = selectenv.from_arrays(states, rng.integers(0, 2, 6_000), rng.integers(0, n, 6_000), rng.random(6_000) < 0.02)
    rewards = np.where(rng.random(6_000) < 0.5, rng.uniform(-1, 1, 6_000), np.nan)
    policy = rng.dirichlet([1, 1], data.n_states)
    found = value_bounds(data, rewards, policy, 0.99, -1, 1)
    for end, value in ((-1, found.least), (1, found.most)):
        assert value == pytest.approx(
            dense_value(data, np.where(np.isnan(rewards), end, rewards), policy, 0.99), abs=1e-6
        )
    assert found.upper > found.most > found.least


def test_actions_that_the_data_never_took_are_left_out():
    data = selectenv.from_arrays(["a", "b", "a"], [0, 0, 1], ["b", "x", "x"], [False, True, True], n_actions=3)
    rewards = np.array([0.0, np.nan, 1.0])
    never, often = np.tile([0.0, 0.0, 1.0], (2, 1)), np.tile([0.25, 0.25, 0.5], (2, 1))
    for policy in (never, often):  # both stand for half of each of the actions taken in state "a"
        found = value_bounds(data, rewards, policy, 0.5, 0, 4)
        assert (found.least, found.most, found.upper) == pytest.approx((0.5, 1.5, 2.0))
    assert found.regret == pytest.approx(1.5)


def test_wrong_ranges_are_refused():
    data = random_data(3)
    rewards, policy = data.hidden_reward.copy(), np.full((data.n_states, data.n_actions), 1 / data.n_actions)
    with pytest.raises(OptionError, match="is not in it"):
        value_bounds(data, rewards, policy, 0.9, 0, 0.5)
    with pytest.raises(OptionError, match="must not exceed"):
        value_bounds(data, np.full(len(data), np.nan), policy, 0.9, 1, 0)
    with pytest.raises(OptionError, match="one per state"):
        value_bounds(data, rewards, policy, 0.9, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 1)
    with pytest.raises(PolicyError, match="probabilities"):
        value_bounds(data, rewards, policy[:1], 0.9, -2, 2)
    assert ValueBounds(1.0, 2.0, 1.5).regret == 0.5
    assert repr(ValueBounds(1.0, 2.0, 1.5)) == "ValueBounds(least=1.0, most=2.0, upper=1.5, regret=0.5)"
