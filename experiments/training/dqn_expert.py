"""Train the expert of a MinAtar game online with Stable-Baselines3's DQN and the small network, on 8 parallel games.

A run can be interrupted at any time: every 100,000 steps, weights, optimiser state and replay buffer are written
atomically, and the same command resumes from there (games in progress restart). The network with the best return over
`EVALUATION` episodes is kept; `finish` evaluates it again over 100 new episodes and writes the weights and their card
to one file without pickle.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from experiments.training.expert_returns import FINAL_EPISODES, FINAL_SEED, expert_returns, measured
from selectenv.checks import check_int
from selectenv.domains.minatar.experts import NetworkExpert
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.errors import MissingExtraError, WeightsFileError

try:
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import VecEnv, VecMonitor
    from torch import nn
except ImportError as error:
    raise MissingExtraError(
        f"training experts needs additional packages ({error}): pip install 'selectenv[minatar,meta]'"
    ) from error

from experiments.training.small_cnn import SmallCnn, as_arrays, feature_layers
from selectenv.io.weights import load_weights, save_weights
from selectenv.kernels.network.cnn import HIDDEN

GAMES_AT_ONCE = 8
STEPS = 3_000_000
CHECKPOINT_EVERY = 100_000
EVALUATION = 32
BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
SETTINGS: dict[str, Any] = {
    "learning_rate": 3e-4,
    "buffer_size": 200_000,
    "learning_starts": 10_000,
    "batch_size": 64,
    "gamma": 0.99,
    "train_freq": 1,
    "gradient_steps": 1,
    "n_steps": 3,
    "target_update_interval": 8_000,
    "exploration_fraction": 0.1,
    "exploration_final_eps": 0.02,
}


class GamesVecEnv(VecEnv):
    """Vectorised environment for Stable-Baselines3: uint8 images [channels, rows, columns]."""

    def __init__(self, world: MinAtarWorld, count: int, seed: int, after: int = 0) -> None:
        """Start ``count`` games; ``after``, the number of training steps so far, selects their random streams."""
        rows, columns, channels = world.shape
        self._games = Games(world, stream_keys(count, seed, "expert", after))
        super().__init__(
            count, gym.spaces.Box(0, 1, (channels, rows, columns), np.uint8), gym.spaces.Discrete(world.n_actions)
        )

    def reset(self) -> Any:
        """Return the current images [count, channels, rows, columns]."""
        return _channels_first(self._games.images)

    def step_async(self, actions: Any) -> None:
        """Store the actions [count] of the next step."""
        self._chosen = actions

    def step_wait(self) -> Any:
        """Take the stored actions; return images, rewards, dones and infos."""
        moves = self._games.step(self._chosen)
        over = moves.terminated | moves.truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over):
            infos[i]["terminal_observation"] = _channels_first(moves.entered[i : i + 1])[0]
            infos[i]["TimeLimit.truncated"] = bool(moves.truncated[i])
        return _channels_first(self._games.images), moves.reward, over, infos

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of this object, once per game."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise an AttributeError: games have no settable attributes."""
        raise AttributeError(f"games have no attribute {attr_name!r} to set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Raise an AttributeError: games have no methods."""
        raise AttributeError(f"games have no method {method_name!r}")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for each game."""
        return [False] * self.num_envs


def _channels_first(images: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(images, 3, 1)).view(np.uint8)


class _Features(BaseFeaturesExtractor):
    """Feature extractor: the layers of the small network below its outputs."""

    def __init__(self, observation_space: gym.spaces.Box) -> None:
        super().__init__(observation_space, HIDDEN)
        self.layers = nn.Sequential(*feature_layers(observation_space.shape[0]))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layers(observations)
        return out


def as_small_cnn(model: Any) -> SmallCnn:
    """Return a copy of the network of an SB3 model."""
    space = model.observation_space
    network = SmallCnn(space.shape[0], int(model.action_space.n))
    theirs = [*model.q_net.features_extractor.layers, *model.q_net.q_net]
    for ours, other in zip(network, theirs, strict=True):
        ours.load_state_dict(other.state_dict())
    return network


class _Keeper(BaseCallback):
    """Callback that evaluates, keeps the best network, writes checkpoints and reports progress."""

    def __init__(
        self, world: MinAtarWorld, folder: Path, run: dict[str, Any], every: int, show: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._world, self._folder, self._run, self._every, self._show = world, folder, run, every, show
        self.curve: list[tuple[int, float, float]] = []

    def _on_step(self) -> bool:
        if self.num_timesteps % self._every < self.model.n_envs:
            self.keep()
        return True

    def keep(self) -> None:
        """Evaluate the network and write a checkpoint."""
        arrays = as_arrays(as_small_cnn(self.model))
        expert = NetworkExpert(arrays, {"actions": self._world.actions}, self._world)
        found = measured(expert_returns(self._world, expert, EVALUATION, self._run["seed"] + self.num_timesteps))
        mean, error = found["return"], found["return_error"]
        if mean > max((point[1] for point in self.curve), default=-np.inf):
            card = {"game": self._world.name, "actions": self._world.actions, "steps": self.num_timesteps}
            save_weights(self._folder / "best.npz", arrays, card)
        self.curve.append((self.num_timesteps, mean, error))
        self.logger.record("expert/return", mean)
        self.logger.dump(self.num_timesteps)
        save_checkpoint(self.model, self.curve, self._folder, self._run)
        self._show(f"{self._world.name}: {self.num_timesteps:>9,} steps, return {mean:.2f} +- {error:.2f}")


def save_checkpoint(model: Any, curve: list[tuple[int, float, float]], folder: Path, run: dict[str, Any]) -> None:
    """Write everything needed to resume to one file; ``run`` identifies the run by game, seed and settings."""
    buffer = model.replay_buffer
    filled = buffer.buffer_size if buffer.full else buffer.pos
    header = {
        "steps": model.num_timesteps,
        "updates": model._n_updates,
        "calls": model._n_calls,
        "position": buffer.pos,
        "full": buffer.full,
        "run": run,
        "curve": curve,
        "optimiser": len(model.policy.optimizer.state_dict()["state"]),
    }
    arrays = {f"net.{name}": value.numpy() for name, value in model.policy.state_dict().items()}
    for number, state in model.policy.optimizer.state_dict()["state"].items():
        arrays |= {f"adam.{number}.{name}": np.asarray(value) for name, value in state.items()}
    for name in BUFFER:
        column = getattr(buffer, name)[:filled]
        arrays[f"buffer.{name}"] = np.packbits(column) if "observations" in name else column
    save_weights(folder / "checkpoint.npz", arrays, header, compressed=False)


def load_checkpoint(model: Any, folder: Path, run: dict[str, Any]) -> list[tuple[int, float, float]]:
    """Restore a new model from the checkpoint in ``folder``, and return the learning curve so far.

    Raises:
        WeightsFileError: the checkpoint is damaged or belongs to another run.
    """
    path, buffer = folder / "checkpoint.npz", model.replay_buffer
    try:
        arrays, header = load_weights(path)
        if header["run"] != run:
            raise ValueError(f"it was made with {header['run']}, not {run}")
        net = {name: torch.from_numpy(arrays[f"net.{name}"]) for name in model.policy.state_dict()}
        model.policy.load_state_dict(net)
        adam = model.policy.optimizer.state_dict()
        for number in range(header["optimiser"]):
            adam["state"][number] = {
                name: torch.from_numpy(arrays[f"adam.{number}.{name}"]) for name in ("step", "exp_avg", "exp_avg_sq")
            }
        model.policy.optimizer.load_state_dict(adam)
        buffer.pos, buffer.full = int(header["position"]), bool(header["full"])
        filled = buffer.buffer_size if buffer.full else buffer.pos
        for name in BUFFER:
            target, column = getattr(buffer, name)[:filled], arrays[f"buffer.{name}"]
            if "observations" in name:
                column = np.unpackbits(column, count=target.size).reshape(target.shape)
            target[...] = column
        model.num_timesteps, model._n_updates = int(header["steps"]), int(header["updates"])
        model._n_calls = int(header["calls"])
        for name in ("dones", "timeouts"):  # games in progress are abandoned: no transition follows this one
            getattr(buffer, name)[buffer.pos - 1] = 1.0
        return [(int(steps), float(mean), float(error)) for steps, mean, error in header["curve"]]
    except Exception as error:  # corrupt files raise unrelated exception types
        raise WeightsFileError(
            f"the checkpoint {str(path)!r} is damaged or belongs to another run ({error}); delete it to start over"
        ) from None


def train_expert(
    game: str,
    steps: int,
    folder: Path,
    *,
    seed: int = 0,
    checkpoint_every: int = CHECKPOINT_EVERY,
    settings: dict[str, Any] | None = None,
    show: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> dict[str, Any]:
    """Train the expert of a game, or resume its training, up to ``steps`` steps in total; return its card.

    ``folder`` receives the checkpoint, the best network so far, the TensorBoard log and finally the expert,
    ``<game>.npz``.
    """
    world = MinAtarWorld(game)
    check_int("steps", steps)
    check_int("checkpoint_every", checkpoint_every)
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    chosen = SETTINGS | (settings or {})
    model = DQN(
        "MlpPolicy",
        _games(world, seed, 0),
        seed=seed,
        device="cpu",
        policy_kwargs={"features_extractor_class": _Features, "net_arch": [], "optimizer_kwargs": {"fused": True}},
        tensorboard_log=str(folder / "tb"),
        **chosen,
    )
    run = {"game": game, "seed": seed, "settings": chosen}
    keeper = _Keeper(world, folder, run, checkpoint_every, show)
    if (folder / "checkpoint.npz").exists():
        keeper.curve = load_checkpoint(model, folder, run)
        model.set_env(_games(world, seed, model.num_timesteps))
        show(f"{game}: resuming from {model.num_timesteps:,} steps")
    if model.num_timesteps < steps:
        model.learn(steps - model.num_timesteps, callback=keeper, reset_num_timesteps=False, log_interval=1_000)
        if keeper.curve[-1:] == [] or keeper.curve[-1][0] < model.num_timesteps:
            keeper.keep()
    return finish(world, folder, keeper.curve, seed, chosen)


def _games(world: MinAtarWorld, seed: int, after: int) -> Any:
    return VecMonitor(GamesVecEnv(world, GAMES_AT_ONCE, seed, after))


def finish(
    world: MinAtarWorld, folder: Path, curve: list[tuple[int, float, float]], seed: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """Evaluate the best network over new episodes, write it with its card, and return the card."""
    arrays, best = load_weights(folder / "best.npz")
    returns = expert_returns(world, NetworkExpert(arrays, best, world), FINAL_EPISODES, seed + FINAL_SEED)
    card = {
        "game": world.name,
        "actions": world.actions,
        "command": f"selectenv train-expert {world.name} --steps {curve[-1][0]} --seed {seed}",
        "seed": seed,
        "steps_trained": curve[-1][0],
        "steps_of_best": best["steps"],
        **measured(returns),
        "settings": settings,
        "curve": curve,
    }
    save_weights(folder / f"{world.name.lower()}.npz", arrays, card)
    return card
