"""The Gymnasium ids RewardSelection-<World>-v0."""

from collections.abc import Callable

import gymnasium as gym

from selectenv.checks import check_instance
from selectenv.worlds import RANDOM, WORLDS, M, WorldDefaults, row_of


def env_id(world: str) -> str:
    """Return the Gymnasium id of a world."""
    check_instance("world", world, str)
    return f"RewardSelection-{world}-v0"


def register_all() -> None:
    """Register every world with Gymnasium, including those that other packages provide as entry points."""
    for name in WORLDS:
        _register(name)
    gym.register(
        env_id(RANDOM),
        entry_point="selectenv.factory:make_random_env",
        vector_entry_point="selectenv.factory:make_random_vector_env",
    )


def register_world(name: str, defaults: WorldDefaults | None = None) -> Callable[[M], M]:
    """Register a function that returns a world (a `TabularWorld` or a Gymnasium environment) under a name.

    The environment's id is ``RewardSelection-<name>-v0``; parameters of the function become options of `gym.make`.

    Args:
        name: the world's name.
        defaults: expert share, mixture, learner and evaluator of the world; generic ones by default.
    """
    given = WorldDefaults() if defaults is None else check_instance("defaults", defaults, WorldDefaults)

    def register(make: M) -> M:
        WORLDS.add(name, row_of(name, make, given))
        _register(name)
        return make

    return register


def _register(name: str) -> None:
    if env_id(name) not in gym.registry:
        gym.register(
            env_id(name),
            entry_point="selectenv.factory:make_env",
            vector_entry_point="selectenv.factory:make_vector_env",
            kwargs={"world": name},
        )
