"""FlatObservation: one array per observation, with the mask inside, for single and vector environments."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.env_checker import check_env

import selectenv
from agents.sb3.env_copies import copy_of
from selectenv.errors import OptionTypeError
from selectenv.options import FEATURES
from selectenv.wrappers import BatchLabels, FlatObservation
from tests.selectenv.vector_twins import assert_same, make_native, make_sync

SMALL = {"dataset_size": 1_000}
TREE = selectenv.env_id("Tree")


def unpacked(flat, layout):
    return {name: flat[..., place] for name, place in layout.items()}


@pytest.mark.parametrize("names", [None, ["value", "budget"], ["budget"]])
def test_a_single_environment(names):
    plain, flat = (gym.make(TREE, budget=3, features=names, **SMALL) for _ in range(2))
    flat = FlatObservation(flat)
    check_env(flat)
    assert list(flat.layout) == [*(name for name in FEATURES if names is None or name in names), "action_mask"]
    for action in (None, 4, 4, 9):
        obs, *_, info = plain.reset(seed=0) if action is None else plain.step(action)
        array, *_ = flat.reset(seed=0) if action is None else flat.step(action)
        assert array in flat.observation_space
        parts = unpacked(array, flat.layout)
        np.testing.assert_array_equal(parts.pop("action_mask"), info["action_mask"])
        assert_same(obs, {name: parts[name].copy() for name in obs})
        np.testing.assert_array_equal(flat.action_masks(), info["action_mask"] > 0)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("make", [make_native, make_sync])
def test_vectors_have_one_row_per_environment(mode, make):
    """Flat vectors are vectors of flat environments."""
    flat = FlatObservation(make(TREE, 3, mode, budget=2, **SMALL))
    rows = gym.vector.SyncVectorEnv(
        [lambda: FlatObservation(gym.make(TREE, budget=2, **SMALL))] * 3, autoreset_mode=mode
    )
    assert flat.observation_space == rows.observation_space
    assert flat.single_observation_space == rows.single_observation_space
    assert_same(flat.reset(seed=1)[0], rows.reset(seed=1)[0])
    for action in (3, 8, 2):
        found, wanted = flat.step(np.full(3, action)), rows.step(np.full(3, action))
        assert_same(found[:4], wanted[:4])
        assert_same(found[4].get("final_obs"), wanted[4].get("final_obs"))
        masks = found[0][:, flat.layout["action_mask"]]
        np.testing.assert_array_equal(masks, flat.action_masks())
        if mode == AutoresetMode.DISABLED and found[2].any():
            some = np.array([True, False, True])
            assert_same(*(envs.reset(options={"reset_mask": some.copy()})[0] for envs in (flat, rows)))
            break


def test_copies_keep_it():
    copy = copy_of(FlatObservation(selectenv.make_env("Graph", budget=2, **SMALL)))
    assert isinstance(copy, FlatObservation)


def test_other_environments_are_refused():
    with pytest.raises(OptionTypeError, match="environment of reward selection"):
        FlatObservation(gym.make("CartPole-v1"))
    with pytest.raises(OptionTypeError, match="only once"):
        FlatObservation(FlatObservation(selectenv.make_env("Graph", **SMALL)))
    with pytest.raises(OptionTypeError, match="observations of reward selection"):
        FlatObservation(gym.make_vec("CartPole-v1", num_envs=1, vectorization_mode="sync"))
    with pytest.raises(OptionTypeError, match="one state per step"):
        FlatObservation(gym.vector.SyncVectorEnv([lambda: BatchLabels(selectenv.make_env("Graph", **SMALL), 2)]))
