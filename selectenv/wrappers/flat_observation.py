"""FlatObservation: the observation and the action mask as one array, for libraries that want just that."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector.utils import batch_space

from selectenv.checks import shown
from selectenv.errors import OptionTypeError
from selectenv.observation import Observation
from selectenv.options import FEATURES
from selectenv.typing import BoolArray, Float32Array
from selectenv.wrappers.batch_labels import selection_env

MASK = "action_mask"


class FlatObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Wrapper whose observation is one float32 array: the features one behind the other, then the action mask.

    It wraps single and vector environments; of a vector environment, each row is the observation of one environment.
    ``layout`` tells where each part stands: ``obs[..., env.layout["action_mask"]]`` is the mask, 1 for states that can
    still be labelled.
    """

    layout: dict[str, slice]
    """Name of each feature, and "action_mask" -> where it stands in the array."""

    def __new__(cls, env: Any) -> Any:
        """Return the wrapper for single or for vector environments."""
        return FlatVectorObservation(env) if isinstance(env, gym.vector.VectorEnv) else super().__new__(cls)

    def __init__(self, env: Any) -> None:
        """Flatten the observations of ``env``."""
        n = selection_env(env).problem.n_states
        _check_not_flat(env)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self.observation_space, self.layout = flat_space(env.observation_space, n)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return flattened(observation, info[MASK]), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Label a state."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return flattened(observation, info[MASK]), reward, terminated, truncated, info

    def action_masks(self) -> BoolArray:
        """Return the mask of states that can still be labelled."""
        masks: BoolArray = self.env.get_wrapper_attr("action_masks")()
        return masks


class FlatVectorObservation(gym.vector.VectorWrapper[Any, Any, Any, Any, Any]):
    """The wrapper of vector environments: `FlatObservation` makes it."""

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        """Flatten the observations of ``env``."""
        super().__init__(env)
        _check_not_flat(env)
        if not isinstance(env.single_action_space, gym.spaces.Discrete):
            raise OptionTypeError(f"env must label one state per step, not act in {shown(env.single_action_space)}")
        n = int(env.single_action_space.n)
        self.single_observation_space, self.layout = flat_space(env.single_observation_space, n)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes."""
        observation, info = self.env.reset(seed=seed, options=options)
        return flattened(observation, self.action_masks()), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Label a state in every environment."""
        observation, rewards, terminations, truncations, info = self.env.step(actions)
        for number in np.flatnonzero(info.get("_final_obs", ())).tolist():
            info["final_obs"][number] = flattened(info["final_obs"][number], info["final_info"][MASK][number])
        return flattened(observation, self.action_masks()), rewards, terminations, truncations, info

    def action_masks(self) -> BoolArray:
        """Return the masks [environments, n] of states that can still be labelled."""
        inner = self.env.unwrapped
        if hasattr(inner, "action_masks"):
            masks: BoolArray = inner.action_masks()
            return masks
        return np.stack(inner.call("action_masks"))  # type: ignore[attr-defined]  # Gymnasium's own vectors


def _check_not_flat(env: Any) -> None:
    """Reject an environment that is wrapped already."""
    while isinstance(env, gym.Wrapper | gym.vector.VectorWrapper):
        if isinstance(env, FlatObservation | FlatVectorObservation):
            raise OptionTypeError("the observations of env are arrays already: FlatObservation is needed only once")
        env = env.env


def flat_space(space: Any, n: int) -> tuple[gym.spaces.Box, dict[str, slice]]:
    """Return the space of flat observations of a problem with n states, and where each part stands in them.

    Raises:
        OptionTypeError: the space is not that of an environment of reward selection.
    """
    parts: dict[str, Any] = dict(space.spaces) if isinstance(space, gym.spaces.Dict) else {}
    names = [name for name in FEATURES if name in parts]
    if not names or len(names) < len(parts):
        raise OptionTypeError(f"env must have the observations of reward selection, not {shown(space)}")
    every = {**{name: parts[name] for name in names}, MASK: gym.spaces.Box(0, 1, (n,), np.float32)}
    low, high = (np.concatenate([getattr(part, side) for part in every.values()]) for side in ("low", "high"))
    ends = np.cumsum([len(part.low) for part in every.values()]).tolist()
    places = [slice(first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True)]
    return gym.spaces.Box(low, high, dtype=np.float32), dict(zip(every, places, strict=True))


def flattened(observation: Observation, mask: Any) -> Float32Array:
    """Return observations [..., n] and masks [..., n] as one array."""
    parts = [observation[name] for name in FEATURES if name in observation]
    return np.concatenate([*parts, mask.astype(np.float32)], axis=-1)
