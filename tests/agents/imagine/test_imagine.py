"""The agent imagine: what it may know, what it must not depend on, and what it finds."""

import numpy as np
import pytest

import agents
import selectenv
from agents.errors import NotTrainedError
from agents.imagine import imagine_agent, imagined_model
from agents.imagine.behaviour_likelihood import Behaviour
from agents.imagine.imagined_model import ImaginedModel, elimination_cost, horizon_of
from agents.imagine.particles import Particles
from agents.imagine.reward_prior import FAMILIES, Features, draw_particles
from agents.imagine.set_planner import SetPlanner
from selectenv.env import RewardSelectionEnv
from selectenv.errors import LargeWorldWarning, NoRewardsWarning, OptionError
from selectenv.wrappers import BatchLabels

SMALL = {"particles": 24}


def problem(world="Tree", **options):
    return selectenv.make_problem(world, **{"dataset_size": 5_000, "cache": False, **options})


def play(task, budget, seed=0, agent=None, **options):
    agent = agents.make("imagine", **SMALL) if agent is None else agent
    return agents.play(RewardSelectionEnv(task, budget, **options), agent, seed).labels.tolist()


def test_the_number_of_threads_does_not_matter(monkeypatch):
    task = problem("CliffWalk")
    monkeypatch.setenv("SELECTENV_THREADS", "1")
    labels = play(task, 4)
    monkeypatch.setenv("SELECTENV_THREADS", "3")
    assert play(task, 4) == labels


def test_scores_and_batches():
    env = RewardSelectionEnv(problem(), 6)
    obs, info = env.reset(seed=0)
    agent = agents.make("imagine", **SMALL)
    with pytest.raises(NotTrainedError, match="begin"):
        agent.scores(obs, info)
    agent.begin(env.view())
    scores = agent.scores(obs, info)
    assert np.array_equal(scores, agent.scores(obs, info))
    assert np.isnan(scores).tolist() == (~env.action_masks()).tolist()
    assert (scores > 1).sum() == 6  # the plan
    several = agent.select_many(obs, info, 6, np.random.default_rng(0))
    assert set(several.tolist()) == set(np.flatnonzero(scores > 1).tolist())
    batches = agents.play(BatchLabels(RewardSelectionEnv(problem(), 6), 4), agents.make("imagine", **SMALL))
    assert batches.labels.tolist()[:4] == several.tolist()[:4]
    assert len(set(play(problem(), 6, labels_per_refit=3))) == 6


def test_initial_labels_are_learned_from():
    task = problem()
    env = RewardSelectionEnv(task, 5)
    obs, info = env.reset(seed=0, options={"initial": [15, 19]})
    agent = agents.make("imagine", **SMALL)
    agent.begin(env.view())
    agent.select(obs, info, np.random.default_rng(0))
    assert agent._seen == [(15, True), (19, True)]


def test_an_agent_that_begins_late_catches_up():
    """Labels are a function of the labels so far, so that a session can be closed and opened again."""
    env = RewardSelectionEnv(problem(), 5)
    obs, info = env.reset(seed=0)
    agent, late = (agents.make("imagine", **SMALL) for _ in range(2))
    agent.begin(env.view())
    for _ in range(3):
        obs, _, _, _, news = env.step(agent.select(obs, info, np.random.default_rng(0)))
        info = {**info, **news}
    late.begin(env.view())
    assert np.array_equal(late.scores(obs, info), agent.scores(obs, info), equal_nan=True)


def test_data_without_rewards_are_labelled():
    env = selectenv.make_env(dataset=problem().dataset.without_rewards, budget=3)
    with pytest.warns(NoRewardsWarning):
        assert len(agents.play(env, agents.make("imagine", **SMALL)).labels) == 3


def test_another_episode_begins_with_the_particles_before_any_label():
    task, other = problem(), problem(dataset_seed=1)
    agent = agents.make("imagine", **SMALL)
    first = play(task, 4, agent=agent)
    kept = agent._first
    assert play(task, 4, agent=agent) == first
    assert agent._first is kept
    assert play(other, 4, agent=agent) == play(other, 4)
    assert agent._first is not kept


def test_worlds_count_as_large_beyond_a_number_of_states(monkeypatch):
    monkeypatch.setattr(imagined_model, "LARGE", 20)
    labels = play(problem(), 4)
    assert len(set(labels)) == 4
    assert play(problem(), 4) == labels


def test_the_likeliest_goal_comes_before_the_plan_until_rewards_differ():
    task = problem("FrozenLake", map_name="8x8", dataset_size=20_000)
    env = RewardSelectionEnv(task, 6)
    obs, info = env.reset(seed=0)
    agent = agents.make("imagine", **SMALL)
    agent.begin(env.view())
    assert not agent._particles.differs
    scores = agent.scores(obs, info)
    top = int(np.nanargmax(scores))
    assert scores[top] > imagine_agent.SURE
    assert top == int(agent._chance_of_best().argmax())
    goal = int(np.flatnonzero(np.bincount(task.dataset.state, task.dataset.all_rewards) > 0)[0])
    obs, _, _, _, news = env.step(goal)
    assert np.nanmax(agent.scores(obs, {**info, **news})) < imagine_agent.SURE
    assert agent._particles.differs


def test_an_oracle_is_refused():
    with pytest.raises(OptionError, match=r"cannot imagine a learner that knows .*impute='min'"):
        play(problem(impute="dataset-min"), 3)


def test_one_group_per_state_changes_nothing_and_larger_groups_are_labelled_as_one():
    plain = problem("CliffWalk", learner="adapted")
    options = {"dataset": plain.dataset, "learner": "adapted"}
    alone = selectenv.make_problem("CliffWalk", groups=plain.states, **options)
    assert alone.dataset.groups is not None
    assert play(alone, 3) == play(plain, 3)
    for groups in (np.arange(plain.n_states) // 4, "episode"):
        grouped = selectenv.make_problem("CliffWalk", groups=groups, **options)
        labels = play(grouped, 3)
        assert len(set(labels)) == 3
        assert max(labels) < grouped.n_states


def test_large_worlds_are_left_to_learned(monkeypatch):
    monkeypatch.setattr(imagine_agent, "MOST_STATES", 30)
    task = problem()
    with pytest.warns(LargeWorldWarning, match="up to 30 states, and there are 31: 'learned'"):
        labels = play(task, 3)
    assert labels == play(task, 3, agent=agents.make("learned"))


@pytest.mark.parametrize("options", [{"particles": 1}, {"observations": -1}, {"bonus": -1}, {"seed": -1}])
def test_invalid_options(options):
    with pytest.raises(OptionError):
        agents.make("imagine", **options)


def test_the_planner_finds_the_best_set_if_the_rewards_are_known():
    task = selectenv.make_problem("Tree", cache=False)
    env = RewardSelectionEnv(task, 3)
    env.reset(seed=0)
    world = ImaginedModel(env.view())
    truth = task.dataset.empirical_model(task.dataset.all_rewards, exclude_unseen=True).reward[None]
    nothing = np.zeros(task.n_states, bool)
    rest = ~nothing, np.arange(task.n_states), np.ones(task.n_states)
    planner = SetPlanner(lambda masks: world.worth(truth, masks), np.ones(1), nothing, *rest)
    plans = [planner.forward(3), planner.backward(3)]
    plan = planner.improve(plans[int(planner.utilities(plans).argmax())], 300, np.random.default_rng(0))
    assert sorted(task.states[plan].tolist()) == [15, 19, 23]
    assert planner.utilities([np.empty(0, np.int64)])[0] == 0
    losses = planner.losses(plan)
    assert losses.shape == (3,)
    assert (losses > 0).all()


def test_behaviour_tells_where_the_goal_is():
    """In a lake that the data cross with half optimal actions, most particles have a goal where the goal is."""
    task = problem("FrozenLake", map_name="8x8", dataset_size=20_000)
    env = RewardSelectionEnv(task, 3)
    env.reset(seed=0)
    world = ImaginedModel(env.view())
    behaviour = Behaviour(world, 4.0, 4.0)
    truth = task.dataset.empirical_model(task.dataset.all_rewards, exclude_unseen=True).reward[None]
    particles = Particles(world, behaviour, FAMILIES, 48, 10, np.random.default_rng(0))
    assert behaviour.log_likelihood(truth)[0] > behaviour.log_likelihood(np.roll(truth, 40))[0] + 10
    assert behaviour.log_likelihood(np.zeros_like(truth))[0] < 0
    at = np.flatnonzero(truth[0] > 0)
    assert np.average(particles.rewards[:, at].max(axis=1) > 0.1, weights=particles.weights) > 0.8


@pytest.mark.parametrize("options", [{"observations": 0}, {"planning": False}, {"families": "sparse"}])
def test_ablations_play(options):
    labels = play(problem(), 4, agent=agents.make("imagine", **SMALL, **options))
    assert len(set(labels)) == 4


def test_labels_condition_the_particles():
    task = problem("Tree")
    env = RewardSelectionEnv(task, 3)
    env.reset(seed=0)
    world = ImaginedModel(env.view())
    particles = Particles(world, Behaviour(world, 4.0, 4.0), FAMILIES, 24, 2, np.random.default_rng(0))
    truth = task.dataset.empirical_model(task.dataset.all_rewards, exclude_unseen=True).reward
    for state in (3, 4, 15):
        mine = world.state == state
        particles.learn(state, truth[mine], 3, np.random.default_rng(state))
        assert (particles.rewards[:, mine] == truth[mine]).all()
    assert len(particles.fit) == 24
    assert particles.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(particles.predicted, particles.theta @ particles.features.matrix, atol=1e-9)
    np.testing.assert_allclose(particles.fit, particles.behaviour.log_likelihood(particles.rewards), atol=1e-6)


def test_the_prior_contains_every_family():
    env = RewardSelectionEnv(problem("CliffWalk"), 3)
    env.reset(seed=0)
    world = ImaginedModel(env.view())
    features = Features(world)
    theta, family, _ = draw_particles(features, FAMILIES, 66, np.random.default_rng(0))
    assert np.bincount(family, minlength=len(FAMILIES)).min() > 0
    assert ((theta != 0).sum(axis=1) > 0).all()
    rewards = theta @ features.matrix
    step, end = features.block["step"], features.block["end"]
    np.testing.assert_allclose(
        rewards[0],
        theta[0, step]
        + theta[0, features.block["action"]][world.action]
        + theta[0, features.block["enter"]] @ world.entered
        + world.termination
        * theta[0, end][np.searchsorted(features.ending, world.state).clip(0, len(features.ending) - 1)]
        + theta[0, features.block["pair"]],
    )


def test_horizons_and_costs():
    tree, lake = problem("Tree").dataset, problem("FrozenLake").dataset
    assert horizon_of(tree) == 10  # no episode was truncated, so twice the longest
    assert horizon_of(lake) <= 200
    assert elimination_cost(tree.empirical_model()) == 0
    assert 0 < elimination_cost(lake.empirical_model()) < np.inf
