"""The dynamics of Sparse, its data, and the environment by name."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import selectenv
from selectenv.datasets.tabular_collection import PUBLISHED_SIZE
from selectenv.domains.tabular import sparse
from selectenv.errors import WorldError


@settings(max_examples=20)
@given(st.integers(2, 400), st.integers(0, 1000))
def test_dynamics(n, seed):
    world = sparse(n, seed)
    assert (world.n_states, world.n_actions, world.horizon) == (n, 4, 100)
    np.testing.assert_allclose(world.start, 1 / n)
    outcomes = np.bincount(world.state * 4 + world.action, minlength=4 * n).reshape(n, 4)
    terminates = np.bincount(world.state[world.next_state < 0], minlength=n) > 0
    assert terminates.sum() == max(1, n // 50)
    assert (outcomes[terminates] == 1).all()  # all actions of a terminal state terminate
    assert (outcomes[~terminates] == 3).all()
    pair = world.state * 4 + world.action
    first = np.searchsorted(pair, pair)
    np.testing.assert_array_equal(world.reward, world.reward[first])  # the reward belongs to the action
    assert sparse(n, seed).fingerprint == world.fingerprint
    assert sparse(n, seed + 1).fingerprint != world.fingerprint


def test_rewards_and_successors_are_drawn_as_described():
    world = sparse(20_000)
    rewards = world.reward[np.unique(world.state * 4 + world.action, return_index=True)[1]]
    assert abs(rewards.mean()) < 0.02
    assert abs(rewards.std() - 1) < 0.02
    entered = world.next_state[world.next_state >= 0]
    assert abs(entered.mean() / world.n_states - 0.5) < 0.01
    chances = world.probability[world.next_state >= 0]
    assert abs(chances.mean() - 1 / 3) < 1e-9
    assert abs(chances.var() - 1 / 18) < 0.001  # of one coordinate of the uniform distribution on the simplex


def test_data_grow_with_the_world():
    assert len(selectenv.make_problem("Sparse", n_states=200, cache=False).dataset) == PUBLISHED_SIZE
    assert len(selectenv.make_problem("Sparse", n_states=6000, cache=False).dataset) == 120_000
    assert len(selectenv.make_problem("Sparse", n_states=6000, dataset_size=500, cache=False).dataset) == 500


def test_environment_by_name():
    env = gym.make("RewardSelection-Sparse-v0", n_states=150, dataset_size=3000, budget=4, world_seed=3)
    check_env(env.unwrapped, skip_render_check=True)
    obs, _ = env.reset(seed=0)
    assert len(obs["value"]) == 150
    assert gym.make("RewardSelection-Sparse-v0").unwrapped.problem.n_states == 1000


@pytest.mark.parametrize("wrong", [0, 1, 1_000_001, 2.5, "10", None])
def test_other_numbers_of_states_are_rejected(wrong):
    with pytest.raises(WorldError, match="n_states"):
        selectenv.make_problem("Sparse", n_states=wrong)


def test_all_labels_are_better_than_none():
    problem = selectenv.make_problem("Sparse", n_states=300)
    nothing, half, everything = (problem.performance(range(k)) for k in (0, 150, 300))
    assert nothing < half < everything
