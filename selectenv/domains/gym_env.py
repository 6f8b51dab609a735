"""Any Gymnasium environment with vector observations and discrete actions, as a world.

The dynamics are those of the environment: `Lanes` steps several copies of it side by side, through Gymnasium's own
vector environment where the id has one. Observations are flattened to vectors of float32.
"""

import difflib
import hashlib
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from selectenv.checks import shown
from selectenv.domains.world_step import WorldStep
from selectenv.errors import MissingExtraError, UnknownNameError, WorldError
from selectenv.typing import Float32Array, IntArray

PREFIX = "gym:"
"""Prefix of the names of worlds that are ids of Gymnasium environments."""
COLUMNS = {
    "CartPole-v1": ("position", "velocity", "angle", "angular velocity"),
    "Acrobot-v1": (
        "cos of angle 1",
        "sin of angle 1",
        "cos of angle 2",
        "sin of angle 2",
        "angular velocity 1",
        "angular velocity 2",
    ),
    "MountainCar-v0": ("position", "velocity"),
    "LunarLander-v3": ("x", "y", "x velocity", "y velocity", "angle", "angular velocity", "left leg", "right leg"),
}
"""Names of the columns of some observations."""


class GymWorld:
    """A Gymnasium environment that data are collected from and policies are evaluated in by rollouts."""

    family = "gym"
    layout = None

    def __init__(self, env: str | gym.Env[Any, Any], **options: Any) -> None:
        """Use an environment.

        Args:
            env: the id of a registered environment, or an environment that `gym.make` made; it is only copied.
            **options: options of the environment, as for `gym.make`.

        Raises:
            UnknownNameError: no environment with this id is registered.
            WorldError: the environment has other spaces, or cannot be copied.
            MissingExtraError: a package that the environment needs is not installed.
        """
        self.spec = _find_spec(env)
        self.options = options
        sample = self.make()
        space, actions = sample.observation_space, sample.action_space
        sample.close()
        self.name: str = self.spec.id
        if not isinstance(space, spaces.Box):
            raise WorldError(
                f"{self.name} has observations of {shown(space)}: a world with vectors needs a Box space; "
                f"{_hint(space)}"
            )
        if isinstance(actions, spaces.Box):
            raise WorldError(
                f"{self.name} has continuous actions: a world needs discrete ones; wrap the environment in "
                "gymnasium.wrappers.DiscretizeAction, register the result and use its id"
            )
        if not isinstance(actions, spaces.Discrete):
            raise WorldError(f"{self.name} has actions of {shown(actions)}: a world needs a Discrete space")
        self.width = int(np.prod(space.shape))
        """Number of columns of an observation."""
        self.n_actions, self.first_action = int(actions.n), int(actions.start)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of an observation; empty if they have none."""
        return COLUMNS.get(self.name, ())

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines the data a policy collects here, including Gymnasium's version."""
        wrappers = [[wrapper.entry_point, wrapper.kwargs] for wrapper in self.spec.additional_wrappers]
        text = json.dumps(
            [gym.__version__, self.name, self.spec.max_episode_steps, self.spec.kwargs, self.options, wrappers],
            sort_keys=True,
            default=str,
        )
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def cacheable(self) -> bool:
        """Whether `fingerprint` identifies the environment: it is Gymnasium's own, and so are its wrappers.

        The code of other environments may change between two runs, and so may a function that a wrapper calls.
        """
        wrappers = self.spec.additional_wrappers
        sources = [self.spec.entry_point, *(wrapper.entry_point for wrapper in wrappers)]
        try:
            json.dumps([self.spec.kwargs, self.options, *(wrapper.kwargs for wrapper in wrappers)])
        except TypeError:
            return False
        return all(isinstance(source, str) and source.startswith("gymnasium.") for source in sources)

    def __repr__(self) -> str:
        """Return one line: the name, the number of columns and of actions."""
        return f"<GymWorld {self.name}: {self.width} columns, {self.n_actions} actions>"

    def make(self) -> gym.Env[Any, Any]:
        """Return a new copy of the environment."""
        try:
            with warnings.catch_warnings():
                # Importing Box2D crashes the interpreter if this warning of its SWIG code is made an error.
                warnings.filterwarnings("ignore", "builtin type .* has no __module__", DeprecationWarning)
                return gym.make(self.spec, disable_env_checker=True, **self.options)
        except gym.error.DependencyNotInstalled as error:
            hint = "; pip install 'selectenv[box2d]'" if "box2d" in str(error).lower() else ""
            raise MissingExtraError(f"{self.spec.id}: {error}{hint}") from error
        except Exception as error:  # environments can raise anything
            raise WorldError(f"{self.spec.id} cannot be made: {shown(str(error))}") from error

    def flat(self, observation: Any) -> NDArray[Any]:
        """Return an observation of the environment as a vector [d].

        Raises:
            WorldError: it has another size than the observations that the environment announced.
        """
        found = np.ravel(observation)
        if len(found) != self.width:
            raise WorldError(
                f"{self.name} returned an observation of {len(found)} numbers; its observation space has {self.width}"
            )
        return found

    @property
    def has_vector_env(self) -> bool:
        """Whether Gymnasium has an environment that steps many copies at once, in the way that this one steps."""
        spec, usual = self.spec, gym.registry.get(self.name)
        if usual is None or usual.vector_entry_point is None or self.options or spec.additional_wrappers:
            return False
        return spec.kwargs == usual.kwargs and spec.max_episode_steps == usual.max_episode_steps


class Lanes:
    """Several copies of an environment, stepped together; an episode that is over waits for `reset`."""

    def __init__(self, world: GymWorld, count: int) -> None:
        """Make ``count`` copies."""
        self.world = world
        self._envs = [world.make() for _ in range(count)]
        self.observations: Float32Array = np.zeros((count, world.width), np.float32)
        """[lanes, d] the current observations."""

    def __len__(self) -> int:
        """Return the number of lanes."""
        return len(self._envs)

    def reset(self, seeds: Iterable[int | None], which: IntArray | None = None) -> None:
        """Start an episode in each lane, or in the lanes ``which``; the seed None continues a lane's random stream."""
        lanes = range(len(self)) if which is None else which.tolist()
        for lane, seed in zip(lanes, seeds, strict=True):
            self.observations[lane] = self.world.flat(self._envs[lane].reset(seed=seed)[0])

    def step(self, actions: IntArray, which: IntArray) -> WorldStep:
        """Take one action in each of the lanes ``which``."""
        reward, first = np.zeros(len(which)), self.world.first_action
        terminated, truncated = np.zeros(len(which), bool), np.zeros(len(which), bool)
        envs, observations, flat = self._envs, self.observations, self.world.flat
        for i, (lane, action) in enumerate(zip(which.tolist(), actions.tolist(), strict=True)):
            observation, reward[i], terminated[i], truncated[i], _ = envs[lane].step(first + action)
            observations[lane] = flat(observation)
        return WorldStep(reward, terminated, truncated & ~terminated, observations[which])

    def close(self) -> None:
        """Close the copies."""
        for env in self._envs:
            env.close()


class VectorLanes:
    """Lanes of Gymnasium's vector environment of the id; all of them are reset together, with the first seed."""

    def __init__(self, world: GymWorld, count: int) -> None:
        """Make the vector environment."""
        self.world, self._count = world, count
        self._env = gym.make_vec(world.name, num_envs=count, vectorization_mode="vector_entry_point")
        self.observations: Float32Array = np.zeros((count, world.width), np.float32)
        """[lanes, d] the current observations."""
        self._actions = np.full(count, world.first_action, np.int64)

    def __len__(self) -> int:
        """Return the number of lanes."""
        return self._count

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start an episode in every lane."""
        self.observations = self._flat(self._env.reset(seed=seeds[0])[0])

    def step(self, actions: IntArray, which: IntArray) -> WorldStep:
        """Take one action in each of the lanes ``which``; the others, whose episodes are over, are ignored."""
        self._actions[which] = self.world.first_action + actions
        observations, reward, terminated, truncated, _ = self._env.step(self._actions)
        self.observations = self._flat(observations)
        ended = terminated[which]
        return WorldStep(reward[which].astype(np.float64), ended, truncated[which] & ~ended, self.observations[which])

    def _flat(self, observations: NDArray[Any]) -> Float32Array:
        return observations.reshape(self._count, -1).astype(np.float32, copy=False)


def _find_spec(env: Any) -> gym.envs.registration.EnvSpec:
    """Return the specification of an environment given by id or as an object."""
    if isinstance(env, gym.Env):
        if env.spec is None:
            raise WorldError(
                f"{shown(env)} cannot be copied, because it was not made by gym.make: register its class with "
                "gym.register and pass the id"
            )
        return env.spec if env.spec.additional_wrappers else _without_rendering(env.spec)
    if not isinstance(env, str):
        raise WorldError(f"env must be the id of a Gymnasium environment, or an environment, not {shown(env)}")
    try:
        return gym.spec(env)
    except gym.error.Error as error:
        raise UnknownNameError(
            f"unknown Gymnasium environment {shown(env)}{_closest(env) or f' ({error}).'} "
            "`gymnasium.pprint_registry()` lists all."
        ) from None
    except ImportError as error:
        raise UnknownNameError(f"the Gymnasium environment {shown(env)} cannot be imported: {error}") from None


def _without_rendering(spec: gym.envs.registration.EnvSpec) -> gym.envs.registration.EnvSpec:
    """Return the specification of copies that draw nothing; wrappers may need what is drawn."""
    return replace(spec, kwargs={name: value for name, value in spec.kwargs.items() if name != "render_mode"})


def _closest(env: str) -> str:
    """Return a question that names the most similar id, if there is one."""
    by_lower = {name.lower(): name for name in sorted(gym.registry)}  # of versions, the latest one stays
    close = difflib.get_close_matches(env.lower(), by_lower, n=1, cutoff=0.7)
    return f". Did you mean {by_lower[close[0]]!r}?" if close else ""


def _hint(space: spaces.Space[Any]) -> str:
    """Return what to do about observations that are not a Box."""
    if isinstance(space, spaces.Discrete):
        return "for discrete observations, pass the environment itself, gym.make(...), in place of its id"
    return "wrap the environment in gymnasium.wrappers.FlattenObservation and pass it in place of its id"
