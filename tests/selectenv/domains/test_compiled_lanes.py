"""Compiled copies of classic control environments, step by step against Gymnasium's own."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import AcrobotEnv
from hypothesis import given
from hypothesis import strategies as st

from selectenv.domains import compiled_lanes
from selectenv.domains.compiled_lanes import CompiledLanes, is_compiled, make_lanes
from selectenv.domains.gym_env import GymWorld, Lanes, VectorLanes

WORLDS = {name: GymWorld(name) for name in ("Acrobot-v1", "MountainCar-v0")}
LANES = {name: CompiledLanes(world, 1) for name, world in WORLDS.items()}
SINGLE = {name: world.make() for name, world in WORLDS.items()}
BOUNDS = {"Acrobot-v1": [np.pi, np.pi, 4 * np.pi, 9 * np.pi], "MountainCar-v0": [1.2, 0.07]}


def state_of(env):
    return np.array(env.unwrapped.state, np.float64)


def assert_same_step(name, state, action):
    lanes, env = LANES[name], SINGLE[name]
    lanes.reset([0])
    env.reset(seed=0)
    lanes.states[0] = state
    env.unwrapped.state = np.array(state)
    result = lanes.step(np.array([action]), np.zeros(1, np.int64))
    observation, reward, terminated, truncated, _ = env.step(action)
    assert (result.reward[0], result.terminated[0], result.truncated[0]) == (reward, terminated, truncated)
    np.testing.assert_allclose(lanes.states[0], state_of(env), rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.entered[0], observation, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", WORLDS)
@given(data=st.data(), action=st.integers(0, 2))
def test_every_step_is_that_of_gymnasium(name, data, action):
    state = [data.draw(st.floats(-bound, bound)) for bound in BOUNDS[name]]
    assert_same_step(name, state, action)


@pytest.mark.parametrize(
    ("name", "state", "action"),
    [
        ("MountainCar-v0", [-1.2, -0.07], 0),  # at the left wall
        ("MountainCar-v0", [-1.15, -0.07], 0),
        ("MountainCar-v0", [0.46, 0.05], 2),  # reaches the goal
        ("MountainCar-v0", [0.6, -0.05], 0),
        ("Acrobot-v1", [3.0, 0.1, 1.0, 0.0], 2),  # above the line
        ("Acrobot-v1", [3.1, -3.1, 12.5, -28.0], 0),  # angles are wrapped, velocities are bounded
    ],
)
def test_walls_goals_and_bounds(name, state, action):
    assert_same_step(name, state, action)


@pytest.mark.parametrize("name", WORLDS)
def test_whole_episodes(name):
    """Starts, ends by the time limit, and lanes that wait while others are stepped."""
    world, seeds = WORLDS[name], [3, 5, 8, 13]
    compiled, single = make_lanes(world, 4), Lanes(world, 4)
    rng = np.random.default_rng(0)
    for _ in range(2):
        compiled.reset(seeds)
        single.reset(seeds)
        np.testing.assert_array_equal(compiled.observations, single.observations)
        playing, steps = np.arange(4), 0
        while len(playing):
            actions = rng.integers(3, size=len(playing))
            ours, theirs = compiled.step(actions, playing), single.step(actions, playing)
            if steps < 20:  # Acrobot is chaotic: differences of rounding grow
                np.testing.assert_allclose(ours.entered, theirs.entered, atol=1e-6)
            over = ours.terminated | ours.truncated
            if name == "MountainCar-v0":
                np.testing.assert_array_equal(over, theirs.terminated | theirs.truncated)
            playing, steps = playing[~over], steps + 1
        assert steps <= world.spec.max_episode_steps
        assert not (ours.terminated & ours.truncated).any()
        seeds = [21, 34, 55, 89]
    assert steps == world.spec.max_episode_steps


def test_the_starts_of_seeds_are_kept_but_not_those_without_seeds():
    lanes = make_lanes(WORLDS["MountainCar-v0"], 2)
    seeds = [3, 5]
    lanes.reset(seeds)
    first = lanes.observations.copy()
    seeds[0] = 4  # the same list with other seeds
    lanes.reset(seeds)
    assert (lanes.observations[0] != first[0]).any()
    np.testing.assert_array_equal(lanes.observations[1], first[1])
    lanes.reset([None, None])
    drawn = lanes.observations.copy()
    lanes.reset([None, None])
    assert (lanes.observations[:, 0] != drawn[:, 0]).all()


def test_only_gymnasiums_own_environments_are_compiled(monkeypatch):
    assert all(map(is_compiled, WORLDS.values()))
    assert not is_compiled(GymWorld("MountainCar-v0", goal_velocity=0.01))
    assert not is_compiled(GymWorld(gym.wrappers.TransformReward(gym.make("Acrobot-v1"), lambda r: r)))
    assert isinstance(make_lanes(GymWorld("CartPole-v1"), 2), VectorLanes)
    monkeypatch.setattr(AcrobotEnv, "dt", 0.1)  # another release of Gymnasium might change the dynamics
    compiled_lanes._steps_agree.cache_clear()
    assert not is_compiled(WORLDS["Acrobot-v1"])
    assert isinstance(make_lanes(WORLDS["Acrobot-v1"], 2), Lanes)
    compiled_lanes._steps_agree.cache_clear()
