"""Train a selector that labels in any world: it learns, on random worlds, to predict the gain of each label.

Training uses the evaluator without limit. At every decision of an episode the teacher evaluates each state that could
be labelled next, and the student, which observes only the rewards that its labels reveal, is trained to put its
probability on the labels with the largest gain. The student makes most decisions itself, so that it is trained on the
situations that it creates (DAgger, Ross et al. 2011, https://arxiv.org/abs/1011.0686). After training it needs no
evaluator, also in worlds that it was not trained in.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.errors import SavedAgentError
from agents.learned.selector import LearnedSelector, read_selector
from agents.learned.state_features import ALL_NAMES
from experiments.training.selector_teacher import Episode
from experiments.training.training_worlds import LARGEST, SMALLEST, TrainingProblems
from selectenv.checks import check_int, check_name, check_real
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError, OptionError, WeightsFileError
from selectenv.io.event_log import EventLog
from selectenv.io.progress import progress
from selectenv.io.weights import load_weights, save_weights
from selectenv.problem import SelectionProblem
from selectenv.rendering.selection import draw_figure
from selectenv.streams import generator
from selectenv.typing import Float32Array, FloatArray

try:
    import torch
    from torch.nn import functional
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    from agents.learned.scorer import StateScorer
except ImportError as error:
    raise MissingExtraError(f"training selectors needs torch ({error}): pip install 'selectenv[meta]'") from error

SIDE_BY_SIDE = 32
"""Number of episodes in parallel."""
BUFFER = 30_000
"""Size of the replay buffer, in decisions."""
REFILL = 2_000
"""Decisions that refill the buffer of a resumed run before training continues."""
HELD_OUT, HELD_OUT_SHARES = 60, (0.1, 0.3, 0.5)
"""Number of held-out worlds for evaluation, and their budgets as shares of the states, in turn."""
RIVALS = ("guided", "terminal-guided", "sequential-greedy")
SIMILAR = 4
"""Mini-batches that are drawn at once and divided by the size of worlds, of which one is used."""
UNTRIED = -1.0
"""Stands for a probability where the teacher has not tried the state."""
LEAST_TEMPERATURE = 0.003
"""Smallest temperature of targets, as a share of the range of returns."""
FLAT = 1e-6
"""Decisions at which every gain, as a share of the range of returns, is smaller than this are not trained on."""


@dataclass(frozen=True)
class SelectorSettings:
    """Settings of the training of a selector."""

    decisions: int = 90_000
    """Number of decisions in total."""
    hidden: int = 64
    """Width of the network."""
    rate: float = 1e-3
    """Learning rate; it decays linearly to a tenth."""
    temperature: float = 0.15
    """Temperature of the softmax over the gains that gives the targets, as a share of the largest gain."""
    ahead: float = 0.5
    """Weight of the teacher's plan in what labels are worth; the rest is the gain at once."""
    teacher_share: float = 0.25
    """Share of the decisions that the teacher makes."""
    batch: int = 96
    """Decisions per mini-batch."""
    updates: int = 8
    """Number of updates after one decision in every episode."""
    averaging: float = 0.999
    """Decay of the exponential moving average of the weights, which is the resulting selector."""
    largest: int = LARGEST
    """Maximum number of states of a training world."""
    without: tuple[str, ...] = ()
    """Names of state features to leave out."""

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        check_int("decisions", self.decisions, check_int("the size of a batch", self.batch))
        check_real("the learning rate", self.rate, "(0, inf)")
        check_real("temperature", self.temperature, "(0, inf)")
        check_real("teacher_share", self.teacher_share, "[0, 1]")
        check_int("updates", self.updates)
        check_real("averaging", self.averaging, "[0, 1)")
        for name in self.without:
            check_name("feature of a state", name, ALL_NAMES)
        check_real("ahead", self.ahead, "[0, 1]")
        check_int("largest", self.largest, SMALLEST, LARGEST)


class SelectorTraining:
    """A training run that can be interrupted and resumed from its last checkpoint."""

    def __init__(self, settings: SelectorSettings, seed: int, checkpoint: Path | None = None) -> None:
        """Start a run, or resume from ``checkpoint`` if the file exists.

        Raises:
            WeightsFileError: the checkpoint is damaged or belongs to a run with other settings.
        """
        self.settings, self.seed, self._checkpoint = settings, check_int("seed", seed, 0, 2**63 - 1), checkpoint
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.scorer = StateScorer(settings.hidden, len(ALL_NAMES))
        self.average = AveragedModel(self.scorer, multi_avg_fn=get_ema_multi_avg_fn(settings.averaging))  # type: ignore[no-untyped-call]
        self._optimiser = torch.optim.Adam(self.scorer.parameters(), settings.rate)
        self.done = 0
        self._features: list[Float32Array] = []
        self._targets: list[Float32Array] = []
        if checkpoint is not None and checkpoint.exists():
            self._restore(checkpoint)
        self._wanted = max(settings.batch, min(self.done, REFILL))
        self._sources = _sources(settings.largest)
        self._rng = generator(self.seed, "selector", self.done)
        self._episodes = [self._new_episode() for _ in range(SIDE_BY_SIDE)]

    def advance(self) -> dict[str, float]:
        """Make one decision in every episode and train on the buffer; return loss and entropy."""
        features = [episode.features() for episode in self._episodes]
        with torch.no_grad():
            scores = self.scorer(torch.from_numpy(padded(features)))[0].numpy()
        for i, episode in enumerate(self._episodes):
            gains = episode.gains()
            if np.nanmax(np.abs(gains)) > FLAT:
                self._features.append(features[i])
                self._targets.append(targets_of(gains, self.settings.temperature))
            chances = _soft(np.where(np.isnan(gains), np.nan, scores[i, : len(gains)]))
            follow = self._rng.random() < self.settings.teacher_share
            action = int(np.nanargmax(gains)) if follow else int(self._rng.choice(len(chances), p=chances))
            if episode.step(action):
                self._episodes[i] = self._new_episode()
        self.done += SIDE_BY_SIDE
        del self._features[:-BUFFER], self._targets[:-BUFFER]
        news: dict[str, float] = {}
        for _ in range(self.settings.updates):
            news = self._learn()
        return news

    def save(self) -> None:
        """Write a checkpoint atomically."""
        if self._checkpoint is None:
            return
        arrays = {f"net.{name}": value.numpy() for name, value in self.scorer.state_dict().items()}
        arrays |= {f"average.{name}": value.numpy() for name, value in self.average.state_dict().items()}
        for number, state in self._optimiser.state_dict()["state"].items():
            arrays |= {f"adam.{number}.{name}": np.asarray(value) for name, value in state.items()}
        save_weights(self._checkpoint, arrays, {"run": self._identity(), "done": self.done}, compressed=False)

    def _learn(self) -> dict[str, float]:
        if len(self._features) < self._wanted:
            return {}
        at = self._rng.integers(len(self._features), size=SIMILAR * self.settings.batch)
        at = at[
            np.argsort([len(self._targets[i]) for i in at], kind="stable")
        ]  # worlds of similar size need no padding
        first = int(self._rng.integers(SIMILAR)) * self.settings.batch
        at = at[first : first + self.settings.batch]
        features = torch.from_numpy(padded([self._features[i] for i in at]))
        targets = torch.from_numpy(padded([self._targets[i] for i in at], UNTRIED))
        scores = self.scorer(features)[0].masked_fill(targets == UNTRIED, -1e9)
        logs, targets = functional.log_softmax(scores, dim=1), targets.clamp(min=0)
        loss = -(targets * logs).sum(dim=1).mean()
        for group in self._optimiser.param_groups:
            group["lr"] = self.settings.rate * (1 - 0.9 * min(self.done / self.settings.decisions, 1))
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self.average.update_parameters(self.scorer)
        with torch.no_grad():
            entropy = -(logs.exp() * logs).sum(dim=1).mean()
        return {"train/loss": float(loss.detach()), "train/entropy": float(entropy)}

    def _new_episode(self) -> Episode:
        source = self._sources[int(self._rng.integers(len(self._sources)))]
        return Episode(source, self._rng, self.settings.without, self.settings.ahead)

    def _identity(self) -> dict[str, Any]:
        return {"seed": self.seed, **_plain(self.settings), "features": list(ALL_NAMES)}

    def _restore(self, path: Path) -> None:
        arrays, card = load_weights(path)
        if card.get("run") != self._identity():
            raise WeightsFileError(
                f"{path} is a checkpoint of another run: {card.get('run')}, not {self._identity()}; delete it"
            )
        for mark, network in (("net.", self.scorer), ("average.", self.average)):
            network.load_state_dict(
                {k.removeprefix(mark): torch.from_numpy(v) for k, v in arrays.items() if k.startswith(mark)}
            )
        state = self._optimiser.state_dict()
        for key, value in arrays.items():
            if key.startswith("adam."):
                _, number, name = key.split(".")
                state["state"].setdefault(int(number), {})[name] = torch.from_numpy(np.asarray(value))
        self._optimiser.load_state_dict(state)
        self.done = int(card["done"])


def _sources(largest: int) -> list[TrainingProblems]:
    return [TrainingProblems(learner, largest) for learner in ("uds", "adapted")]


def padded(rows: list[Float32Array], filler: float = 0.0) -> Float32Array:
    """Return arrays of different lengths as one [arrays, longest, ...]."""
    out = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), filler, np.float32)
    for one, row in zip(out, rows, strict=True):
        one[: len(row)] = row
    return out


def targets_of(gains: FloatArray, temperature: float) -> Float32Array:
    """Return the probabilities [n] that the student learns, `UNTRIED` where gains are NaN."""
    scale = max(temperature * float(np.nanmax(gains)), LEAST_TEMPERATURE)
    return np.where(np.isnan(gains), UNTRIED, _soft(gains / scale)).astype(np.float32)


def _soft(values: FloatArray) -> FloatArray:
    """Return the softmax over the entries that are not NaN; the others get 0."""
    valid = ~np.isnan(values)
    share = np.where(valid, np.exp(np.where(valid, values - np.nanmax(values), 0.0)), 0.0)
    return np.asarray(share / share.sum())


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out worlds, and the normalised returns of other strategies there: 0 without labels, 1 with all labels.

    Returns below -1 count as -1, so that no single world in which labels matter little decides.
    """

    problems: tuple[SelectionProblem, ...]
    budgets: tuple[int, ...]
    rivals: dict[str, float]

    def measure(self, agent: agents.Agent) -> float:
        """Return the mean normalised return of a strategy."""
        return float(
            np.mean(
                [_normalised(p, b, agent, i) for i, (p, b) in enumerate(zip(self.problems, self.budgets, strict=True))]
            )
        )


def held_out(
    largest: int, worlds: int = HELD_OUT, rivals: tuple[str, ...] = RIVALS, stream: str = "held-out worlds"
) -> HeldOut:
    """Draw the held-out worlds, alternating between UDS and the adapted rule; they are the same at every call."""
    sources, rng = _sources(largest), generator(0, stream)
    problems = tuple(sources[i % len(sources)](rng) for i in range(worlds))
    shares = [HELD_OUT_SHARES[i // len(sources) % len(HELD_OUT_SHARES)] for i in range(worlds)]
    budgets = tuple(max(1, int(b * p.budget_states)) for b, p in zip(shares, problems, strict=True))
    found = HeldOut(problems, budgets, {})
    return HeldOut(problems, budgets, {name: found.measure(agents.make(name)) for name in rivals})


def _normalised(problem: SelectionProblem, budget: int, agent: agents.Agent, seed: int) -> float:
    env = RewardSelectionEnv(problem, budget)
    agent.train(env, seed)
    low = problem.score(np.zeros(problem.n_states, bool))
    span = problem.score(problem.dataset.labelable) - low
    return max(((agents.play(env, agent, seed).performance or 0.0) - low) / span, -1.0)


def train_selector(
    path: Path, settings: SelectorSettings, seed: int = 0, *, tensorboard: Path | None = None, evaluations: int = 20
) -> dict[str, float]:
    """Train a selector and write it to ``path``; an interrupted run is resumed, a finished one only evaluated.

    Args:
        path: the file to write, for `agents.LearnedSelector(path)`.
        settings: settings of the training.
        seed: seed of the network and the worlds.
        tensorboard: TensorBoard log directory; defaults to no log.
        evaluations: number of evaluations, each followed by a checkpoint.

    Returns:
        The normalised return on held-out worlds, and those of the rival strategies.

    Raises:
        OptionError: ``path`` is a directory.
        WeightsFileError: there is a checkpoint of another run beside ``path``.
    """
    if not path.name or path.is_dir():
        raise OptionError(f"path must be a file to write the selector to; {str(path)!r} is a directory")
    worlds = held_out(settings.largest)
    if _is_finished(path, settings, seed):
        return {"held-out/return": worlds.measure(LearnedSelector(str(path))), **worlds.rivals}
    checkpoint = path.with_suffix(".checkpoint.npz")
    run = SelectorTraining(settings, seed, checkpoint)
    log = EventLog(tensorboard) if tensorboard is not None else None
    every = max(
        SIDE_BY_SIDE, settings.decisions // check_int("evaluations", evaluations) // SIDE_BY_SIDE * SIDE_BY_SIDE
    )
    metrics: dict[str, float] = {}
    rounds = range(run.done, settings.decisions, SIDE_BY_SIDE)
    for _ in progress(rounds, len(rounds), "training"):
        metrics |= run.advance()
        if run.done % every == 0 or run.done >= settings.decisions:
            save_selector(run, path)
            run.save()
            agent = LearnedSelector(str(path))
            mean = worlds.measure(agent)
            metrics |= {"held-out/return": mean, **{f"behind/{n}": r - mean for n, r in worlds.rivals.items()}}
            if log is not None:
                log.scalars(run.done, metrics)
                log.image(run.done, "selection", _drawn(worlds, agent))
                log.flush()
    if log is not None:
        log.close()
    checkpoint.unlink(missing_ok=True)
    return {"held-out/return": worlds.measure(LearnedSelector(str(path))), **worlds.rivals}


def _is_finished(path: Path, settings: SelectorSettings, seed: int) -> bool:
    """Return whether the file contains the finished selector of the same run."""
    try:
        card = read_selector(path)[1]
    except (OSError, SavedAgentError):
        return False
    made = {"settings": card.get("settings"), "seed": card.get("seed"), "features": card.get("features")}
    wanted = {"settings": _plain(settings), "seed": seed, "features": list(ALL_NAMES)}
    return made == wanted and card["decisions"] >= settings.decisions


def _plain(settings: SelectorSettings) -> dict[str, Any]:
    return {**asdict(settings), "without": list(settings.without)}


def save_selector(run: SelectorTraining, path: Path) -> None:
    """Write the layers and the card of a selector."""
    arrays = {k: v.numpy() for k, v in run.average.module.state_dict().items() if not k.startswith("judge")}
    card = {
        "hidden": run.settings.hidden,
        "without": list(run.settings.without),
        "features": list(ALL_NAMES),
        "seed": run.seed,
        "decisions": run.done,
        "settings": _plain(run.settings),
    }
    save_weights(path, arrays, card)


def _drawn(worlds: HeldOut, agent: agents.Agent) -> Any:
    """Return a figure of the labels of the selector in the largest held-out world."""
    largest = int(np.argmax([problem.budget_states for problem in worlds.problems]))
    env = RewardSelectionEnv(worlds.problems[largest], worlds.budgets[largest])
    agents.play(env, agent)
    return draw_figure(env.problem, env.labelled_at, env.budget)
