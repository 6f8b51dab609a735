"""What a label buys is shown: features, info, and nothing that was not bought."""

import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from agents.registry import AGENTS
from selectenv.errors import BudgetError, BudgetWarning, LabelError, OptionError, PhaseError, UnknownNameError
from selectenv.problem import SelectionProblem
from tests.stress import repetitions

SIZE = {"dataset_size": 2000, "cache": False}


def test_features_show_the_revealed_rewards():
    env = selectenv.make_env("Tree", budget=4, **SIZE)
    data = env.unwrapped.problem.dataset
    obs, info = env.reset(seed=0)
    assert not obs["reward"].any()
    assert obs["reward_scale"] == [0]
    assert info["initial_revealed"] == {}
    wanted, largest = np.zeros(data.n_states), 0.0
    for state in (20, 3, 15, 16):
        rewards = data.hidden_reward[data.state == state]
        obs, _, _, _, info = env.step(state)
        wanted[state], largest = rewards.mean(), max(largest, np.abs(rewards).max())
        np.testing.assert_allclose(obs["reward"], wanted / (largest or 1), rtol=1e-6)
        np.testing.assert_allclose(obs["reward_scale"], [largest / (1 + largest)], rtol=1e-6)
        taken = data.action[data.state == state]
        assert info["revealed"] == pytest.approx({int(a): rewards[taken == a].mean() for a in np.unique(taken)})
    assert largest > 0


def test_wasted_labels_reveal_nothing_and_batches_reveal_label_by_label():
    env = selectenv.make_env("Graph", budget=6, initial_ratio=0.14, **SIZE)
    _, info = env.reset(seed=0)
    data, initial = env.unwrapped.problem.dataset, info["initial"]
    assert list(info["initial_revealed"]) == initial.tolist()
    assert all(sorted(means) == [0, 1] for means in info["initial_revealed"].values())
    assert env.step(int(initial[0]))[4]["revealed"] == {}
    fresh = np.flatnonzero(env.unwrapped.action_masks())[:1]
    revealed = env.step(np.array([initial[1], fresh[0], fresh[0]]))[4]["revealed"]
    actions, rewards = (column[data.state == fresh[0]] for column in (data.action, data.hidden_reward))
    means = {action: rewards[actions == action].mean() for action in range(data.n_actions)}
    assert list(revealed) == fresh.tolist()
    assert revealed[fresh[0]] == pytest.approx(means)


def test_data_without_rewards_reveal_nothing():
    data = selectenv.from_arrays([0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [False, True, False, True])
    env = selectenv.make_env(dataset=data, budget=1)
    env.reset(seed=0)
    obs, _, _, _, info = env.step(0)
    assert info["revealed"] == {}
    assert not obs["reward"].any()
    assert not obs["reward_scale"].any()


def test_a_budget_is_capped_at_what_can_be_labelled():
    options = {"dataset_size": 30, "cache": False}
    with pytest.warns(BudgetWarning, match="reduced to"):
        env = selectenv.make_env("CliffWalk", budget=1.0, **options)
    open_states = int(env.unwrapped.problem.dataset.labelable.sum())
    assert env.unwrapped.budget == open_states < 37
    assert len(agents.play(env, agents.make("uniform")).labels) == open_states
    agent = agents.make("sequential-greedy")
    agent.train(env)
    assert len(agents.play(env, agent).labels) == open_states
    _, info = env.reset(seed=0)
    for state in np.flatnonzero(info["action_mask"]):
        _, _, terminated, _, info = env.step(state)
    assert terminated
    assert not info["action_mask"].any()
    with pytest.warns(BudgetWarning):
        assert env.reset(options={"budget": 20})[1]["budget"] == open_states


def test_options_of_reset_hold_for_one_episode():
    env = selectenv.make_env("Tree", budget=5, **SIZE)
    _, info = env.reset(seed=0, options={"budget": 3, "initial": [7, 2]})
    assert (info["budget"], info["initial"].tolist()) == (3, [7, 2])
    assert env.unwrapped.labels.tolist() == [7, 2]
    assert env.step(9)[2]
    assert env.reset(options={"budget": 0.5})[1]["budget"] == 15
    _, info = env.reset(seed=0, options={})
    assert (info["budget"], len(info["initial"])) == (5, 0)
    for options, error in (
        ({"budgets": 3}, UnknownNameError),
        ({"budget": 0}, BudgetError),
        ({"budget": "three"}, BudgetError),
        ({"initial": [1, 1]}, LabelError),
        ({"initial": [31]}, LabelError),
        ({"initial": [0.5]}, LabelError),
        ({"initial": [1, 2, 3, 4, 5]}, BudgetError),
    ):
        before = env.reset(seed=1)
        with pytest.raises(error):
            env.reset(options=options)
        assert env.unwrapped.budget == before[1]["budget"]
        assert env.step(3)[0]["budget"] == pytest.approx(0.8)  # the episode goes on


def test_the_oracle_is_named_and_refused_in_the_test_phase():
    env = selectenv.make_env("Tree", budget=2, impute="dataset-min", **SIZE)
    assert agents.play(env, agents.make("guided")).taxonomy.oracle == "the smallest reward of the dataset"
    assert agents.play(env, agents.make("uniform")).taxonomy.oracle == ""
    assert agents.play(selectenv.make_env("Tree", budget=2, **SIZE), agents.make("guided")).taxonomy.oracle == ""
    with pytest.raises(PhaseError, match="smallest reward"):
        selectenv.make_env("Tree", budget=2, impute="dataset-min", phase="test", **SIZE)
    data = env.unwrapped.problem.dataset.without_rewards
    with pytest.raises(OptionError, match="no rewards"):
        selectenv.make_problem(dataset=data, impute="dataset-min")


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_batches_with_revealed_minima_equal_single_fits(solver):
    problem = selectenv.make_problem("TwoRoomsTrap", impute="min", solver=solver, **SIZE)
    masks = np.random.default_rng(0).random((12, problem.n_states)) < 0.3
    masks[0] = False
    many = problem.performance_many(masks)
    np.testing.assert_array_equal(many, [problem.performance(mask) for mask in masks])
    rewards = problem.dataset.reveal(masks[3] & problem.dataset.labelable)
    told = problem.learner.fit(problem.dataset.without_rewards, rewards).table  # as a person would tell them
    np.testing.assert_array_equal(told, problem.learn(masks[3]).table)


FREE = [name for name in AGENTS if agents.make(name).taxonomy.evaluator == "never"]


def test_there_are_strategies_that_never_ask():
    assert {"guided", "guided-on-policy", "terminal-guided", "learned", "uniform"} <= set(FREE)


def record(problem, name, seed, budget):
    """Play an episode; return labels and observations."""
    env = selectenv.RewardSelectionEnv(problem, budget, initial_ratio=0.1)
    agent, seen = agents.make(name), []

    class Watch(gym.Wrapper):
        def reset(self, **options):
            result = self.env.reset(**options)
            seen.append(result)
            return result

        def step(self, action):
            result = self.env.step(action)
            seen.append((result[0], {key: value for key, value in result[4].items() if key != "performance"}))
            return result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        labels = agents.play(Watch(env), agent, seed=seed).labels
    return labels, seen


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize(("learner", "impute"), [("uds", 0), ("uds", "min"), ("uds", -2.5), ("adapted", 0)])
@pytest.mark.parametrize("solver", ["exact", "sampled"])
@settings(max_examples=repetitions(2, 40), deadline=None)
@given(data=st.data())
def test_unbought_rewards_change_nothing(name, learner, solver, impute, data):
    world = data.draw(st.sampled_from(["Tree", "TwoRoomsTrap", "FrozenLake", "CliffWalk"]))
    unseen = data.draw(st.sampled_from(["zero", "exclude"]))
    seed, budget = data.draw(st.integers(0, 50)), data.draw(st.integers(5, 8))
    problem = selectenv.make_problem(
        world, learner=learner, solver=solver, impute=impute, unseen=unseen, dataset_size=400, cache=False
    )
    labels, before = record(problem, name, seed, budget)
    dataset = problem.dataset
    bought = np.isin(dataset.state, labels)
    scale = data.draw(st.sampled_from([1.0, 1e3, 1e30]))
    garbage = np.random.default_rng(seed).normal(size=len(dataset)) * scale
    spoilt = replace(dataset, hidden_reward=np.where(bought, dataset.hidden_reward, garbage))
    other = SelectionProblem(spoilt, problem.learner, problem.evaluator, problem.layout)
    chosen, after = record(other, name, seed, budget)
    assert chosen.tolist() == labels.tolist()
    for (obs, info), (obs2, info2) in zip(before, after, strict=True):
        for key in obs:
            np.testing.assert_array_equal(obs[key], obs2[key], err_msg=key)
        np.testing.assert_equal(info2, info)
