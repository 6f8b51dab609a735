"""Comparison of vector environments with Gymnasium's own, over all ids."""

from functools import cache

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

import selectenv

RANDOM = selectenv.env_id("Random")
SMALL = {
    **{selectenv.env_id(name): {"dataset_size": 1_000} for name in selectenv.TABULAR},
    selectenv.env_id("Sparse"): {"n_states": 60, "dataset_size": 1_000},
    RANDOM: {"padding": 20, "largest": 20},
}
"""Ids whose steps are compiled -> options that keep them small."""
PLAYED = {
    **{selectenv.env_id(name): {} for name in selectenv.GAMES},
    **{selectenv.env_id(name): {"groups": 10} for name in selectenv.CONTROL},
}
"""Ids of worlds in which policies are evaluated by playing -> options that keep them small."""


@cache
def played_data(env_id):
    """Return a few data of such a world."""
    options = {"dataset_size": 400, "cache": False, "learner": "uds", **PLAYED[env_id]}
    return selectenv.make_problem(env_id.split("-")[1], **options).dataset


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
