"""check_vector_env: a checker of vector environments of reward selection."""

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from selectenv.checks import check_callable, check_int, shown
from selectenv.errors import VectorCheckError
from selectenv.typing import BoolArray, IntArray

MakeVector = Callable[[], gym.vector.VectorEnv[Any, Any, Any]]
"""Makes a vector environment; every call makes another one."""
ENDS = 2
"""How often the episodes of each environment end while it is checked."""
SUM_ERROR = 1e-9
"""Largest relative difference between the sum of rewards and the performance."""


def check_vector_env(make: MakeVector, seed: int = 0) -> None:
    """Raise unless vector environments of reward selection keep what Gymnasium and this package promise.

    Two of them are played side by side with random labels, and all arrays that the second one returns are overwritten.
    Checked are spaces, shapes and dtypes; that arrays are the caller's own; seeds; the semantics of the autoreset mode
    in ``metadata["autoreset_mode"]``; masks, budgets and ends of episodes; and that rewards sum to the performance.
    Vectors of Gymnasium, such as `SyncVectorEnv`, and wrappers that leave rewards and infos alone can be checked too.

    Args:
        make: makes a vector environment; every call makes another one.
        seed: seed of the environments and of the labels.

    Raises:
        VectorCheckError: a promise is broken; the message says which.
    """
    check_callable("make", make)
    check_int("seed", seed, 0)
    envs: Any = make()
    other: Any = make()
    _check_spaces(envs)
    seeds = [seed + number for number in range(envs.num_envs)]
    first = envs.reset(seed=seed)
    _check_same(first, other.reset(seed=seeds), "between a reset with seed s and one with seeds s, s + 1, ...")
    begun = _copied(first)
    _Play(envs, other, first, np.random.default_rng(seed)).run()
    _check_same(begun, envs.reset(seed=seed), "between two resets with the same seed")
    for one in (envs, other):
        one.close()


class _Play:
    """Two vector environments that are played side by side; the first one is checked."""

    def __init__(self, envs: Any, other: Any, first: tuple[Any, Any], rng: np.random.Generator) -> None:
        self.envs, self.other, self.rng = envs, other, rng
        self.inner: Any = envs.unwrapped
        self.mode: AutoresetMode = envs.metadata["autoreset_mode"]
        self.count, self.n = envs.num_envs, int(envs.single_action_space.n)
        self.ended = np.zeros(self.count, bool)
        """[environments] episodes that ended in the last step and have not been reset."""
        self.ends, self.told = np.zeros(self.count, int), np.zeros(self.count, int)
        """[environments] number of episodes that have ended, and of those whose performance was told."""
        self.paid = np.zeros(self.count)
        """[environments] sum of the rewards of the running episode."""
        self.kept: tuple[Any, Any] = ((), ())
        """The last result, and copies of its arrays."""
        self.obs = first[0]
        self._check_shown(first)
        self._check_begun(first[1], np.ones(self.count, bool))

    def run(self) -> None:
        """Play until the episodes of every environment have ended `ENDS` times."""
        while self.ends.min() < ENDS:
            self._step()
            if self.mode == AutoresetMode.DISABLED and self.ended.any():
                self._reset_ended()
        has_performance = np.array([problem.has_performance for problem in self.inner.get_attr("problem")])
        _expect(np.array_equal(self.told, self.ends * has_performance), 'an episode ends without info["performance"]')

    def _step(self) -> None:
        """Label a random state in every environment."""
        masks, spent, budget = self._episodes()
        actions = self.rng.integers(self.n, size=self.count)
        begun, steps = self.ended.copy(), ~self.ended
        result = self.envs.step(actions)
        obs, rewards, terminated, truncated, info = result
        self._check_shown(result)
        for name, array, dtype in (
            ("rewards", rewards, np.float64),
            ("terminations", terminated, np.bool_),
            ("truncations", truncated, np.bool_),
        ):
            right = array.dtype == dtype and array.shape == (self.count,)
            _expect(right, f"{name} are not an array [environments] of {dtype.__name__}")
        _expect(not truncated.any(), "an episode is truncated")
        _expect(not rewards[begun].any(), "a step that resets an environment pays a reward")
        over = steps & (spent + 1 == budget)
        _expect(np.array_equal(terminated, over), "an episode does not end with the last label of its budget")
        self.paid = np.where(begun, 0.0, self.paid) + rewards
        self.ends += over
        if self.mode == AutoresetMode.SAME_STEP:
            last, begun, steps = info.get("final_info", {}), over, ~over
            self._check_final(info, over)
        else:
            last = info
            _expect(
                "final_obs" not in info, "there are final observations, but episodes are not reset in the same step"
            )
        self._check_performance(last, over)
        masks[np.arange(self.count), actions] = False
        now, spent_now, _ = self._episodes()
        _expect(np.array_equal(now[steps], masks[steps]), "a label does not close the state that it labels, or others")
        _expect(np.array_equal(spent_now[steps], spent[steps] + 1), "a label does not count towards the budget")
        self._check_begun(info, begun)
        self.paid[begun] = 0.0
        self.ended = over if self.mode != AutoresetMode.SAME_STEP else np.zeros(self.count, bool)
        self.obs = obs
        theirs = self.other.step(actions)
        _check_same(result, theirs, "between steps with the same seed if arrays returned earlier are overwritten")
        _overwrite(theirs)

    def _reset_ended(self) -> None:
        """Reset the environments whose episodes have ended; the others must not notice."""
        result = self.envs.reset(options={"reset_mask": self.ended.copy()})
        for before, after in zip(_arrays(self.obs), _arrays(result[0]), strict=True):
            _expect(np.array_equal(before[~self.ended], after[~self.ended]), "reset_mask resets other environments")
        self._check_shown(result)
        self._check_begun(result[1], self.ended)
        theirs = self.other.reset(options={"reset_mask": self.ended.copy()})
        _check_same(result, theirs, "between resets with the same seed if arrays returned earlier are overwritten")
        _overwrite(theirs)
        self.paid[self.ended] = 0.0
        self.ended, self.obs = np.zeros(self.count, bool), result[0]

    def _episodes(self) -> tuple[BoolArray, IntArray, IntArray]:
        """Return the masks [environments, n], the labels spent [environments] and the budgets [environments]."""
        masks = np.stack(self.inner.call("action_masks"))
        return masks, np.array(self.inner.get_attr("labels_spent")), np.array(self.inner.get_attr("budget"))

    def _check_shown(self, result: Any) -> None:
        """Check the observation and the masks of a result, and whom its arrays belong to."""
        obs, info = result[0], result[-1]
        _check_contained(obs, self.envs.observation_space, "an observation")
        masks, _, _ = self._episodes()
        _expect(masks.dtype == np.bool_ and masks.shape == (self.count, self.n), "masks are not booleans [n]")
        at_once = getattr(self.envs, "action_masks", None)
        _expect(at_once is None or np.array_equal(at_once(), masks), "action_masks() differs from those of each one")
        told = info.get("action_mask", np.empty(0))
        _expect(told.dtype == np.int8, 'info["action_mask"] is missing or is not an array of int8')
        where = info["_action_mask"]
        _expect(np.array_equal(told[where] > 0, masks[where]), 'info["action_mask"] differs from action_masks()')
        self._check_own(result)

    def _check_own(self, result: Any) -> None:
        """Check that arrays belong to the caller: they share no memory with the last ones or with each other."""
        arrays, before = list(_arrays(result)), list(_arrays(self.kept[0]))
        _check_same(self.kept[1], before, "in an array that was returned earlier")
        for i, array in enumerate(arrays):
            _expect(array.flags.writeable, "an array is not writeable")
            shared = any(np.shares_memory(array, one) for one in (*before, *arrays[:i]))
            _expect(not shared, "arrays that were returned share memory")
        self.kept = result, _copied(result)

    def _check_begun(self, info: Any, begun: BoolArray) -> None:
        """Check the environments that begin an episode."""
        told = info.get("_states", np.zeros(self.count, bool))
        _expect(np.array_equal(told, begun), "the infos of a reset are not those of the environments that were reset")
        masks, spent, budget = self._episodes()
        labels = self.inner.get_attr("labels")
        for number in np.flatnonzero(begun).tolist():
            initial = info["initial"][number]
            _expect(
                np.array_equal(labels[number], initial), "an episode begins with other labels than the initial ones"
            )
            _expect(spent[number] == len(initial) < budget[number], "the initial labels do not leave a label to choose")
            _expect(not masks[number, initial].any(), "a state that is labelled at reset can be labelled again")
            _expect(info["budget"][number] == budget[number], 'info["budget"] is not the number of labels')

    def _check_final(self, info: Any, over: BoolArray) -> None:
        """Check what is told of episodes that ended and were reset in the same step."""
        for key in ("_final_obs", "_final_info"):
            told = info.get(key, np.zeros(self.count, bool))
            _expect(np.array_equal(told, over), f'info["{key}"] does not mark the episodes that ended')
        for number in np.flatnonzero(over).tolist():
            final = info["final_obs"][number]
            _check_contained(final, self.envs.single_observation_space, "a final observation")
            left = final.get("budget", 0.0) if isinstance(final, dict) else 0.0
            _expect(left == 0.0, "a final observation shows that labels are left")

    def _check_performance(self, info: Any, over: BoolArray) -> None:
        """Check that rewards sum to the performance, where there is one."""
        told = info.get("_performance", np.zeros(self.count, bool))
        self.told += told
        _expect(not told[~over].any(), "a performance is told before the end of an episode")
        for number in np.flatnonzero(told).tolist():
            close = np.isclose(self.paid[number], info["performance"][number], rtol=SUM_ERROR, atol=SUM_ERROR)
            _expect(bool(close), "the rewards of an episode do not sum to its performance")


def _expect(holds: bool | np.bool_, broken: str) -> None:
    """Raise with what is wrong unless a promise holds."""
    if not holds:
        raise VectorCheckError(f"this vector environment breaks a promise: {broken}")


def _check_spaces(envs: Any) -> None:
    _expect(isinstance(envs, gym.vector.VectorEnv), f"{shown(envs)} is not a gymnasium.vector.VectorEnv")
    told = envs.metadata.get("autoreset_mode")
    _expect(isinstance(told, AutoresetMode), f'metadata["autoreset_mode"] is {shown(told)}, not an AutoresetMode')
    _expect(isinstance(envs.single_action_space, gym.spaces.Discrete), "actions are not numbers of states")
    for name in ("observation_space", "action_space"):
        batched = batch_space(getattr(envs, f"single_{name}"), envs.num_envs)
        _expect(getattr(envs, name) == batched, f"{name} is not single_{name}, batched")


def _check_contained(obs: Any, space: gym.Space[Any], name: str) -> None:
    """Check an observation and the dtypes of its parts."""
    _expect(obs in space, f"{name} is not in its space")
    parts = [(obs[key], one) for key, one in space.items()] if isinstance(space, gym.spaces.Dict) else [(obs, space)]
    for array, one in parts:
        _expect(array.dtype == one.dtype, f"{name} has an array of {array.dtype} instead of {one.dtype}")


def _check_same(one: Any, other: Any, place: str) -> None:
    """Check that two nested results have equal arrays."""
    pair = [list(_arrays(result)) for result in (one, other)]
    same = len(pair[0]) == len(pair[1]) and all(
        np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f") for mine, theirs in zip(*pair, strict=True)
    )
    _expect(same, f"there is a difference {place}")


def _arrays(value: Any) -> Iterator[NDArray[Any]]:
    """Yield all arrays in a nested result, except arrays of objects, whose entries are searched instead."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield value
    elif isinstance(value, dict | tuple | list | np.ndarray):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _arrays(inner)


def _copied(value: Any) -> tuple[NDArray[Any], ...]:
    return tuple(array.copy() for array in _arrays(value))


def _overwrite(result: Any) -> None:
    for array in _arrays(result):
        array.fill(np.ones((), array.dtype) if array.dtype.kind in "biuf" else "")
