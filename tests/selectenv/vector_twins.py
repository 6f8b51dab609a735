"""Comparison of vector environments with Gymnasium's own, and a checker of what a vector environment promises."""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space


def make_native(env_id, count, mode=AutoresetMode.NEXT_STEP, **options):
    return gym.make_vec(env_id, count, "vector_entry_point", autoreset_mode=mode, **options)


def make_sync(env_id, count, mode=AutoresetMode.NEXT_STEP, **options):
    return gym.make_vec(env_id, count, "sync", vector_kwargs={"autoreset_mode": mode}, **options)


def assert_same(one, other, place=""):
    """Raise unless two nested values are equal, in types, shapes and bits."""
    assert type(one) is type(other), (place, type(one), type(other))
    if isinstance(one, dict):
        assert set(one) == set(other), (place, set(map(str, one)) ^ set(map(str, other)))
        for key, value in one.items():
            assert_same(value, other[key], f"{place}/{key}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), place
        for i, (first, second) in enumerate(zip(one, other, strict=True)):
            assert_same(first, second, f"{place}[{i}]")
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), (place, one, other)
        if one.dtype == object:
            assert_same(tuple(one), tuple(other), place)
        else:
            assert one.tobytes() == other.tobytes(), (place, one, other)
    else:
        assert one == other, place


def assert_same_play(one, other, steps, seed=0, options=None):
    """Play two vector environments side by side, and raise unless everything they show is the same."""
    assert one.observation_space == other.observation_space
    assert one.action_space == other.action_space
    assert one.metadata == other.metadata
    np.testing.assert_array_equal(np.stack(one.call("action_masks")), other.unwrapped.action_masks())
    mode, rng = other.metadata["autoreset_mode"], np.random.default_rng(seed)
    n = other.single_action_space.n
    begun = (envs.reset(seed=seed, options=None if options is None else dict(options)) for envs in (one, other))
    assert_same(*begun, "reset")
    for step in range(steps):
        actions = rng.integers(n, size=other.num_envs)
        found = one.step(actions.copy()), other.step(actions)
        assert_same(*found, f"step {step}")
        np.testing.assert_array_equal(np.stack(one.call("action_masks")), other.unwrapped.action_masks())
        ended = found[0][2]
        if mode == AutoresetMode.DISABLED and ended.any():
            again = (envs.reset(options={"reset_mask": ended.copy()}) for envs in (one, other))
            assert_same(*again, f"reset after step {step}")
    for mine, theirs in zip(one.get_attr("calls"), other.get_attr("calls"), strict=True):
        assert (mine.cost, mine.asked, mine.uncounted) == (theirs.cost, theirs.asked, theirs.uncounted)
    for name in ("budget", "labels_spent", "labels_to_refit", "labelled_at", "labels", "np_random_seed"):
        for mine, theirs in zip(one.get_attr(name), other.get_attr(name), strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
    states = [[rng.bit_generator.state for rng in envs.np_random] for envs in (one, other)]
    assert states[0] == states[1]


def check_vector_env(make, seed=3):
    """Raise unless a vector environment keeps Gymnasium's promises.

    Args:
        make: function of a number of environments and an autoreset mode that makes one.
        seed: seed of everything.
    """
    for mode in AutoresetMode:
        _check_spaces(make(3, mode), mode)
        _check_own_arrays(make(3, mode), seed)
        _check_seeding(make, mode, seed)
        _check_autoreset(make(3, mode), mode, seed)


def _check_spaces(envs, mode):
    assert isinstance(envs, gym.vector.VectorEnv)
    assert envs.metadata["autoreset_mode"] is mode
    assert envs.observation_space == batch_space(envs.single_observation_space, envs.num_envs)
    assert envs.action_space == batch_space(envs.single_action_space, envs.num_envs)
    count = envs.num_envs
    obs, info = envs.reset(seed=0)
    for _ in range(4):
        assert obs in envs.observation_space
        for name, space in envs.single_observation_space.spaces.items():
            assert obs[name].dtype == space.dtype
            assert obs[name].shape == (count, *space.shape)
        assert info["action_mask"].shape == (count, envs.single_action_space.n)
        assert info["action_mask"].dtype == np.int8
        np.testing.assert_array_equal(info["action_mask"] > 0, envs.action_masks())
        assert envs.action_masks().dtype == np.bool_
        obs, rewards, terminated, truncated, info = envs.step(envs.action_masks().argmax(axis=1))
        for array, dtype in ((rewards, np.float64), (terminated, np.bool_), (truncated, np.bool_)):
            assert (array.dtype, array.shape) == (dtype, (count,))
        if mode == AutoresetMode.DISABLED and terminated.any():
            obs, info = envs.reset(options={"reset_mask": terminated})
            break
    envs.close()
    envs.close()  # a second time does nothing


def _arrays(value):
    if isinstance(value, dict):
        return [array for inner in value.values() for array in _arrays(inner)]
    if isinstance(value, tuple):
        return [array for inner in value for array in _arrays(inner)]
    return [value] if isinstance(value, np.ndarray) and value.dtype != object else []


def _check_own_arrays(envs, seed):
    """What was returned stays as it is, and writing into it changes nothing."""
    first = envs.reset(seed=seed)
    actions = envs.action_masks().argmax(axis=1)
    kept = [array.copy() for array in _arrays(first)]
    second = envs.step(actions)
    for array, before in zip(_arrays(first), kept, strict=True):
        np.testing.assert_array_equal(array, before)
    arrays = _arrays(second)
    for i, one in enumerate(arrays):
        assert one.flags.writeable
        assert not any(np.shares_memory(one, other) for other in (*_arrays(first), *arrays[:i]))
    masks = envs.action_masks()
    for array in arrays:
        array.fill(0)
    np.testing.assert_array_equal(envs.action_masks(), masks)
    obs = envs.step(envs.action_masks().argmax(axis=1))[0]
    assert obs["visitation"].any()


def _check_seeding(make, mode, seed):
    plays = []
    for seeds in (seed, [seed, seed + 1, seed + 2]):
        envs = make(3, mode)
        plays.append([envs.reset(seed=seeds), *(envs.step(np.full(3, action)) for action in (0, 1))])
    for one, other in zip(*plays, strict=True):
        assert_same(one, other)


def _check_autoreset(envs, mode, seed):
    envs.reset(seed=seed)
    ended = np.zeros(3, bool)
    while not ended.any():
        obs, _, ended, _, info = envs.step(envs.action_masks().argmax(axis=1))
    if mode == AutoresetMode.SAME_STEP:
        np.testing.assert_array_equal(info["_final_obs"], ended)
        np.testing.assert_array_equal(info["_budget"], ended)
        for number in np.flatnonzero(ended):
            assert info["final_obs"][number] in envs.single_observation_space
            assert info["final_obs"][number]["budget"] == 0
        assert (obs["budget"][ended] > 0).all()
    else:
        assert not obs["budget"][ended].any()
        assert "final_obs" not in info
    if mode == AutoresetMode.NEXT_STEP:
        obs, rewards, terminated, _, info = envs.step(np.zeros(3, int))
        np.testing.assert_array_equal(info["_states"], ended)
        assert not rewards[ended].any()
        assert not terminated[ended].any()
    if mode == AutoresetMode.DISABLED:
        obs, info = envs.reset(options={"reset_mask": ended})
        np.testing.assert_array_equal(info["_states"], ended)
    assert (obs["budget"][ended] > 0).all()
