"""Likely mistakes with vector environments raise named errors that say what to do instead."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import selectenv
from selectenv.errors import ActionError, OptionError, UnknownNameError

GRAPH = "RewardSelection-Graph-v0"


def make(**options):
    return gym.make_vec(GRAPH, num_envs=3, vectorization_mode="vector_entry_point", budget=2, **options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"max_episode_steps": 3}, OptionError, "max_episode_steps is not for native vectors"),
        ({"autorest_mode": AutoresetMode.DISABLED}, UnknownNameError, "Did you mean 'autoreset_mode'"),
    ],
)
def test_options_of_gymnasium_that_do_not_fit(options, error, text):
    for name in (GRAPH, "RewardSelection-Random-v0"):
        with pytest.raises(error, match=text):
            gym.make_vec(name, num_envs=2, vectorization_mode="vector_entry_point", **options)


@pytest.mark.parametrize("name", [GRAPH, "RewardSelection-Random-v0"])
def test_autoreset_modes_of_single_environments(name):
    with pytest.raises(OptionError, match="vector_kwargs"):
        gym.make_vec(name, num_envs=2, vectorization_mode="sync", autoreset_mode=AutoresetMode.SAME_STEP)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"reset_mask": np.array([True, False])}, OptionError, "one entry for each of 3 environments"),
        ({"reset_mask": np.zeros(3, bool)}, OptionError, "mark at least one environment"),
        ({"reset_maks": np.ones(3, bool)}, UnknownNameError, "Did you mean 'reset_mask'"),
    ],
)
def test_reset_masks(options, error, text):
    envs = make(autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    with pytest.raises(error, match=text):
        envs.reset(options=options)


@pytest.mark.parametrize(
    ("actions", "text"), [([1.0, 2.0, 3.0], "must be 3 ints"), ([1, 2, 99], "99, the action of environment 2")]
)
def test_actions(actions, text):
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(ActionError, match=text):
        envs.step(actions)


def test_seeds_may_be_an_array():
    first, second = make(), make()
    np.testing.assert_equal(first.reset(seed=np.array([4, 5, 6]))[0], second.reset(seed=[4, 5, 6])[0])


def test_members_have_the_spec_of_a_single_environment_and_no_drawing_without_a_render_mode():
    envs = make()
    envs.reset(seed=0)
    assert envs.call("render") == (None, None, None)
    single = gym.make(envs.get_attr("spec")[0])
    assert isinstance(single.unwrapped, selectenv.RewardSelectionEnv)
    assert single.reset(seed=0)[1]["budget"] == 2
