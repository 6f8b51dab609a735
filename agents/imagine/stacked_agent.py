"""auto: a small network that sees the features of `learned` and what `imagine` imagines, trained on random worlds."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.base import Info, Observation, RankingAgent, Taxonomy, only_open
from agents.imagine.imagine_agent import Imagine
from agents.imagine.stacked_features import STACKED_NAMES, StackedContext
from agents.imagine.stacked_network import columns_of, read_stacked, stacked_scores
from agents.learned.state_features import OBSERVED
from agents.registry import register
from selectenv.checks import check_int, check_path
from selectenv.typing import FloatArray
from selectenv.view import SelectionView

SHIPPED = "stacked"
"""Name of the weights that ship with the package."""
FOLDER = Path(__file__).parent / "weights"
IN_PLAN, PLAN_WINS = STACKED_NAMES.index("in plan"), STACKED_NAMES.index("plan wins")
CONVINCED = 0.8
"""Share of the particles in which the plan must be better than what `learned` proposes (less those in which it is
worse) for only planned states to be labelled."""


@register("auto")
@dataclass
class Stacked(RankingAgent):
    """Scores every state with a small network that sees the features of `learned` and those of the imagination.

    The labels are a function of the data, the terms of the episode, the labels so far and the options: the random
    generator of the episode is not used.
    """

    weights: str = SHIPPED
    """"stacked", the weights that ship with the package, or a file from `selectenv train-stacked`."""
    seed: int = 0
    """Seed of the imagination."""

    name = "auto"
    version = 4
    features = (*OBSERVED, "reward", "reward_scale")
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")

    def __post_init__(self) -> None:
        """Read the weights."""
        check_int("seed", self.seed, 0)
        self._parts, self.card = read_stacked(stacked_path(self.weights))
        self._columns = columns_of(self.card["inputs"])
        self._imagine = Imagine(seed=self.seed)
        self._imagine.name = self.name  # type: ignore[misc]  # errors and warnings name this agent
        self._context: StackedContext | None = None

    def begin(self, view: SelectionView) -> None:
        """Imagine reward functions that explain the behaviour.

        Raises:
            OptionError: the learner knows something that no label reveals, which cannot be imagined.

        Warns:
            LargeWorldWarning: the world has too many states, and `learned` labels it instead.
        """
        self._imagine.begin(view)
        self._context = None if self._imagine.is_replaced else StackedContext(view, self._imagine)

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return the network's score of each state [n]; NaN for states that can no longer be labelled."""
        if self._context is None:  # `learned` labels large worlds, and the imagination knows what to say before `begin`
            return self._imagine.scores(obs, info)
        features = self._context.features(obs, info)
        scores = stacked_scores(self._parts, self._columns, features).astype(float)
        if features[:, PLAN_WINS].max() > CONVINCED:
            outside = features[:, IN_PLAN] == 0
            scores[outside] -= np.ptp(scores) + 1.0
        return only_open(scores, info)


def stacked_path(weights: str | os.PathLike[str]) -> Path:
    """Return the file of the shipped weights, or the path as it is."""
    return FOLDER / f"{SHIPPED}.npz" if str(weights) == SHIPPED else Path(check_path("weights", weights))
