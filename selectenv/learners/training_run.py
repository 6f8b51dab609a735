"""Training loop for neural learners: seeded mini-batches, checkpoints, divergence checks."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from selectenv.checks import check_flag, check_int, check_real
from selectenv.errors import DivergedError, WeightsFileError
from selectenv.io.stop_requests import stop_if_requested
from selectenv.io.weights import load_weights, save_weights
from selectenv.kernels.network.updates import Network, Rule, Transitions, cloning_updates, iql_updates
from selectenv.learners.architectures import Architecture, layers_of, new_network, target_network
from selectenv.policies import ActingNetwork, CloningPolicy, GreedyPolicy, ValuedPolicy
from selectenv.streams import Identity, generator
from selectenv.typing import Float32Array, FloatArray, IntArray

STRETCH = 250
"""Updates between two checks of a run; mini-batches are drawn for this many updates at a time."""
CHECKPOINT_EVERY = 10 * STRETCH
LAST_PART = Fraction(2, 5)
"""Share of the updates, counted from the end, over which evaluations are spread."""
VERSION = 3
"""Bump this when the same seed produces different weights: older checkpoints are then ignored."""


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of training; the worlds have their own, see `Preset`."""

    updates: int = 40_000
    rate: float = 1e-3
    """Learning rate of Adam."""
    target_step: float = 0.005
    """Share by which target networks move towards the online networks in one update."""
    expectile: float = 0.7
    batch: int = 256
    evaluations: int = 1
    """Evaluations of a training run, equally spaced over its last part; the last one is at its end."""
    decay: bool = False
    """Whether the learning rate falls linearly to 0 over a run."""

    def __post_init__(self) -> None:
        """Reject values that train nothing."""
        check_int("updates", self.updates)
        check_int("evaluations", self.evaluations)
        check_int("the size of a batch", self.batch)
        check_real("the learning rate", self.rate, "(0, inf)")
        check_real("the target step", self.target_step, "[0, 1]")
        check_real("the expectile", self.expectile, "(0, 1)")
        check_flag("decay", self.decay)

    @property
    def identity(self) -> dict[str, float]:
        """What identifies a training run, ready for JSON.

        Without decay the field is left out, so that checkpoints from before it was added stay valid.
        """
        return {name: value for name, value in asdict(self).items() if name != "decay" or value}

    def rate_after(self, done: int) -> float:
        """Return the learning rate after ``done`` updates of a run."""
        return self.rate * (1 - done / self.updates) if self.decay else self.rate

    @property
    def evaluated_at(self) -> tuple[int, ...]:
        """The numbers of updates after which a run is evaluated: ten evaluations are at 64, 68, ..., 100 % of them."""
        shares = (1 - LAST_PART * Fraction(k, self.evaluations) for k in reversed(range(self.evaluations)))
        return tuple(math.ceil(share * self.updates) for share in shares)


Watch = Callable[[int, "Run"], None]
"""Called with the number of updates made, and the run."""


Weights = tuple[Float32Array, ...]
"""Parameters of the networks that a policy consists of."""


class Run(Protocol):
    """Networks in training."""

    networks: dict[str, Network]
    """The networks by name, as a checkpoint holds them."""
    acting: tuple[str, ...]
    """The names of the networks that the policy consists of."""
    losses: FloatArray
    """Mean losses of the last updates."""

    @property
    def policy(self) -> ValuedPolicy:
        """The policy of the networks as they are now."""

    def policy_of(self, weights: Weights) -> ValuedPolicy:
        """Return the policy of acting networks with other weights."""

    def advance(self, chosen: IntArray, done: int, rate: float | None = None) -> None:
        """Make one update per row of chosen transitions [updates, size], after ``done`` earlier ones.

        Args:
            chosen: the transitions.
            done: number of earlier updates.
            rate: the learning rate; by default that of the settings.
        """


def train(
    run: Run,
    pool: IntArray,
    settings: Settings,
    seed: int,
    *identity: Identity,
    begun: int = 0,
    checkpoint: Path | None = None,
    keep_memory: bool = False,
    watch: Watch | None = None,
) -> tuple[ValuedPolicy, ...]:
    """Train to the end on batches of the transitions in ``pool``; the same seed and identity give the same weights.

    Args:
        run: fresh networks, or those of an earlier run.
        pool: transitions to draw from, by number.
        settings: the number of updates and the size of a batch.
        seed: seed of the mini-batches.
        *identity: identity of the run.
        begun: number of updates that the networks have made already.
        checkpoint: file to resume from and to write regularly; a finished run stays there too.
        keep_memory: whether a finished run keeps the state of its optimisers, with which it can be continued.
        watch: called after every stretch of updates.

    Returns:
        The policies after the numbers of updates at which a run is evaluated, see `Settings`.

    Raises:
        DivergedError: a loss is not finite.
        WeightsFileError: the checkpoint is damaged, or belongs to another run.
    """
    *points, end = (begun + updates for updates in settings.evaluated_at)
    done, kept = (begun, []) if checkpoint is None or not checkpoint.exists() else restore(run, checkpoint)
    if done > begun and watch is not None:
        watch(done, run)  # repeat the callback that was interrupted
    while done < end:
        first, last = done, min(done + STRETCH, end)
        draw = generator(seed, *identity, "batches", first)
        chosen = pool[draw.integers(len(pool), size=(STRETCH, settings.batch))[: last - first]]
        rate = settings.rate_after(first - begun)
        while done < last:
            until = min([last, *(point for point in points if point > done)])
            run.advance(chosen[done - first : until - first], done, rate)
            done = until
            kept += [_acting_weights(run) for point in points if point == done]
        weights = (network.flat for network in run.networks.values())
        if not np.isfinite(run.losses).all() or not all(np.isfinite(flat).all() for flat in weights):
            raise DivergedError(
                f"training diverged before update {done:,}: losses {run.losses}; a smaller learning rate than "
                f"{settings.rate:g} or rewards of moderate size may help"
            )
        if checkpoint is not None and ((done - begun) % CHECKPOINT_EVERY == 0 or done == end):
            save_run(run, checkpoint, done, kept, with_memory=keep_memory or done < end)
            stop_if_requested()
        if watch is not None:
            watch(done, run)
    return (*(run.policy_of(weights) for weights in kept), run.policy)


def _acting_weights(run: Run) -> Weights:
    return tuple(run.networks[name].flat.copy() for name in run.acting)


def save_run(run: Run, path: Path, done: int, kept: Sequence[Weights], *, with_memory: bool) -> None:
    """Write a run to a file atomically.

    Args:
        run: the run.
        path: the file.
        done: number of updates made.
        kept: the acting networks at earlier evaluations.
        with_memory: whether the state of the optimisers is needed.
    """
    arrays = {f"{name}.flat": network.flat for name, network in run.networks.items()}
    arrays |= {
        f"{name}.{i}": flat for i, weights in enumerate(kept) for name, flat in zip(run.acting, weights, strict=True)
    }
    if with_memory:
        for name, network in run.networks.items():
            arrays |= {f"{name}.{part}": array for part, array in network.memory._asdict().items()}
    card = {"run": type(run).__name__, "done": done, "kept": len(kept), "memory": with_memory}
    save_weights(path, arrays, card, compressed=False)


def restore(run: Run, path: str | os.PathLike[str]) -> tuple[int, list[Weights]]:
    """Set fresh networks to the state of a checkpoint; return the number of updates made, and `save_run`'s ``kept``."""
    arrays, card = load_weights(path)
    try:
        if card["run"] != type(run).__name__:
            raise KeyError("run")
        for name, network in run.networks.items():
            parts = {"flat": network.flat} | (network.memory._asdict() if card["memory"] else {})
            for part, into in parts.items():
                into[:] = _like(arrays[f"{name}.{part}"], into)
        kept = [
            tuple(_like(arrays[f"{name}.{i}"], run.networks[name].flat) for name in run.acting)
            for i in range(card["kept"])
        ]
        return int(card["done"]), kept
    except (KeyError, ValueError, TypeError) as error:
        raise WeightsFileError(f"{os.fspath(path)!r} is not a checkpoint of this training run ({error})") from None


def _like(found: Any, expected: Float32Array) -> Float32Array:
    """Return an array of a checkpoint if it has the expected shape and type."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise ValueError(f"an array of shape {found.shape} instead of {expected.shape}")
    array: Float32Array = found
    return array


def copy_networks(run: Run, networks: Mapping[str, Network]) -> None:
    """Set the networks of a run, and the state of their optimisers, to those of another run."""
    for name, network in run.networks.items():
        network.flat[:] = networks[name].flat
        for mine, theirs in zip(network.memory, networks[name].memory, strict=True):
            mine[:] = theirs


def acting_network(architecture: Architecture, network: Network, flat: Float32Array) -> ActingNetwork:
    """Return the network for policies that has the shape of ``network`` and the parameters ``flat``."""
    return architecture.acting(layers_of(architecture, flat, len(network.layers.output_bias)))


class IqlRun:
    """Implicit Q-learning: two action values, their targets, and the value."""

    acting: tuple[str, ...] = ("first", "second")

    def __init__(
        self,
        data: Transitions,
        architecture: Architecture,
        n_actions: int,
        gamma: float,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        """Prepare fresh networks, drawn from ``rng``."""
        self._data, self._architecture = data, architecture
        first, second = new_network(architecture, n_actions, rng), new_network(architecture, n_actions, rng)
        self._value = new_network(architecture, 1, rng)
        self._targets = target_network(architecture, first), target_network(architecture, second)
        self._leaders = first, second
        self.networks = {
            "first": first,
            "second": second,
            "value": self._value,
            "first target": self._targets[0],
            "second target": self._targets[1],
        }
        self._observations = architecture.observations
        self._batches = architecture.new_batch(settings.batch), architecture.new_batch(settings.batch)
        self._pass = architecture.new_pass(settings.batch)
        self._rule = Rule(gamma, settings.expectile, settings.rate, settings.target_step)
        self.losses = np.zeros(2)

    @property
    def policy(self) -> GreedyPolicy:
        """The greedy policy of the networks as they are now."""
        networks = tuple(self._architecture.acting(layers) for layers in self.action_values)
        return GreedyPolicy(networks, self._architecture.acting(self._value.layers))

    def policy_of(self, weights: Weights) -> GreedyPolicy:
        """Return the greedy policy of action values with other weights."""
        return GreedyPolicy(
            tuple(
                acting_network(self._architecture, leader, flat)
                for leader, flat in zip(self._leaders, weights, strict=True)
            )
        )

    @property
    def action_values(self) -> tuple[Any, Any]:
        """The layers of the two action-value networks."""
        return self._leaders[0].layers, self._leaders[1].layers

    def advance(self, chosen: IntArray, done: int, rate: float | None = None) -> None:
        """Make one update per row of chosen transitions [updates, size]; see `Run`."""
        self.losses = iql_updates(
            *self._leaders,
            self._value,
            self._targets,
            self._data,
            chosen,
            done,
            self._rule if rate is None else self._rule._replace(rate=rate),
            self._observations,
            self._batches,
            self._pass,
        )


class CloningRun:
    """Behaviour cloning: one network whose outputs are logits of the data's actions."""

    acting: tuple[str, ...] = ("logits",)

    def __init__(
        self,
        data: Transitions,
        architecture: Architecture,
        n_actions: int,
        settings: Settings,
        rng: np.random.Generator,
        *,
        most_likely: bool = False,
    ) -> None:
        """Prepare a fresh network, drawn from ``rng``.

        With ``most_likely``, the policy takes the most likely action instead of sampling one.
        """
        self._data, self._architecture, self._rate, self._most_likely = data, architecture, settings.rate, most_likely
        self._network = new_network(architecture, n_actions, rng)
        self.networks = {"logits": self._network}
        self._observations = architecture.observations
        self._batch, self._pass = architecture.new_batch(settings.batch), architecture.new_pass(settings.batch)
        self.losses = np.zeros(1)

    @property
    def policy(self) -> CloningPolicy:
        """The policy of the network as it is now."""
        return CloningPolicy(self._architecture.acting(self.logits), self._most_likely)

    def policy_of(self, weights: Weights) -> CloningPolicy:
        """Return the policy of a network with other weights."""
        return CloningPolicy(acting_network(self._architecture, self._network, weights[0]), self._most_likely)

    @property
    def logits(self) -> Any:
        """The layers of the network."""
        return self._network.layers

    def advance(self, chosen: IntArray, done: int, rate: float | None = None) -> None:
        """Make one update per row of chosen transitions [updates, size]; see `Run`."""
        used = self._rate if rate is None else rate
        self.losses = cloning_updates(
            self._network, self._data, chosen, done, used, self._observations, self._batch, self._pass
        )
