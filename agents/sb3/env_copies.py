"""Copies of an environment with its wrappers, to train in several at once."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from agents.errors import EnvironmentCopyError
from selectenv.checks import check_callable, shown
from selectenv.env import RewardSelectionEnv
from selectenv.errors import OptionError, OptionTypeError
from selectenv.wrappers.batch_labels import selection_env

MakeEnv = Callable[[], gym.Env[Any, Any]]
"""Makes an environment, wrappers included; every call makes another one."""
Envs = gym.Env[Any, Any] | Sequence[gym.Env[Any, Any]] | MakeEnv
INSTEAD = (
    "give a function that makes the environment with its wrappers, train(make_env), or a list of environments, "
    "train([env, ...]), or train in this environment alone with n_envs=1"
)


def environments(env: Envs, count: int) -> tuple[list[gym.Env[Any, Any]], list[gym.Env[Any, Any]]]:
    """Return the environments to train in, and those of them that were made here and can be closed after use.

    Args:
        env: an environment, which is used itself if ``count`` is 1 and copied otherwise; a function that makes one; or
            a list of environments, which are used as they are.
        count: number of environments, unless a list is given.

    Raises:
        EnvironmentCopyError: it cannot be copied with its wrappers.
        OptionError: environments are of different sizes, the same, or do not label one state per step.
    """
    if isinstance(env, gym.Env):
        selection_env(env)
        made = [copy_of(env) for _ in range(count)] if count > 1 else []
        found = made or [env]
    elif callable(env):
        found = made = made_by(env, count)
    elif isinstance(env, Sequence) and env:
        found, made = list(env), []
    else:
        raise OptionTypeError(
            "env must be an environment, a function that makes one, or a non-empty list of environments, not "
            f"{shown(env)}"
        )
    _check_compatible(found)
    return found, made


def made_by(make_env: MakeEnv, count: int) -> list[gym.Env[Any, Any]]:
    """Return ``count`` environments that a function makes."""
    check_callable("a function that makes an environment", make_env)
    found = [make_env() for _ in range(count)]
    for one in found:
        if not isinstance(one, gym.Env):
            raise OptionTypeError(f"a function that makes an environment must return one, not {shown(one)}")
    return found


def copy_of(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return another environment with the same wrappers, on the same problem, with call counts of its own.

    A wrapper is made again with the arguments that it recorded with Gymnasium's `RecordConstructorArgs`, or with none
    if its constructor takes only the environment. Data and learner are shared, so that nothing is collected again.

    Raises:
        EnvironmentCopyError: a wrapper did not record its arguments, or the environment is of a user-defined class.
    """
    layers = []
    while isinstance(env, gym.Wrapper):
        layers.append(env)
        env = env.env
    inner = selection_env(env)
    kind = type(inner)
    if kind is not RewardSelectionEnv and kind.twin is RewardSelectionEnv.twin:
        raise EnvironmentCopyError(
            f"{kind.__name__} derives from RewardSelectionEnv without a `twin` of its own that copies it: {INSTEAD}"
        )
    found: gym.Env[Any, Any] = inner.twin()
    found.spec = inner.spec
    for layer in reversed(layers):
        found = _wrapped_again(layer, found)
    return found


def _wrapped_again(layer: gym.Wrapper[Any, Any, Any, Any], env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return ``env`` in a wrapper like ``layer``."""
    kind = type(layer)
    recorded: Mapping[str, Any] = layer._saved_kwargs if isinstance(layer, RecordConstructorArgs) else {}
    unknown = [name for name in _parameters(kind, bool(recorded)) if name not in recorded]
    if unknown:
        raise EnvironmentCopyError(
            f"the wrapper {kind.__name__} cannot be made again: its {'arguments' if unknown[1:] else 'argument'} "
            f"{', '.join(unknown)} {'are' if unknown[1:] else 'is'} not recorded (see "
            f"gymnasium.utils.RecordConstructorArgs); {INSTEAD}"
        )
    try:
        return kind(env, **{name: value for name, value in recorded.items() if name != "env"})
    except TypeError as error:
        raise EnvironmentCopyError(
            f"the wrapper {kind.__name__} cannot be made again with the arguments that it recorded ({error}); {INSTEAD}"
        ) from error


def _parameters(kind: type, recorded: bool) -> list[str]:
    """Return the constructor arguments of a wrapper that must be recorded: all but the environment.

    Keywords of any name (``**options``) need not be among them if the wrapper records its arguments.
    """
    _, *rest = inspect.signature(kind).parameters.values()
    return [one.name for one in rest if not (recorded and one.kind == one.VAR_KEYWORD)]


def _check_compatible(envs: list[gym.Env[Any, Any]]) -> None:
    sizes = {selection_env(one).problem.n_states for one in envs}
    if len(sizes) > 1:
        raise OptionError(f"environments must have the same number of states, not {sorted(sizes)}")
    if len({id(selection_env(one)) for one in envs}) < len(envs):
        raise OptionError("the same environment is given twice: use a twin instead, env.unwrapped.twin()")
    for one in envs:
        if not isinstance(one.action_space, gym.spaces.Discrete):
            raise OptionError(
                f"selectors label one state per step: {one} must have Discrete actions, not {one.action_space}"
            )
