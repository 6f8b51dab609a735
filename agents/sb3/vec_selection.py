"""VecSelection: the vector environment as a `VecEnv` of Stable-Baselines3."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker
from numpy.typing import NDArray

from agents.errors import EnvironmentCopyError
from selectenv.checks import check_flag, check_int, shown
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError, OptionError, OptionTypeError
from selectenv.vector_env import RewardSelectionVectorEnv
from selectenv.wrappers.batch_labels import selection_env
from selectenv.wrappers.flat_observation import FlatObservation

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise MissingExtraError(f"this needs Stable-Baselines3 ({error}): pip install 'selectenv[meta]'") from error


STATISTICS = "episode"
"""Where Gymnasium's `RecordEpisodeStatistics` puts the return and the length of an episode that has ended."""


class VecSelection(VecEnv):
    """Environments of reward selection for the algorithms of Stable-Baselines3 and sb3-contrib.

    Args:
        env: the id of an environment; an environment, of which ``n_envs`` are made on the same problem, with call
            counts of their own; or a vector environment with ``autoreset_mode=AutoresetMode.SAME_STEP``, wrapped or
            not.
        n_envs: number of environments; a vector environment has its own.
        flat: whether observations are single arrays, for "MlpPolicy"; otherwise they are dicts, for "MultiInputPolicy".
        **options: options of the environment, together with an id.

    Raises:
        EnvironmentCopyError: ``env`` has a wrapper other than `FlatObservation` and those of `gym.make`, or is of a
            user-defined class.
    """

    def __init__(self, env: Any, n_envs: int = 1, *, flat: bool = False, **options: Any) -> None:
        """See the class."""
        self.envs = _vector(env, n_envs, options)
        if check_flag("flat", flat) and isinstance(self.envs.single_observation_space, gym.spaces.Dict):
            self.envs = FlatObservation(self.envs)
        self._inner: RewardSelectionVectorEnv = self.envs.unwrapped
        self._actions: NDArray[Any] = np.empty(0, np.int64)
        super().__init__(self.envs.num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> Any:
        """Start an episode in every environment, and return the observations."""
        options = self._options[0]
        if any(other != options for other in self._options):
            raise OptionError("all environments are reset with the same options: give set_options one dict")
        obs, info = self.envs.reset(seed=list(self._seeds), options=dict(options) if options else None)
        self.reset_infos = split(info, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return obs

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Label the states; where an episode ends, the observation is the first of the next one."""
        obs, rewards, dones, _, info = self.envs.step(self._actions)
        final, ended = info.pop("final_info", {}), np.flatnonzero(info.pop("_final_obs", ())).tolist()
        last, _ = info.pop("final_obs", None), info.pop("_final_info", None)
        infos = split(info, self.num_envs)
        finals = split(final, self.num_envs) if ended else []
        for number in ended:
            self.reset_infos[number] = infos[number]
            recorded = {STATISTICS: infos[number][STATISTICS]} if STATISTICS in infos[number] else {}
            infos[number] = {**finals[number], **recorded, "terminal_observation": last[number]}
        for one in infos:
            one["TimeLimit.truncated"] = False
        return obs, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def get_images(self) -> Sequence[Any]:
        """Return an RGB image of the labels of each environment."""
        return [None] * self.num_envs if self.render_mode != "rgb_array" else list(self._inner.render() or ())

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of some environments."""
        members = self._inner.members
        return [getattr(members[number], attr_name) for number in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of some environments."""
        for number in self._get_indices(indices):
            setattr(self._inner.members[number], attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method of some environments."""
        if method_name == "action_masks" and indices is None:
            return list(self._inner.action_masks())
        return [method(*args, **kwargs) for method in self.get_attr(method_name, indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False: single environments have no wrappers here."""
        return [False for _ in self._get_indices(indices)]


def is_plain(env: gym.Env[Any, Any]) -> bool:
    """Return whether an environment has only the wrappers of `gym.make` and is not of a user-defined class."""
    return not _own_wrappers(env) and type(env.unwrapped) is RewardSelectionEnv


def vector_of(env: gym.Env[Any, Any], count: int) -> RewardSelectionVectorEnv:
    """Return ``count`` environments on the problem of ``env``, without its wrappers."""
    inner = selection_env(env)
    problem, options = inner.source or inner.problem, vars(inner.options)
    return RewardSelectionVectorEnv(problem, count, autoreset_mode=AutoresetMode.SAME_STEP, **options)


def split(info: dict[Any, Any], count: int, otherwise: Any = None) -> list[dict[Any, Any]]:
    """Return the info of each environment from those of a vector environment.

    Entries without a mask have the mask ``otherwise``; if that is None, they are left out.
    """
    found: list[dict[Any, Any]] = [{} for _ in range(count)]
    masks = {f"_{key}" for key in info}
    for key, values in info.items():
        mask = info.get(f"_{key}", otherwise)
        if mask is None or key in masks:
            continue
        rows = split(values, count, mask) if isinstance(values, dict) else values
        rows = rows.tolist() if isinstance(rows, np.ndarray) and rows.ndim == 1 else rows
        for one, row, has in zip(found, rows, mask.tolist(), strict=True):
            if has:
                one[key] = row
    return found


def _vector(env: Any, n_envs: int, options: dict[str, Any]) -> Any:
    """Return the vector environment behind the first argument of `VecSelection`."""
    check_int("n_envs", n_envs)
    if isinstance(env, str):
        _check_id(env, options)
        native = "vector_entry_point"
        return gym.make_vec(env, n_envs, native, autoreset_mode=AutoresetMode.SAME_STEP, **options)
    if options:
        raise OptionError(
            f"options can only be combined with the id of an environment, not with an environment: {', '.join(options)}"
        )
    if isinstance(env, gym.vector.VectorEnv):
        if not isinstance(env.unwrapped, RewardSelectionVectorEnv):
            raise OptionTypeError(
                f"env must be made by gym.make_vec with the id of an environment of reward selection and "
                f"vectorization_mode='vector_entry_point', not {shown(env)}"
            )
        if env.unwrapped.autoreset_mode != AutoresetMode.SAME_STEP:
            raise OptionError("Stable-Baselines3 resets in the same step: use autoreset_mode=AutoresetMode.SAME_STEP")
        if n_envs not in (1, env.num_envs):
            raise OptionError(f"n_envs={shown(n_envs)} contradicts the vector environment, which has {env.num_envs}")
        return env
    inner, wrappers = selection_env(env), _own_wrappers(env)
    lost = [kind.__name__ for kind in wrappers if kind is not FlatObservation]
    if lost or type(inner) is not RewardSelectionEnv:
        name = lost[0] if lost else type(inner).__name__
        raise EnvironmentCopyError(
            f"{name} cannot be used with VecSelection: use a wrapper of vector environments if there is one, or "
            "Stable-Baselines3's own make_vec_env, which makes single environments"
        )
    vector = vector_of(env, n_envs)
    return FlatObservation(vector) if wrappers else vector


def _check_id(name: str, options: dict[str, Any]) -> None:
    """Reject ids of other environments, and keywords of `gym.make_vec` that are decided here."""
    if "num_envs" in options:
        raise OptionError("VecSelection calls the number of environments n_envs, not num_envs")
    for option in {"autoreset_mode", "vectorization_mode"} & options.keys():
        raise OptionError(f"{option} cannot be chosen: Stable-Baselines3 resets environments in the same step")
    entry_point = gym.spec(name).vector_entry_point
    if not isinstance(entry_point, str) or not entry_point.startswith("selectenv."):
        raise OptionError(
            f"{shown(name)} is not an environment of reward selection: their ids begin with RewardSelection-"
        )


def _own_wrappers(env: Any) -> list[type]:
    """Return the classes of the wrappers of an environment, without those that only check its use."""
    found = []
    while isinstance(env, gym.Wrapper):
        found.append(type(env))
        env = env.env
    return [kind for kind in found if kind not in (OrderEnforcing, PassiveEnvChecker)]
