"""Benchmark of training networks: one update of implicit Q-learning, beside PyTorch and bare matrix products.

Everything runs on one thread, and processor time is measured, which other programs disturb less. The bare products are
the matrix products of a dense update, without activations and optimiser.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.minatar.games import GAMES
from selectenv.errors import MissingExtraError
from selectenv.factory import make_problem
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, SIDE
from selectenv.kernels.network.updates import Transitions
from selectenv.learners.architectures import architecture_of
from selectenv.learners.training_run import IqlRun, Settings
from selectenv.streams import generator
from selectenv.typing import IntArray
from selectenv.worlds import WORLDS

try:
    import torch
    from torch.nn import functional

    from experiments.training.example_dqn import DqnRun, DqnSettings
    from experiments.training.small_cnn import SmallCnn, to_tensor
except ImportError as error:
    raise MissingExtraError(
        f"the comparison with PyTorch needs it ({error}): pip install 'selectenv[bench]'"
    ) from error

UPDATES, FIRST_UPDATES = 200, 1_000
FRAMES, FIRST_FRAMES = 2_000, 8_000
GAMMA = 0.99
LIMITS = {"Breakout": (2.5, 3_000), "Freeway": (15.0, 1_500), "Seaquest": (7.0, 1_500), "Asterix": (5.0, 1_500)}
"""Most milliseconds of an update, and fewest frames per second of the training of experts, that we accept."""


def bench_networks() -> None:
    """Print the time of one update in each game, of one training run at both scales, and of the training of experts."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows, hours, experts = [], [], []
    try:
        for game in GAMES:
            data = make_problem(game, learner="iql").dataset
            ours, naive, products = 1e3 * own_seconds(data), 1e3 * naive_seconds(data), 1e3 * product_seconds(data)
            most, fewest = LIMITS[game]
            times = (f"{ours:.1f}", f"{most:g}", f"{naive:.1f}", f"{naive / ours:.1f}")
            rows.append((game, *times, f"{products:.1f}", f"{ours / products:.2f}"))
            experts.append((game, f"{frames_per_second(game):,.0f}", f"{fewest:,}"))
            learning = WORLDS[game].defaults.learning
            hours.append((game, *_run_time(learning.fast.updates, ours), *_run_time(learning.paper.updates, ours)))
    finally:
        torch.set_num_threads(threads)
    print(f"\nOne update of implicit Q-learning, {Settings().batch} transitions, one thread (ms)\n")
    print(table(("game", "here", "limit", "PyTorch", "times faster", "bare products", "of the products"), rows))
    print("\nOne training run\n")
    print(table(("game", "fast updates", "takes", "paper updates", "takes"), hours))
    print("\nTraining of experts by the example DQN, one thread\n")
    print(table(("game", "frames per second", "limit"), experts))


def _best_of(times: int, work: Callable[[], object]) -> float:
    return best_of(times, work, time.process_time)


def _run_time(updates: int, milliseconds: float) -> tuple[str, str]:
    return f"{updates:,}", f"{updates * milliseconds / 60_000:.1f} min"


def frames_per_second(game: str) -> float:
    """Return the frames per second of the example DQN, one update per frame, after its first random frames."""
    run = DqnRun(game, 0, DqnSettings())

    def play(frames: int) -> None:
        for _ in range(frames):
            run.advance()

    play(FIRST_FRAMES)
    return FRAMES / _best_of(3, lambda: play(FRAMES))


def own_seconds(data: OfflineDataset) -> float:
    """Return the seconds of one update of our compiled loop, after the first ones: active units become fewer."""
    assert data.images is not None
    run = IqlRun(ordinary(data), architecture_of(data), data.n_actions, GAMMA, Settings(), generator(0, "bench"))
    chosen = np.random.default_rng(0).integers(len(data), size=(FIRST_UPDATES + UPDATES, Settings().batch))
    run.advance(chosen[:FIRST_UPDATES], 0)
    return _best_of(5, lambda: run.advance(chosen[FIRST_UPDATES:], FIRST_UPDATES)) / UPDATES


def ordinary(data: OfflineDataset) -> Transitions:
    """Return the transitions with all rewards revealed."""
    assert data.hidden_reward is not None
    return Transitions(data.state, data.action, data.next_state, data.hidden_reward.astype(np.float32))


class TorchIql:
    """Implicit Q-learning in idiomatic PyTorch: autograd and one Adam optimiser per network."""

    def __init__(self, channels: int, n_actions: int, settings: Settings) -> None:
        """Initialise the networks."""
        self.first, self.second = SmallCnn(channels, n_actions), SmallCnn(channels, n_actions)
        self.value = SmallCnn(channels, 1)
        self.targets = SmallCnn(channels, n_actions), SmallCnn(channels, n_actions)
        for target, leader in zip(self.targets, (self.first, self.second), strict=True):
            target.load_state_dict(leader.state_dict())
        self._settings = settings
        self._optimisers = [
            torch.optim.Adam(network.parameters(), settings.rate) for network in (self.first, self.second, self.value)
        ]

    def update(self, states: Any, actions: Any, rewards: Any, following: Any, goes_on: Any) -> tuple[float, float]:
        """Make one update on a batch of tensors; return the value loss and the sum of both action-value losses."""
        column = actions[:, None]
        with torch.no_grad():
            goal = rewards + GAMMA * goes_on * self.value(following)[:, 0]
            low = torch.minimum(*(target(states).gather(1, column)[:, 0] for target in self.targets))
        above = low - self.value(states)[:, 0]
        weight = torch.where(above > 0, self._settings.expectile, 1 - self._settings.expectile)
        value_loss = (weight * above**2).mean()
        action_losses = [
            functional.mse_loss(network(states).gather(1, column)[:, 0], goal) for network in (self.first, self.second)
        ]
        loss = value_loss + action_losses[0] + action_losses[1]
        for optimiser in self._optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in self._optimisers:
            optimiser.step()
        with torch.no_grad():
            for target, leader in zip(self.targets, (self.first, self.second), strict=True):
                for mine, other in zip(target.parameters(), leader.parameters(), strict=True):
                    mine.lerp_(other, self._settings.target_step)
        return float(value_loss.detach()), float((action_losses[0] + action_losses[1]).detach())


def tensors(data: OfflineDataset, chosen: IntArray) -> tuple[Any, ...]:
    """Return a batch of transitions as `TorchIql.update` takes it."""
    assert data.images is not None
    assert data.hidden_reward is not None
    following = data.next_state[chosen].astype(np.int64)
    return (
        to_tensor(data.images[data.state[chosen].astype(np.int64)]),
        torch.from_numpy(data.action[chosen].astype(np.int64)),
        torch.from_numpy(data.hidden_reward[chosen].astype(np.float32)),
        to_tensor(data.images[np.maximum(following, 0)]),
        torch.from_numpy((following >= 0).astype(np.float32)),
    )


def naive_seconds(data: OfflineDataset, updates: int = 40) -> float:
    """Return the seconds of one update in PyTorch, on batches prepared beforehand."""
    assert data.images is not None
    reference = TorchIql(data.images.shape[2], data.n_actions, Settings())
    rng = np.random.default_rng(0)
    batches = [tensors(data, rng.integers(len(data), size=Settings().batch)) for _ in range(updates)]
    reference.update(*batches[0])
    return _best_of(3, lambda: [reference.update(*batch) for batch in batches]) / updates


def product_seconds(data: OfflineDataset, times: int = 20) -> float:
    """Return the seconds of the matrix products of a dense update: six forward passes and three backward passes."""
    assert data.images is not None
    inner, cells = (SIDE - 2) ** 2, 9 * data.images.shape[2]
    size = Settings().batch
    patches, filtered, reached = (torch.rand(size * inner, n) for n in (cells, FILTERS, FILTERS))
    filters, hidden = torch.rand(cells, FILTERS), torch.rand(FILTERS * inner, HIDDEN)
    flat, back = filtered.view(size, -1), torch.rand(size, HIDDEN)

    def updates() -> None:
        for _ in range(6 * times):
            patches @ filters
            flat @ hidden
        for _ in range(3 * times):
            flat.T @ back
            back @ hidden.T
            patches.T @ reached

    updates()
    return _best_of(3, updates) / times
