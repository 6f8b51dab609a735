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
from numpy.typing import NDArray

import agents
from agents.errors import SavedAgentError
from agents.learned.moves import MOVES, dense_moves
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

    from agents.learned.message_scorer import INNER, MessageScorer
except ImportError as error:
    raise MissingExtraError(f"training selectors needs torch ({error}): pip install 'selectenv[meta]'") from error

SIDE_BY_SIDE = 32
"""Number of episodes in parallel."""
BUFFER = 80_000
"""Size of the replay buffer, in decisions."""
FEWEST_STATES = 4
"""Smallest number of states to choose from in a world."""
FIRST_DECISIONS = 1_500
"""Decisions that a run, also a resumed one, makes before the network is trained on them."""
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
ADAPTED = 0.6
"""Share of the worlds with the adapted rule, in which labels matter together."""
BEST_SHARE, SHARPNESS = 0.25, 1.5
"""Share of the student's decisions in which it takes its best label, and factor of the scores otherwise."""
STAKES = (0.02, 1.0)
"""Bounds of the gain, as a share of the range of returns, whose square root weights a decision."""
WARM_UP, LAST_RATE = 0.02, 0.05
"""Share of the run in which the learning rate rises, and its share at the end."""
SHARES_OF_MEMORY = 4
"""Parts of a round that are padded separately: matrices of small worlds stay small."""


@dataclass(frozen=True)
class SelectorSettings:
    """Settings of the training of a selector."""

    decisions: int = 288_000
    """Number of decisions in total."""
    hidden: int = 48
    """Width of the codes of states."""
    rounds: int = 3
    """Number of rounds in which states exchange messages."""
    rate: float = 2e-3
    """Learning rate; it decays linearly."""
    decay: float = 1e-3
    """Weight decay."""
    temperature: float = 0.15
    """Temperature of the softmax over the gains that gives the targets, as a share of the largest gain."""
    ahead: float = 0.5
    """Weight of the teacher's plan in what labels are worth; the rest is the gain at once."""
    teacher_share: float = 0.2
    """Share of the decisions that the teacher makes."""
    batch: int = 128
    """Decisions per mini-batch."""
    updates: int = 2
    """Number of updates after one decision in every episode."""
    averaging: float = 0.998
    """Decay of the exponential moving average of the weights, which is the resulting selector."""
    largest: int = 100
    """Maximum number of states of a training world."""
    without: tuple[str, ...] = ()
    """Names of state features to leave out."""

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        check_int("decisions", self.decisions, check_int("the size of a batch", self.batch))
        check_real("the learning rate", self.rate, "(0, inf)")
        check_real("temperature", self.temperature, "(0, inf)")
        check_int("rounds", self.rounds, 0, 100)
        check_real("decay", self.decay, "[0, inf)")
        check_real("teacher_share", self.teacher_share, "[0, 1]")
        check_int("updates", self.updates)
        check_real("averaging", self.averaging, "[0, 1)")
        for name in self.without:
            check_name("feature of a state", name, ALL_NAMES)
        check_real("ahead", self.ahead, "[0, 1]")
        check_int("largest", self.largest, SMALLEST, LARGEST)


@dataclass(frozen=True, eq=False)
class Decision:
    """A decision: what was seen of the states, and what the teacher says about them."""

    features: NDArray[np.float16]
    """[n, features]"""
    moves: Float32Array
    """[matrices, n, n] shared by the decisions of an episode."""
    targets: Float32Array
    """[n] probabilities; `UNTRIED` where the teacher has not tried the state."""
    stake: float
    """Weight of the decision."""


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
            self.scorer = MessageScorer(settings.hidden, settings.rounds, len(ALL_NAMES))
        self.average = AveragedModel(self.scorer, multi_avg_fn=get_ema_multi_avg_fn(settings.averaging))  # type: ignore[no-untyped-call]
        self._optimiser = torch.optim.AdamW(self.scorer.parameters(), settings.rate, weight_decay=settings.decay)
        self.done = 0
        self._decisions: list[Decision] = []
        if checkpoint is not None and checkpoint.exists():
            self._restore(checkpoint)
        self._wanted = max(settings.batch, min(settings.decisions // 20, FIRST_DECISIONS))
        self._sources = _sources(settings.largest)
        self._rng = generator(self.seed, "selector", self.done)
        self._episodes = [self._new_episode() for _ in range(SIDE_BY_SIDE)]

    def advance(self) -> dict[str, float]:
        """Make one decision in every episode and train on the buffer; return loss and entropy."""
        features = [episode.features() for episode in self._episodes]
        for i, scores in enumerate(self._scores(features)):
            episode = self._episodes[i]
            gains = episode.gains()
            if np.nanmax(np.abs(gains)) > FLAT:
                stake = float(np.sqrt(np.clip(np.nanmax(gains), *STAKES)))
                targets = targets_of(gains, self.settings.temperature)
                moves = dense_moves(episode.env.problem.dataset)
                self._decisions.append(Decision(features[i].astype(np.float16), moves, targets, stake))
            if episode.step(self._choice(scores, gains)):
                self._episodes[i] = self._new_episode()
        self.done += SIDE_BY_SIDE
        del self._decisions[:-BUFFER]
        news: dict[str, float] = {}
        for _ in range(self.settings.updates):
            news = self._learn()
        return news

    def _scores(self, features: list[Float32Array]) -> list[FloatArray]:
        """Return the scores [n] of every episode."""
        found: list[FloatArray] = [np.empty(0)] * len(features)
        order = np.argsort([len(one) for one in features], kind="stable")
        for part in np.array_split(order, SHARES_OF_MEMORY):
            moves = [dense_moves(self._episodes[i].env.problem.dataset) for i in part]
            with torch.no_grad():
                scores = self.scorer(torch.from_numpy(padded([features[i] for i in part])), _together(moves)).numpy()
            for row, i in zip(scores, part, strict=True):
                found[i] = row[: len(features[i])].astype(np.float64)
        return found

    def _choice(self, scores: FloatArray, gains: FloatArray) -> int:
        """Return the state that the teacher or the student labels."""
        scores, draw = np.where(np.isnan(gains), np.nan, scores), self._rng.random()
        if draw < self.settings.teacher_share:
            return int(np.nanargmax(gains))
        if draw < self.settings.teacher_share + (1 - self.settings.teacher_share) * BEST_SHARE:
            return int(np.nanargmax(scores))
        return int(self._rng.choice(len(scores), p=_soft(SHARPNESS * scores)))

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
        if len(self._decisions) < self._wanted:
            return {}
        at = self._rng.integers(len(self._decisions), size=SIMILAR * self.settings.batch)
        at = at[
            np.argsort([len(self._decisions[i].targets) for i in at], kind="stable")
        ]  # worlds of similar size need no padding
        first = int(self._rng.integers(SIMILAR)) * self.settings.batch
        batch = [self._decisions[i] for i in at[first : first + self.settings.batch]]
        features = torch.from_numpy(padded([one.features.astype(np.float32) for one in batch]))
        targets = torch.from_numpy(padded([one.targets for one in batch], UNTRIED))
        stakes = torch.tensor([one.stake for one in batch])
        scores = self.scorer(features, _together([one.moves for one in batch])).masked_fill(targets == UNTRIED, -1e9)
        logs, targets = functional.log_softmax(scores, dim=1), targets.clamp(min=0)
        loss = -((targets * logs).sum(dim=1) * stakes).sum() / stakes.sum()
        done = self.done / self.settings.decisions
        for group in self._optimiser.param_groups:
            group["lr"] = self.settings.rate * min(done / WARM_UP, 1) * (1 - (1 - LAST_RATE) * min(done, 1))
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.scorer.parameters(), 1.0)
        self._optimiser.step()
        self.average.update_parameters(self.scorer)
        with torch.no_grad():
            entropy = -(logs.exp() * logs).sum(dim=1).mean()
        return {"train/loss": float(loss.detach()), "train/entropy": float(entropy)}

    def _new_episode(self) -> Episode:
        source = self._sources[int(self._rng.random() < ADAPTED)]
        while True:
            episode = Episode(source, self._rng, self.settings.without, self.settings.ahead)
            if episode.env.problem.dataset.labelable.sum() >= FEWEST_STATES:
                return episode

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


def _together(moves: list[Float32Array]) -> "torch.Tensor":
    """Return matrices of different sizes as one tensor [datasets, matrices, n, n]."""
    longest = max(one.shape[1] for one in moves)
    out = np.zeros((len(moves), len(MOVES), longest, longest), np.float32)
    for all_of_it, one in zip(out, moves, strict=True):
        all_of_it[:, : one.shape[1], : one.shape[1]] = one
    return torch.from_numpy(out)


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
    arrays = {name: value.numpy() for name, value in run.average.module.state_dict().items()}
    card = {
        "hidden": run.settings.hidden,
        "inner": INNER,
        "rounds": run.settings.rounds,
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
