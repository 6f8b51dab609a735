"""Acrobot and MountainCar in compiled loops, for evaluations, with the starts and the dynamics of Gymnasium."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from selectenv.domains.gym_env import GymWorld, Lanes, VectorLanes
from selectenv.domains.world_step import WorldStep
from selectenv.kernels.classic_control import step_acrobot, step_mountain_car
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray

Step = Callable[[FloatArray, IntArray, IntArray, Float32Array], tuple[FloatArray, BoolArray]]
COMPILED: dict[str, Step] = {
    "gymnasium.envs.classic_control.acrobot:AcrobotEnv": step_acrobot,
    "gymnasium.envs.classic_control.mountain_car:MountainCarEnv": step_mountain_car,
}
"""Entry point of an environment -> the same step, compiled."""
CHECKED_STEPS, TOLERANCE = 30, 1e-9
"""Number of steps in which compiled loops are compared with the installed Gymnasium, and the tolerance for rounding."""


class CompiledLanes:
    """Several copies of an environment, stepped in a compiled loop; an episode that is over waits for `reset`."""

    def __init__(self, world: GymWorld, count: int) -> None:
        """Make ``count`` copies of a world that `is_compiled`."""
        self._env = world.make()
        self._step, self._limit = COMPILED[str(world.spec.entry_point)], world.spec.max_episode_steps or 0
        self._seeds: tuple[int | None, ...] = ()
        self._starts: list[tuple[FloatArray, Float32Array]] = []
        self.states: FloatArray = np.zeros((count, 0))
        """[lanes, ...] what the environments call their state."""
        self._steps = np.zeros(count, np.int64)
        self.observations: Float32Array = np.zeros((count, world.width), np.float32)
        """[lanes, d] the current observations."""

    def __len__(self) -> int:
        """Return the number of lanes."""
        return len(self.observations)

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start an episode in each lane, where Gymnasium's environment starts it."""
        if tuple(seeds) != self._seeds or None in self._seeds:
            self._seeds, self._starts = tuple(seeds), [self._start(seed) for seed in seeds]
        self.states = np.stack([state for state, _ in self._starts])
        self.observations = np.stack([observation for _, observation in self._starts])
        self._steps[:] = 0

    def _start(self, seed: int | None) -> tuple[FloatArray, Float32Array]:
        observation, _ = self._env.reset(seed=seed)
        return np.array(self._env.get_wrapper_attr("state"), np.float64), observation

    def step(self, actions: IntArray, which: IntArray) -> WorldStep:
        """Take one action in each of the lanes ``which``."""
        reward, terminated = self._step(self.states, which, actions, self.observations)
        self._steps[which] += 1
        truncated = (self._steps[which] >= self._limit) & ~terminated
        return WorldStep(reward, terminated, truncated, self.observations[which])


def make_lanes(world: GymWorld, count: int) -> Lanes | VectorLanes | CompiledLanes:
    """Return copies of an environment that are stepped in the fastest way that is available for it."""
    if is_compiled(world):
        return CompiledLanes(world, count)
    return VectorLanes(world, count) if world.has_vector_env else Lanes(world, count)


def is_compiled(world: GymWorld) -> bool:
    """Return whether there is a compiled step of the environment, and the installed Gymnasium steps in the same way."""
    spec = world.spec
    plain = not (world.options or spec.kwargs or spec.additional_wrappers) and spec.max_episode_steps is not None
    return plain and str(spec.entry_point) in COMPILED and _steps_agree(world.name)


@lru_cache
def _steps_agree(name: str) -> bool:
    """Compare the states of an episode with random actions."""
    world = GymWorld(name)
    compiled, env = CompiledLanes(world, 1), world.make()
    compiled.reset([0])
    env.reset(seed=0)
    for action in np.random.default_rng(0).integers(world.n_actions, size=CHECKED_STEPS).tolist():
        result = compiled.step(np.array([action]), np.zeros(1, np.int64))
        _, reward, terminated, truncated, _ = env.step(action)
        ours = result.reward[0], result.terminated[0], result.truncated[0]
        state = np.array(env.get_wrapper_attr("state"), np.float64)
        if ours != (reward, terminated, truncated) or not np.allclose(compiled.states[0], state, 0, TOLERANCE):
            return False
        if terminated or truncated:
            break
    return True
