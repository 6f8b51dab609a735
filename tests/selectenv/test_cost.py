"""The cost of a strategy is the number of performances disclosed to it, in every way of playing."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import agents
import selectenv
from selectenv.evaluation.evaluator import Calls
from selectenv.wrappers import BatchLabels, OneShot, TensorBoardMonitor

SIZE = {"dataset_size": 2000, "cache": False}


def play_randomly(env, episodes, seed=0):
    """Play episodes with random actions; return how many rewards disclosed a performance."""
    paid = 0
    env.action_space.seed(seed)
    for episode in range(episodes):
        env.reset(seed=episode)
        terminated = False
        while not terminated:
            _, _, terminated, _, _ = env.step(env.action_space.sample())
            paid += terminated or env.unwrapped.marginal
    return paid


@pytest.mark.parametrize("phase", ["train", "test"])
def test_every_final_return_costs_one(phase):
    env = selectenv.make_env("Tree", budget=3, phase=phase, **SIZE)
    assert play_randomly(env, 20) == 20
    assert env.unwrapped.calls.cost == env.unwrapped.calls.disclosed == 20
    for _ in range(5):  # the same labels again, from the cache
        env.reset(seed=0)
        for state in (1, 2, 3):
            env.step(state)
    calls = env.unwrapped.calls
    assert calls.cost == 25
    assert calls.computed <= 21


def test_marginal_rewards_cost_one_per_step_wasted_or_not():
    env = selectenv.make_env("Tree", budget=6, reward_mode="marginal", **SIZE)
    env.reset(seed=0)
    for state in (1, 1, 1, 2, 3, 4):
        env.step(state)
    assert env.unwrapped.calls == Calls(asked=0, disclosed=6, computed=4)


def test_one_shot_pulls_cost_one_each():
    env = OneShot(selectenv.make_env("Tree", budget=3, **SIZE))
    assert play_randomly(env, 500) == 500
    assert env.unwrapped.calls.cost == 500
    env.reset(seed=0)
    env.performance_many(np.random.default_rng(0).normal(size=(7, 31)))
    assert env.unwrapped.calls.cost == 507


@pytest.mark.parametrize(("mode", "per_episode"), [("final", 1), ("marginal", 3)])
def test_batches_of_labels_cost_one_per_reward(mode, per_episode):
    env = BatchLabels(selectenv.make_env("Tree", budget=8, reward_mode=mode, **SIZE), 3)
    assert play_randomly(env, 10) == 10 * per_episode
    assert env.unwrapped.calls.cost == 10 * per_episode


def test_synchronous_vector_environments_cost_the_sum_of_their_parts():
    envs = gym.make_vec("RewardSelection-Tree-v0", num_envs=3, vectorization_mode="sync", budget=3, **SIZE)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    paid = 0
    for _ in range(40):
        paid += int(envs.step(envs.action_space.sample())[2].sum())
    calls = envs.get_attr("calls")
    assert [one.cost for one in calls] == [paid // 3] * 3
    assert sum(calls, Calls()).cost == paid > 0
    envs.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_members_of_a_vector_may_reset_while_others_step(mode):
    envs = gym.make_vec(
        "RewardSelection-Graph-v0", 3, vectorization_mode=mode, budget=(0.2, 0.9), initial_ratio=0.1, **SIZE
    )
    envs.reset(seed=0)
    envs.action_space.seed(0)
    paid = sum(int(envs.step(envs.action_space.sample())[2].sum()) for _ in range(40))
    assert sum(envs.get_attr("calls"), Calls()).cost == paid > 0
    envs.close()


def test_plain_ppo_costs_the_number_of_its_episodes():
    env = gym.make("RewardSelection-Graph-v0", budget=3, **SIZE)
    venv = DummyVecEnv([lambda: gym.wrappers.FlattenObservation(env)])
    model = PPO("MlpPolicy", venv, n_steps=64, batch_size=64, n_epochs=1, device="cpu", seed=0)
    model.learn(256)
    assert env.unwrapped.calls.cost == env.unwrapped.calls.disclosed == 256 // 3


@pytest.mark.parametrize("normalised", [True, False])
def test_sb3_agents_count_the_constants_once(normalised):
    env = selectenv.make_env("Graph", budget=4, **SIZE)
    agent = agents.make(
        "maskable-ppo", steps=256, n_envs=4, normalised=normalised, sb3={"n_steps": 64, "batch_size": 64, "n_epochs": 1}
    )
    agent.train(env, seed=0)
    assert agent.training_calls.disclosed == 256 // 4
    assert agent.training_calls.asked == (2 if normalised else 0)
    assert 0 < agent.training_calls.computed <= agent.training_calls.cost
    agent.train(env, seed=1)
    assert agent.training_calls.asked == (2 if normalised else 0)  # the same problem has the same constants
    episode = agents.play(env, agent)
    assert (episode.cost, episode.asked, episode.disclosed) == (
        agent.training_calls.cost,
        agent.training_calls.asked,
        agent.training_calls.disclosed,
    )


def test_the_score_of_a_judged_episode_is_no_cost():
    env = selectenv.make_env("Tree", budget=3, **SIZE)
    episode = agents.play(env, agents.make("guided"))
    assert (episode.cost, env.unwrapped.calls.cost, env.unwrapped.calls.uncounted) == (0, 0, 1)
    marginal = selectenv.make_env("Tree", budget=3, reward_mode="marginal", **SIZE)
    assert agents.play(marginal, agents.make("guided")).cost == 2
    play_randomly(env, 1)  # only the episode that `play` began is judged
    assert env.unwrapped.calls.cost == 1


def test_a_strategy_that_asks_while_it_plays_pays_for_it():
    env = selectenv.make_env("Tree", budget=3, **SIZE)
    agent = agents.make("adaptive-mixture")
    agent.train(env)
    before = env.unwrapped.calls.cost
    episode = agents.play(env, agent)
    assert episode.cost == env.unwrapped.calls.cost - before + agent.training_calls.cost > 0


def test_monitors_see_the_same_cost_and_add_nothing(tmp_path):
    env = TensorBoardMonitor(selectenv.make_env("Tree", budget=3, **SIZE), tmp_path, detail_every=1)
    assert play_randomly(env, 4) == env.unwrapped.calls.cost == 4
    assert env.unwrapped.calls.uncounted > 0
    env.close()
