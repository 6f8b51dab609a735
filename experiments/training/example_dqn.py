"""Train an expert by the published recipe: the DQN that MinAtar ships as an example, compiled.

One game, all six actions, one update per frame after the first 5,000 frames. The published experts are the last weights
after 5,000,000 frames. A run can be interrupted at any time: the same command resumes it from its last checkpoint, and
a resumed run gives the same weights as an uninterrupted one.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.training.expert_returns import (
    FINAL_EPISODES,
    FINAL_SEED,
    expert_returns,
    measured,
    mixture_counts,
)
from experiments.training.game_state import restore_game, save_game
from selectenv.checks import check_int
from selectenv.domains.minatar.experts import NetworkExpert
from selectenv.domains.minatar.games import MinAtarWorld, stream_keys
from selectenv.errors import WeightsFileError
from selectenv.io.progress import progress
from selectenv.io.stop_requests import stop_if_requested
from selectenv.io.weights import load_weights, save_weights
from selectenv.kernels.network.backprop import new_pass
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, SIDE, Layers
from selectenv.kernels.network.dqn import (
    MOST_WORDS,
    PLACES,
    DqnRule,
    PatchTable,
    Replay,
    choose_action,
    dqn_update,
    store_image,
)
from selectenv.kernels.network.patches import Patches, new_batch
from selectenv.learners.architectures import ImageArchitecture, new_network, target_network
from selectenv.streams import generator
from selectenv.typing import Float32Array

N_ACTIONS = 6
CHECKPOINT_EVERY = 250_000
KEEP_EVERY = 1_000_000
"""Frames after which the weights are kept in a file of their own."""
CURVE_EVERY = 100_000
VERSION = 2
"""Bump this when the same seed produces different weights: checkpoints of another version are refused."""


@dataclass(frozen=True)
class DqnSettings:
    """Hyperparameters; the defaults are the published ones."""

    frames: int = 5_000_000
    replay: int = 100_000
    """Transitions that are kept to learn from."""
    random_frames: int = 5_000
    """Frames of random actions before the first update."""
    batch: int = 32
    rate: float = 0.00025
    decay: float = 0.95
    """Decay of the running means of RMSprop."""
    epsilon: float = 0.01
    """Added to the root in the denominator of RMSprop."""
    gamma: float = 0.99
    target_every: int = 1_000
    """Updates between two copies to the target network."""
    exploration_frames: int = 100_000
    """Frames over which exploration falls from 1 to its final value."""
    final_exploration: float = 0.1


class DqnRun:
    """A training run: the game, the networks, the replay ring and the learning curve."""

    def __init__(self, game: str, seed: int, settings: DqnSettings) -> None:
        """Start a run with fresh networks."""
        self.world, self.seed, self.settings = MinAtarWorld(game), check_int("seed", seed, 0), settings
        self.channels = self.world.shape[2]
        architecture = ImageArchitecture(self.channels)
        self.online = new_network(architecture, N_ACTIONS, generator(seed, "expert", game, "weights"))
        self.target = target_network(architecture, self.online)
        self.frame = self.updates = 0
        self.random = generator(seed, "expert", game, "actions").integers(2**63, size=1).astype(np.uint64)
        ring = settings.replay + 1
        self.images = np.zeros((ring, -(-int(np.prod(self.world.shape)) // 8)), np.uint8)
        self.replay = Replay(
            np.zeros((ring, PLACES), np.int32),
            np.zeros(ring, np.int32),
            np.zeros(ring, np.float32),
            np.zeros(ring, np.bool_),
        )
        self.score, self.finished = 0.0, [0.0, 0.0]
        self.curve: list[tuple[int, float]] = []
        """(frames, mean return of the episodes that ended in the last `CURVE_EVERY` frames, with exploration)"""
        self._room = 0
        self._passes = new_pass(1), new_pass(settings.batch)
        self._rule = DqnRule(settings.gamma, settings.rate, settings.decay, settings.epsilon)
        self.game = self.world.new_game()
        self.game.seed(stream_keys(1, seed, "expert", game)[0].view(np.uint32))
        self._restart()
        self.number_patches(1 << 14)
        self._store(0)

    def number_patches(self, room: int = 0) -> None:
        """Make a table with room for ``room`` patches, by default as many as before, and fill it from the ring."""
        self._room = room or self._room
        self._table = PatchTable(
            np.zeros(self._room, np.uint64),
            np.zeros(self._room, np.uint64),
            np.full(4 * self._room, -1, np.int32),
            np.zeros(self._room + 1, np.int64),
            np.zeros((self._room + PLACES) * MOST_WORDS, np.uint32),
            np.zeros(1, np.int64),
        )
        self._patches = Patches(self.replay.number, np.zeros(PLACES, np.int32), self._table.first, self._table.cells)
        one, many = (new_batch(size, self._patches, MOST_WORDS) for size in (1, self.settings.batch))
        self._batches = one, many
        for slot in range(min(self.frame + 1, len(self.images))):
            store_image(self.images[slot], self.channels, slot, self.replay, self._table)
            if self._is_full():
                return self.number_patches(2 * self._room)
        return None

    def _is_full(self) -> bool:
        return int(self._table.known[0]) + PLACES > self._room

    def _restart(self) -> None:
        """Begin an episode; MinAtar would keep the last action of the previous one for its sticky actions."""
        self.game.last_action = 0
        self.game.reset()

    def _store(self, frame: int) -> None:
        slot = frame % len(self.images)
        self.images[slot] = np.packbits(self.game.env.state())
        store_image(self.images[slot], self.channels, slot, self.replay, self._table)

    @property
    def exploration(self) -> float:
        """Probability of a random action in the next frame."""
        rule = self.settings
        done = (self.frame - rule.random_frames) / rule.exploration_frames
        return float(np.clip(1 + done * (rule.final_exploration - 1), rule.final_exploration, 1))

    def advance(self) -> None:
        """Play one frame and, after the first random frames, make one update."""
        rule, ring, slot = self.settings, len(self.images), self.frame % len(self.images)
        action = choose_action(
            self.online, self._patches, self._batches[0], self._passes[0], slot, self.exploration, self.random
        )
        reward, terminated = self.game.act(action)
        if self.world.name == "Seaquest" and self.game.env.diver_count < 0:
            self.game.env.diver_count = 0
        self.replay.action[slot], self.replay.reward[slot], self.replay.terminated[slot] = action, reward, terminated
        self.score += float(reward)
        if terminated:
            self.finished = [self.finished[0] + self.score, self.finished[1] + 1]
            self.score = 0.0
            self._restart()
        self.frame += 1
        self._store(self.frame)
        if self._is_full():
            used = len(np.unique(self.replay.number[: self.frame + 1]))
            self.number_patches(self._room if 2 * used < self._room else 2 * self._room)
        if self.frame > rule.random_frames:
            self.updates += 1
            transitions = max(0, self.frame - ring + 1), self.frame
            dqn_update(
                self.online,
                self.target,
                self.replay,
                self._patches,
                self._batches[1],
                self._passes[1],
                transitions,
                self.random,
                self._rule,
            )
            if self.updates % rule.target_every == 0:
                self.target.flat[:] = self.online.flat
        if self.frame % CURVE_EVERY == 0:
            total, episodes = self.finished
            self.curve.append((self.frame, total / max(episodes, 1)))
            self.finished = [0.0, 0.0]

    @property
    def parameters(self) -> dict[str, Float32Array]:
        """Parameters and state of the optimiser, as a checkpoint holds them."""
        memory = self.online.memory
        return {"online": self.online.flat, "target": self.target.flat, "mean": memory.first, "square": memory.second}

    @property
    def weights(self) -> dict[str, NDArray[Any]]:
        """The weights of the online network, as an expert's file holds them."""
        return as_expert(self.online.layers)


def as_expert(layers: Layers) -> dict[str, NDArray[Any]]:
    """Return the weights of a network in the layout of an expert's file, which is PyTorch's."""
    inner = SIDE - 2
    arrays = {
        "0.weight": layers.filters.transpose(3, 0, 1, 2),
        "0.bias": layers.filter_bias,
        "3.weight": layers.hidden.transpose(3, 2, 0, 1).reshape(HIDDEN, FILTERS * inner * inner),
        "3.bias": layers.hidden_bias,
        "5.weight": layers.output,
        "5.bias": layers.output_bias,
    }
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def save_checkpoint(run: DqnRun, path: Path) -> None:
    """Write everything that is needed to resume to one file, atomically."""
    filled = min(run.frame + 1, len(run.images))
    arrays: dict[str, NDArray[Any]] = {
        **run.parameters,
        "random": run.random,
        "images": run.images[:filled],
        "action": run.replay.action[:filled].astype(np.uint8),
        "reward": run.replay.reward[:filled],
        "terminated": run.replay.terminated[:filled],
    }
    card = {
        "run": _identity(run),
        "frame": run.frame,
        "updates": run.updates,
        "score": run.score,
        "finished": run.finished,
        "curve": run.curve,
        "game": save_game(run.game),
    }
    save_weights(path, arrays, card, compressed=False)


def load_checkpoint(run: DqnRun, path: Path) -> None:
    """Set a fresh run to the state of a checkpoint.

    Raises:
        WeightsFileError: the checkpoint is damaged or belongs to another run.
    """
    arrays, card = load_weights(path)
    if card.get("run") != _identity(run):
        raise WeightsFileError(
            f"the checkpoint {str(path)!r} belongs to another run ({card.get('run')}, not {_identity(run)}); delete it "
            "to start over"
        )
    filled = len(arrays["images"])
    for name, flat in run.parameters.items():
        flat[:] = arrays[name]
    run.random[:] = arrays["random"]
    run.images[:filled] = arrays["images"]
    run.replay.action[:filled], run.replay.reward[:filled] = arrays["action"], arrays["reward"]
    run.replay.terminated[:filled] = arrays["terminated"]
    run.frame, run.updates, run.score = int(card["frame"]), int(card["updates"]), float(card["score"])
    run.finished = [float(value) for value in card["finished"]]
    run.curve = [(int(frames), float(mean)) for frames, mean in card["curve"]]
    restore_game(run.game, card["game"])
    run.number_patches()


def _identity(run: DqnRun) -> dict[str, Any]:
    settings = asdict(run.settings)
    del settings["frames"]  # a finished run can be extended
    return {"version": VERSION, "game": run.world.name, "seed": run.seed, "settings": settings}


def train_example_dqn(
    game: str,
    folder: Path,
    *,
    seed: int = 0,
    settings: DqnSettings | None = None,
    checkpoint_every: int = CHECKPOINT_EVERY,
    keep_every: int = KEEP_EVERY,
    show: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> DqnRun:
    """Train, or resume training, up to the frames of the settings.

    ``folder`` receives the checkpoint, and ``weights-<frames>.npz`` after every ``keep_every`` frames and at the end.
    """
    rule = DqnSettings() if settings is None else settings
    folder.mkdir(parents=True, exist_ok=True)
    run, path = DqnRun(game, seed, rule), folder / "checkpoint.npz"
    if path.exists():
        load_checkpoint(run, path)
        show(f"{game}, seed {seed}: resuming from {run.frame:,} frames")
    for _ in progress(range(run.frame, rule.frames), rule.frames - run.frame, f"expert of {game}"):
        run.advance()
        if run.frame % CURVE_EVERY == 0:
            show(f"{game}, seed {seed}: {run.frame:>9,} frames, return {run.curve[-1][1]:.2f} while exploring")
        if run.frame % keep_every == 0 or run.frame == rule.frames:
            card = {"game": game, "actions": "all", "recipe": "example-dqn", "seed": seed, "frames": run.frame}
            save_weights(folder / f"weights-{run.frame}.npz", run.weights, {**card, "curve": run.curve})
        if run.frame % checkpoint_every == 0 or run.frame == rule.frames:
            save_checkpoint(run, path)
            stop_if_requested()
    return run


def finish_expert(run: DqnRun, path: Path) -> dict[str, Any]:
    """Measure the last weights of a run, write them with their card, and return the card."""
    world = run.world
    about = {
        "game": world.name,
        "actions": "all",
        "recipe": "example-dqn",
        "seed": run.seed,
        "steps_trained": run.frame,
    }
    expert = NetworkExpert(run.weights, about, world)
    card = {
        **about,
        "command": f"selectenv train-expert {world.name} --steps {run.frame} --seed {run.seed}",
        **measured(expert_returns(world, expert, FINAL_EPISODES, run.seed + FINAL_SEED)),
        "settings": asdict(run.settings),
        "curve": run.curve,
        "mixtures": mixture_counts(world, expert),
    }
    save_weights(path, run.weights, card)
    return card
