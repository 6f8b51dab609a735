"""Train `auto`: a small network that corrects the scores of `learned` by what is imagined.

The targets are those of `selector_training`: the softmax of what the teacher says that each label is worth. The
decisions are stored in chunks, and the network is fitted to all of them anew.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agents.imagine.stacked_network import INPUTS, Parts, columns_of, log_shares
from agents.learned.selector import LearnedSelector
from experiments.engine.executors import local_processes
from experiments.training.selector_training import FLAT, UNTRIED, padded, targets_of
from experiments.training.stacked_decisions import MOST_CHUNKS, Decisions, play_decisions
from selectenv.checks import check_int, check_real
from selectenv.errors import MissingExtraError
from selectenv.io.progress import progress_bar
from selectenv.io.weights import save_weights
from selectenv.streams import generator

try:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
except ImportError as error:
    raise MissingExtraError(f"training selectors needs torch ({error}): pip install 'selectenv[meta]'") from error

SECONDS = 1.0
"""How often the progress of other processes is looked at."""
SIMILAR = 4
"""Mini-batches that are drawn at once and divided by the size of worlds, of which one is used."""


@dataclass(frozen=True)
class StackedSettings:
    """Settings of the training."""

    chunks: int = 25
    """Number of chunks of decisions."""
    decisions: int = 1_000
    """Decisions per chunk, at least: the last episode is played to its end."""
    first: int = 5
    """Chunks that are played without a student."""
    refit: int = 5
    """The student is fitted anew after this number of chunks."""
    hidden: int = 32
    """Width of the network."""
    updates: int = 3_000
    """Number of mini-batches of a fit."""
    batch: int = 64
    """Decisions per mini-batch."""
    rate: float = 2e-3
    """Learning rate; it decays linearly to a tenth."""
    decay: float = 0.01
    """Weight decay."""
    dropout: float = 0.1
    """Share of the codes of states that is hidden in training."""
    temperature: float = 0.15
    """Temperature of the softmax over the gains that gives the targets, as a share of the largest gain."""
    averaging: float = 0.998
    """Decay of the exponential moving average of the weights, which is the result."""
    members: int = 3
    """Networks that are fitted with different seeds; the result gives the mean of their scores."""

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        check_int("chunks", self.chunks, 1, MOST_CHUNKS)
        for name in ("decisions", "first", "refit", "hidden", "updates", "batch", "members"):
            check_int(name, getattr(self, name))
        check_real("rate", self.rate, "(0, inf)")
        check_real("decay", self.decay, "[0, inf)")
        check_real("dropout", self.dropout, "[0, 1)")
        check_real("temperature", self.temperature, "(0, inf)")
        check_real("averaging", self.averaging, "[0, 1)")

    def of_students(self) -> "StackedSettings":
        """Return the settings of the students that choose labels: fitted to less, they are regularised more."""
        hidden, updates = min(self.hidden, 16), min(self.updates, 1_500)
        return replace(self, hidden=hidden, updates=updates, decay=0.1, dropout=0.2, averaging=0.995)


class Correction(nn.Module):
    """The network of `agents.imagine.stacked_network`; it begins with the scores of `learned`."""

    def __init__(self, inputs: int, hidden: int, dropout: float) -> None:
        """Build the network.

        Args:
            inputs: number of features per state.
            hidden: width of its layers.
            dropout: share of the codes that is hidden in training.
        """
        super().__init__()
        self.encode, self.inner, self.outer = (
            nn.Linear(inputs, hidden),
            nn.Linear(3 * hidden, hidden),
            nn.Linear(hidden, 1),
        )
        self.scale = nn.Parameter(torch.tensor(1.0))
        self._dropout = nn.Dropout(dropout)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, features: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        """Return scores [batch, n] for features [batch, n, inputs] and logarithms of shares [batch, n]."""
        seen = features[:, :, :1]
        code = self._dropout(functional.relu(self.encode(features))) * seen
        pool = torch.cat([code.sum(dim=1) / seen.sum(dim=1).clamp(min=1), code.amax(dim=1)], dim=1)
        beside = pool[:, None].expand(-1, features.shape[1], -1)
        inner = functional.relu(self.inner(torch.cat([code, beside], dim=2)))
        scores: torch.Tensor = self.scale * shares + self.outer(inner)[:, :, 0]
        return scores


def fit_correction(decisions: Decisions, settings: StackedSettings, seed: int = 0) -> Parts:
    """Return the layers of a network that is fitted to decisions."""
    kept = [i for i, gains in enumerate(decisions.gains) if np.nanmax(np.abs(gains)) > FLAT]
    targets = [targets_of(decisions.gains[i].astype(np.float64), settings.temperature) for i in kept]
    every = [decisions.features[i].astype(np.float32) for i in kept]
    columns = columns_of(list(INPUTS))
    inputs, shares = [x[:, columns] for x in every], [log_shares(x) for x in every]
    order = np.argsort([len(target) for target in targets], kind="stable")
    rng = generator(seed, "stacked fit", len(decisions.gains))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Correction(len(INPUTS), settings.hidden, settings.dropout)
        average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(settings.averaging))  # type: ignore[no-untyped-call]
        optimiser = torch.optim.AdamW(network.parameters(), settings.rate, weight_decay=settings.decay)
        for update in range(settings.updates):
            drawn = np.sort(rng.integers(len(order), size=SIMILAR * settings.batch))
            start = int(rng.integers(SIMILAR)) * settings.batch
            at = order[drawn[start : start + settings.batch]]
            x, share, target = (
                torch.from_numpy(padded([rows[i] for i in at], filler))
                for rows, filler in ((inputs, 0.0), (shares, 0.0), (targets, UNTRIED))
            )
            logs = functional.log_softmax(network(x, share).masked_fill(target == UNTRIED, -1e9), dim=1)
            loss = -(target.clamp(min=0) * logs).sum(dim=1).mean()
            for group in optimiser.param_groups:
                group["lr"] = settings.rate * (1 - 0.9 * update / settings.updates)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            average.update_parameters(network)
    return {name: value.numpy().copy() for name, value in average.module.state_dict().items()}


def train_stacked(path: Path, settings: StackedSettings, seed: int = 0, jobs: int = 1) -> None:
    """Train the network and write it to ``path``; decisions are stored beside it, so that a run can be resumed.

    Args:
        path: the file to write.
        settings: settings of the training.
        seed: seed of the worlds and the networks.
        jobs: number of processes; the result does not depend on it.

    Raises:
        WeightsFileError: a stored chunk is damaged or belongs to another run.
    """
    identity = {
        "decisions": settings.decisions,
        "first": settings.first,
        "refit": settings.refit,
        "seed": seed,
        "learned": LearnedSelector.version,
    }
    files = [path.with_suffix("") / f"{number:03d}.npz" for number in range(settings.chunks)]
    student: Parts | None = None
    begin, end = 0, min(settings.first, settings.chunks)
    while begin < end:
        missing = [number for number in range(begin, end) if not files[number].exists()]
        if missing and begin:
            student = fit_correction(Decisions.read(files[:begin], identity), settings.of_students(), seed)
        chunks: list[tuple[Any, ...]] = [(number, files[number]) for number in missing]
        _play_chunks(chunks, settings.decisions, student, seed, identity, jobs)
        begin, end = end, min(end + settings.refit, settings.chunks)
    decisions = Decisions.read(files, identity)
    members = [fit_correction(decisions, settings, seed + member) for member in range(settings.members)]
    save_stacked(path, merged(members), settings, seed)


def _play_chunks(
    chunks: list[tuple[Any, ...]], count: int, student: Parts | None, seed: int, identity: dict[str, Any], jobs: int
) -> None:
    """Play chunks of at least ``count`` decisions each, and store them."""
    play = partial(_play_chunk, count=count, student=student, seed=seed, identity=identity)
    with progress_bar(len(chunks), "chunks") as bar:
        if jobs == 1 or len(chunks) < 2:
            for chunk in chunks:
                play(*chunk)
                bar.update()
            return
        with local_processes(jobs) as execute:
            for finished in execute(play, chunks, SECONDS):
                bar.update(len(finished))


def _play_chunk(
    number: int, path: Path, count: int, student: Parts | None, seed: int, identity: dict[str, Any]
) -> None:
    play_decisions(number, count, student, seed).write(path, identity)


def merged(members: list[Parts]) -> Parts:
    """Return the layers of one network whose scores are the means of those of several of the same width."""
    count, hidden = len(members), len(members[0]["encode.bias"])
    inner = np.zeros((count * hidden, 3, count * hidden), np.float32)  # a member sees its own codes and pools
    for i, member in enumerate(members):
        own = slice(i * hidden, (i + 1) * hidden)
        inner[own, :, own] = member["inner.weight"].reshape(hidden, 3, hidden)
    joined = {
        name: np.concatenate([member[name] for member in members])
        for name in ("encode.weight", "encode.bias", "inner.bias")
    }
    return {
        **joined,
        "inner.weight": inner.reshape(count * hidden, -1),
        "outer.weight": np.concatenate([member["outer.weight"] for member in members], axis=1) / np.float32(count),
        "outer.bias": np.mean([member["outer.bias"] for member in members], axis=0),
        "scale": np.mean([member["scale"] for member in members], dtype=np.float32),
    }


def save_stacked(path: Path, parts: Parts, settings: StackedSettings, seed: int) -> None:
    """Write the layers and the card of a network."""
    card = {"inputs": list(INPUTS), "seed": seed, "settings": asdict(settings), "hidden": len(parts["encode.bias"])}
    save_weights(path, parts, card)
