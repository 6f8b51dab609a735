"""Experts of the control worlds, trained with Stable-Baselines3 in short runs.

PPO (Schulman et al. 2017, https://arxiv.org/abs/1707.06347) learns all four. MountainCar pays -1 until the goal, which
random actions do not reach, so its expert is trained with a shaped reward (Ng et al. 1999): the discounted change of a
potential, the energy of the car, is added. A run takes a few minutes on one core, so it cannot be resumed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from experiments.training.expert_returns import measured
from selectenv.domains.gym_env import GymWorld, Lanes
from selectenv.domains.gym_experts import GymExpert, NetworkExpert
from selectenv.io.weights import save_weights
from selectenv.streams import generator
from selectenv.typing import FloatArray
from selectenv.worlds import CONTROL

FINAL_EPISODES = 100
CURVE_POINTS = 50
WIDTH = 64
"""Units of each of the two hidden layers."""


@dataclass(frozen=True)
class ControlRecipe:
    """How the expert of a world is trained, with PPO."""

    steps: int
    envs: int = 8
    """Environments side by side."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the algorithm that differ from its defaults."""
    shaped: bool = False
    """Whether training adds the change of MountainCar's energy to the reward."""


RECIPES = {
    "CartPole": ControlRecipe(150_000, 8, {"n_steps": 128, "batch_size": 256, "learning_rate": 1e-3}),
    "Acrobot": ControlRecipe(300_000, 16, {"n_steps": 256, "batch_size": 256, "n_epochs": 4, "gae_lambda": 0.94}),
    "MountainCar": ControlRecipe(
        250_000, 16, {"n_steps": 64, "batch_size": 256, "gae_lambda": 0.98, "learning_rate": 1e-3}, shaped=True
    ),
    "LunarLander": ControlRecipe(
        800_000,
        16,
        {"n_steps": 1024, "batch_size": 64, "n_epochs": 4, "gamma": 0.999, "gae_lambda": 0.98, "ent_coef": 0.01},
    ),
}
"""Settings in the manner of RL Baselines3 Zoo (https://github.com/DLR-RM/rl-baselines3-zoo), with small networks."""


def train_control_expert(world: str, path: Path, *, seed: int = 0, steps: int | None = None) -> dict[str, Any]:
    """Train the expert of a control world, write it and return its card.

    Args:
        world: a key of `RECIPES`.
        path: the .npz file to write.
        seed: seed of the run.
        steps: number of environment steps; defaults to that of the recipe.
    """
    import stable_baselines3 as sb3
    import torch

    torch.set_num_threads(1)
    recipe, gym_world = RECIPES[world], CONTROL[world].make()
    steps = recipe.steps if steps is None else steps
    envs = sb3.common.vec_env.DummyVecEnv([_monitored(gym_world, recipe.shaped) for _ in range(recipe.envs)])
    widths = {"net_arch": [WIDTH, WIDTH]}
    model = sb3.PPO("MlpPolicy", envs, seed=seed, device="cpu", policy_kwargs=widths, **recipe.options)
    curve: list[list[float]] = []
    model.learn(steps, callback=_curve_callback(curve, steps))
    envs.close()
    state = {name: value.numpy() for name, value in model.policy.state_dict().items()}
    names = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")
    layers = [(state[f"{name}.weight"], state[f"{name}.bias"]) for name in names]
    returns = control_returns(gym_world, NetworkExpert(layers, "tanh", {}), FINAL_EPISODES, seed)
    card = {
        "env": gym_world.name,
        "activation": "tanh",
        "command": f"selectenv train-expert {world}" + (f" --seed {seed}" if seed else ""),
        "seed": seed,
        "steps_trained": int(model.num_timesteps),
        "curve": curve,
        "random_return": float(control_returns(gym_world, None, FINAL_EPISODES, seed).mean()),
        **measured(returns),
    }
    arrays = {f"{2 * i}.weight": weight for i, (weight, _) in enumerate(layers)}
    arrays |= {f"{2 * i}.bias": bias for i, (_, bias) in enumerate(layers)}
    path.parent.mkdir(parents=True, exist_ok=True)
    save_weights(path, arrays, card)
    return card


def control_returns(world: GymWorld, expert: GymExpert | None, episodes: int, seed: int) -> FloatArray:
    """Return the returns [episodes] of an expert, or of random actions, in fresh episodes."""
    rng = generator(seed, "final episodes")
    lanes, total, playing = Lanes(world, episodes), np.zeros(episodes), np.arange(episodes)
    lanes.reset(rng.integers(2**31, size=episodes).tolist())
    while len(playing):
        seen = lanes.observations[playing]
        actions = rng.integers(world.n_actions, size=len(playing)) if expert is None else expert.actions(seen)
        result = lanes.step(actions, playing)
        total[playing] += result.reward
        playing = playing[~(result.terminated | result.truncated)]
    lanes.close()
    return total


class EnergyShaping(gym.Wrapper[Any, Any, Any, Any]):
    """Adds the change of MountainCar's energy, scaled to the size of its rewards, to the reward."""

    SCALE, GAMMA = 20_000.0, 0.99

    def reset(self, **options: Any) -> Any:
        """Start an episode."""
        observation, info = self.env.reset(**options)
        self._energy = self._energy_of(observation)
        return observation, info

    def step(self, action: Any) -> Any:
        """Take a step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self._energy = self._energy, self._energy_of(observation)
        return (
            observation,
            float(reward) + self.SCALE * (self.GAMMA * self._energy - before),
            terminated,
            truncated,
            info,
        )

    @staticmethod
    def _energy_of(observation: Any) -> float:
        """Return kinetic and potential energy; the force of gravity is -0.0025 cos(3 x)."""
        position, velocity = observation
        return float(0.5 * velocity**2 + 0.0025 / 3 * np.sin(3 * position))


def _monitored(world: GymWorld, shaped: bool) -> Callable[[], gym.Env[Any, Any]]:
    from stable_baselines3.common.monitor import Monitor

    def make() -> gym.Env[Any, Any]:
        env: gym.Env[Any, Any] = Monitor(world.make())  # the learning curve shows the returns of the environment
        return EnergyShaping(env) if shaped else env

    return make


def _curve_callback(curve: list[list[float]], steps: int) -> Any:
    """Return a callback that adds `CURVE_POINTS` points (steps, mean return of recent episodes) to ``curve``."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Curve(BaseCallback):
        def _on_step(self) -> bool:
            due = len(curve) < CURVE_POINTS * self.num_timesteps / steps
            recent = self.model.ep_info_buffer
            if due and recent:
                curve.append([self.num_timesteps, float(np.mean([info["r"] for info in recent]))])
            return True

    return Curve()
