"""A training run of networks: batches that follow from the seed, checkpoints, and a stop when numbers run wild."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from selectenv.checks import check_int, check_real
from selectenv.errors import DivergedError, WeightsFileError
from selectenv.io.weights import load_weights, save_weights
from selectenv.kernels.network.backprop import Adam, new_pass
from selectenv.kernels.network.cnn import HIDDEN, Layers, shapes, split
from selectenv.kernels.network.patches import Patches, new_batch
from selectenv.kernels.network.updates import Network, Rule, Transitions, cloning_updates, iql_updates
from selectenv.streams import Identity, generator
from selectenv.typing import FloatArray, IntArray

STRETCH = 250
"""Updates between two looks at a run; batches are drawn for so many at a time."""
CHECKPOINT_EVERY = 10 * STRETCH
VERSION = 1
"""Raised when the same seed comes to give other weights: older checkpoints are then worth nothing."""


@dataclass(frozen=True)
class Settings:
    """How networks are trained; these are the laptop's."""

    updates: int = 10_000
    rate: float = 1e-3
    """Learning rate of Adam."""
    target_step: float = 0.02
    """How far target networks move towards their leaders, an update."""
    expectile: float = 0.7
    batch: int = 256

    def __post_init__(self) -> None:
        """Refuse what trains nothing."""
        check_int("updates", self.updates)
        check_int("the size of a batch", self.batch)
        check_real("the learning rate", self.rate, "(0, inf)")
        check_real("the target step", self.target_step, "[0, 1]")
        check_real("the expectile", self.expectile, "(0, 1)")


Watch = Callable[[int, "Run"], None]
"""Called with the number of updates made, and the run."""


class Run(Protocol):
    """Networks in training."""

    networks: dict[str, Network]
    """By name; what a checkpoint holds."""
    losses: FloatArray
    """Means over the last updates."""

    def advance(self, chosen: IntArray, done: int) -> None:
        """Make an update for each row of chosen transitions [updates, size], after ``done`` others."""


def train(
    run: Run,
    pool: IntArray,
    settings: Settings,
    seed: int,
    *identity: Identity,
    checkpoint: Path | None = None,
    watch: Watch | None = None,
) -> None:
    """Train to the end on batches of the transitions in ``pool``; the same seed and identity give the same weights.

    Args:
        run: fresh networks.
        pool: transitions to draw from, by number.
        settings: how many updates, and of what size.
        seed: of the batches.
        *identity: of the run.
        checkpoint: file to go on from and to write every so often; a finished run stays there too.
        watch: looks at the run as it goes.

    Raises:
        DivergedError: a loss is no finite number.
        WeightsFileError: the checkpoint is damaged, or of another run.
    """
    done = 0 if checkpoint is None or not checkpoint.exists() else restore(run, checkpoint)
    if done and watch is not None:
        watch(done, run)  # who was interrupted while looking looks again
    while done < settings.updates:
        count = min(STRETCH, settings.updates - done)
        draw = generator(seed, *identity, "batches", done)
        run.advance(pool[draw.integers(len(pool), size=(STRETCH, settings.batch))[:count]], done)
        done += count
        weights = (network.flat for network in run.networks.values())
        if not np.isfinite(run.losses).all() or not all(np.isfinite(flat).all() for flat in weights):
            raise DivergedError(
                f"training ran wild before update {done:,}: losses {run.losses}; a smaller learning rate than "
                f"{settings.rate:g} may help, and rewards of moderate size"
            )
        if checkpoint is not None and (done % CHECKPOINT_EVERY == 0 or done == settings.updates):
            save_run(run, checkpoint, done, finished=done == settings.updates)
        if watch is not None:
            watch(done, run)


def save_run(run: Run, path: Path, done: int, *, finished: bool) -> None:
    """Write a run to a file, whole or not at all; a finished one needs no memory of its optimiser."""
    arrays = {f"{name}.flat": network.flat for name, network in run.networks.items()}
    if not finished:
        for name, network in run.networks.items():
            arrays |= {f"{name}.{part}": array for part, array in network.memory._asdict().items()}
    card = {"run": type(run).__name__, "done": done, "finished": finished}
    save_weights(path, arrays, card, compressed=False)


def restore(run: Run, path: str | os.PathLike[str]) -> int:
    """Set fresh networks to where a file stopped; return the updates made."""
    arrays, card = load_weights(path)
    try:
        if card["run"] != type(run).__name__:
            raise KeyError("run")
        for name, network in run.networks.items():
            parts = {"flat": network.flat} | ({} if card["finished"] else network.memory._asdict())
            for part, into in parts.items():
                found = arrays[f"{name}.{part}"]
                if found.shape != into.shape or found.dtype != into.dtype:
                    raise KeyError(part)
                into[:] = found
        return int(card["done"])
    except (KeyError, ValueError, TypeError) as error:
        raise WeightsFileError(f"{os.fspath(path)!r} is no checkpoint of this training run ({error})") from None


def new_network(channels: int, outputs: int, rng: np.random.Generator) -> Network:
    """Return a network to be trained; weights are drawn as is usual, uniformly within 1 / sqrt(inputs) of zero."""
    flat = np.empty(sum(int(np.prod(shape)) for shape in shapes(channels, outputs)), np.float32)
    layers = split(flat, channels, outputs)
    inputs = (9 * channels, 9 * channels, int(np.prod(layers.hidden.shape[:3])), int(np.prod(layers.hidden.shape[:3])))
    for part, fan in zip(layers, (*inputs, HIDDEN, HIDDEN), strict=True):
        part[:] = rng.uniform(-1, 1, part.shape) / np.sqrt(fan)
    slopes = np.zeros_like(flat)
    return Network(
        flat, layers, slopes, split(slopes, channels, outputs), Adam(np.zeros_like(flat), np.zeros_like(flat))
    )


def _target(leader: Network, channels: int, outputs: int) -> Network:
    """Return a network that starts as its leader and has no gradient of its own."""
    flat, nothing = leader.flat.copy(), np.zeros(0, np.float32)
    layers = split(flat, channels, outputs)
    return Network(flat, layers, nothing, layers, Adam(nothing, nothing))


class IqlRun:
    """Implicit Q-learning: two action values, their targets, and the value."""

    def __init__(
        self, data: Transitions, patches: Patches, channels: int, n_actions: int, gamma: float, settings: Settings,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """Prepare fresh networks, drawn from ``rng``."""
        self._data, self._patches = data, patches
        first, second = new_network(channels, n_actions, rng), new_network(channels, n_actions, rng)
        self._value = new_network(channels, 1, rng)
        self._targets = _target(first, channels, n_actions), _target(second, channels, n_actions)
        self._leaders = first, second
        self.networks = {
            "first": first, "second": second, "value": self._value, "first target": self._targets[0],
            "second target": self._targets[1],
        }  # fmt: skip
        self._batches = new_batch(settings.batch, patches), new_batch(settings.batch, patches)
        self._passes = new_pass(settings.batch, first.layers), new_pass(settings.batch, self._value.layers)
        self._rule = Rule(gamma, settings.expectile, settings.rate, settings.target_step)
        self.losses = np.zeros(2)

    @property
    def action_values(self) -> tuple[Layers, Layers]:
        """The two networks that say what actions are worth."""
        return self._leaders[0].layers, self._leaders[1].layers

    def advance(self, chosen: IntArray, done: int) -> None:
        """Make an update for each row of chosen transitions [updates, size], after ``done`` others."""
        self.losses = iql_updates(
            *self._leaders, self._value, self._targets, self._data, chosen, done, self._rule, self._patches,
            self._batches, self._passes,
        )  # fmt: skip


class CloningRun:
    """Behaviour cloning: one network whose outputs are logits of the data's actions."""

    def __init__(
        self, data: Transitions, patches: Patches, channels: int, n_actions: int, settings: Settings,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """Prepare a fresh network, drawn from ``rng``."""
        self._data, self._patches, self._rate = data, patches, settings.rate
        self._network = new_network(channels, n_actions, rng)
        self.networks = {"logits": self._network}
        self._batch = new_batch(settings.batch, patches)
        self._pass = new_pass(settings.batch, self._network.layers)
        self.losses = np.zeros(1)

    @property
    def logits(self) -> Layers:
        """The network."""
        return self._network.layers

    def advance(self, chosen: IntArray, done: int) -> None:
        """Make an update for each row of chosen transitions [updates, size], after ``done`` others."""
        self.losses = cloning_updates(
            self._network, self._data, chosen, done, self._rate, self._patches, self._batch, self._pass
        )
