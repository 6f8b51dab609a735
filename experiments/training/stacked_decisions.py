"""Decisions in random worlds that `auto` is trained on: what it would see, and what the teacher says about each label.

Decisions come in chunks that are stored, so that a run can be resumed. The first chunks are labelled by `learned`,
`imagine` and the teacher, later ones mostly by the student so far (DAgger, Ross et al. 2011,
https://arxiv.org/abs/1011.0686).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.imagine.imagine_agent import Imagine
from agents.imagine.stacked_features import STACKED_NAMES, StackedContext
from agents.imagine.stacked_network import INPUTS, Parts, columns_of, stacked_scores
from experiments.training.selector_teacher import Episode
from experiments.training.training_worlds import TrainingProblems
from selectenv.errors import WeightsFileError
from selectenv.io.weights import load_weights, save_weights
from selectenv.problem import SelectionProblem
from selectenv.streams import generator
from selectenv.typing import BoolArray, Float32Array, FloatArray

LARGEST = 100
"""Maximum number of states of a training world: imagining takes longer in larger ones."""
AHEAD = 0.5
"""Weight of the teacher's plan in what labels are worth; the rest is the gain at once."""
FIRST_EPISODES, EPISODES = 2, 1
"""Episodes with different budgets in every world, before there is a student and after."""
MOST_CHUNKS = 1_000
FIRST_DRIVERS, DRIVERS = (
    ("learned", "imagine", "mixture"),
    ("student", "drawn", "student", "imagine", "mixture"),
)
"""Who chooses the labels of an episode, before there is a student and after: "student" takes its best label, "drawn"
one in proportion to the softmax of its scores, and "mixture" draws who chooses at every decision."""
MIXED = ("learned", "imagine", "teacher")
FIRST_TEACHER_SHARE, TEACHER_SHARE = 0.15, 0.1
"""Share of the decisions that the teacher makes anyway."""
SCORES = {"learned": STACKED_NAMES.index("learned rank"), "imagine": STACKED_NAMES.index("imagined rank")}


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions: what was seen of the states, and what labelling them would gain."""

    features: list[NDArray[np.float16]]
    """[n, features] each."""
    gains: list[Float32Array]
    """[n] each; NaN for states that the teacher has not tried."""

    @classmethod
    def read(cls, paths: list[Path], identity: dict[str, Any]) -> "Decisions":
        """Return the decisions of stored chunks.

        Raises:
            WeightsFileError: a file is damaged or belongs to another run.
        """
        found = cls([], [])
        for path in paths:
            arrays, card = load_weights(path)
            if card.get("run") != identity:
                raise WeightsFileError(f"{path} belongs to another run: {card.get('run')}, not {identity}; delete it")
            ends = np.cumsum(arrays["states"])[:-1]
            found.features.extend(np.split(arrays["features"], ends))
            found.gains.extend(np.split(np.where(arrays["tried"], arrays["gains"], np.float32(np.nan)), ends))
        return found

    def write(self, path: Path, identity: dict[str, Any]) -> None:
        """Write them to a file, atomically."""
        gains = np.concatenate(self.gains)
        arrays: dict[str, NDArray[Any]] = {
            "features": np.concatenate(self.features),
            "gains": np.nan_to_num(gains),
            "tried": ~np.isnan(gains),
            "states": np.array([len(gains) for gains in self.gains]),
        }
        save_weights(path, arrays, {"run": identity})


class StackedEpisode(Episode):
    """An episode in which the student also sees what is imagined."""

    def __init__(self, problem: SelectionProblem, rng: np.random.Generator, imagine: Imagine) -> None:
        """Begin an episode.

        Args:
            problem: the problem.
            rng: source of randomness.
            imagine: the imagination; episodes with the same data can share it, one after the other.
        """
        super().__init__(lambda _: problem, rng, (), AHEAD)
        view = self.env.view()
        imagine.begin(view)
        self._stacked = StackedContext(view, imagine)

    def features(self) -> Float32Array:
        """Return the features [n, features] that the student observes."""
        return self._stacked.features(self._obs, self._info)


def play_decisions(number: int, count: int, student: Parts | None, seed: int = 0) -> Decisions:
    """Play episodes in random worlds until they have at least ``count`` decisions.

    Args:
        number: number of the chunk, which gives the worlds.
        count: number of decisions.
        student: the layers of the student; None if there is none yet.
        seed: seed of the run.
    """
    rng = generator(number + MOST_CHUNKS * seed, "stacking worlds")
    sources = [TrainingProblems(learner, LARGEST) for learner in ("uds", "adapted")]
    drivers = FIRST_DRIVERS if student is None else DRIVERS
    episodes = FIRST_EPISODES if student is None else EPISODES
    share = FIRST_TEACHER_SHARE if student is None else TEACHER_SHARE
    found, worlds = Decisions([], []), 0
    while len(found.gains) < count:
        problem, imagine = sources[worlds % 2](rng), Imagine()
        worlds += 1
        for _ in range(episodes):
            episode = StackedEpisode(problem, rng, imagine)
            driver = str(rng.choice(drivers))
            is_over = False
            while not is_over:
                features, gains = episode.features(), episode.gains()
                found.features.append(features.astype(np.float16))
                found.gains.append(gains.astype(np.float32))
                now = str(rng.choice(MIXED)) if driver == "mixture" else driver
                if rng.random() < share:
                    now = "teacher"
                is_over = episode.step(_choice(now, features, gains, episode.env.action_masks(), student, rng))
    return found


def _choice(
    driver: str,
    features: Float32Array,
    gains: FloatArray,
    open_states: BoolArray,
    student: Parts | None,
    rng: np.random.Generator,
) -> int:
    """Return the state that a driver labels."""
    if driver == "teacher":
        return int(np.nanargmax(gains))
    if student is None or driver in SCORES:
        return int(np.where(open_states, features[:, SCORES[driver]], -np.inf).argmax())
    scores = stacked_scores(student, columns_of(list(INPUTS)), features).astype(np.float64)
    if driver == "student":
        return int(np.where(open_states, scores, -np.inf).argmax())
    tried = ~np.isnan(gains)
    chances = np.where(tried, np.exp(scores - scores.max(where=tried, initial=-np.inf)), 0.0)
    return int(rng.choice(len(chances), p=chances / chances.sum()))
