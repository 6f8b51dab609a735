"""Valid calls of the vector environment and of what adapts it."""

from typing import Any

import numpy as np

import selectenv
from agents.sb3 import VecSelection
from selectenv.wrappers import FlatObservation
from tests.odd_arguments import small_objects as small
from tests.odd_arguments.judge import Call
from tests.odd_arguments.library_calls import DATA, EPISODE, constants


def _play(envs: Any) -> Any:
    """Play the first steps of the episodes."""
    envs.reset(seed=0)
    return envs.step(np.zeros(envs.num_envs, int))[1]


def vector(**options: Any) -> Any:
    """Return two environments whose episodes have just begun."""
    envs = selectenv.RewardSelectionVectorEnv(small.problem(), 2, 3, **options)
    envs.reset(seed=0)
    return envs


def vector_env(**options: Any) -> Any:
    return _play(selectenv.RewardSelectionVectorEnv(**options))


def make_vector_env(**options: Any) -> Any:
    return _play(selectenv.make_vector_env(**options))


def method(name: str) -> Any:
    """Return a function that calls a method of the vector environment with keywords."""
    return lambda envs, **given: getattr(envs, name)(**given)


def flat(env: Any) -> Any:
    wrapped = FlatObservation(env)
    return wrapped.reset(seed=0)


def vec_selection(**given: Any) -> Any:
    return VecSelection(**given).reset()


MANY = constants(num_envs=2, autoreset_mode="NextStep", features=("value", "budget"))
VECTOR = {"envs": vector}
CALLS = [
    Call("RewardSelectionVectorEnv", vector_env, {"problem": small.problem, **EPISODE, **MANY}),
    Call("make_vector_env", make_vector_env, {**DATA, **EPISODE, **MANY}),
    Call("envs.reset", method("reset"), constants(seed=0, options=None), fixed=VECTOR),
    Call("envs.step", method("step"), {"actions": lambda: np.array([1, 2])}, fixed=VECTOR),
    Call("envs.call", method("call"), {"name": lambda: "action_masks"}, fixed=VECTOR),
    Call("envs.get_attr", method("get_attr"), {"name": lambda: "labels"}, fixed=VECTOR),
    Call("envs.set_attr", method("set_attr"), {"name": lambda: "tag", "values": lambda: [1, 2]}, fixed=VECTOR),
    Call("FlatObservation", flat, {"env": vector}),
    Call("VecSelection", vec_selection, {"env": small.env, **constants(n_envs=2, flat=False)}, gymnasium=True),
    Call("check_vector_env", selectenv.check_vector_env, {"make": lambda: vector, "seed": lambda: 0}),
]
