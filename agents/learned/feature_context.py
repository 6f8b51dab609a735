"""The input of learned selectors during an episode: one row of features per state."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.base import Info, Observation, RankingAgent, only_open
from agents.errors import NotTrainedError
from agents.learned.behaviour_features import DYNAMIC, LabelEffects
from agents.learned.state_features import NAMES, OBSERVED, Structure, state_features, structure_of
from selectenv.checks import check_instance
from selectenv.typing import Float32Array, FloatArray
from selectenv.view import SelectionView


@dataclass(frozen=True, eq=False)
class FeatureContext:
    """The inputs of the features that do not change during an episode."""

    structure: Structure
    budget: int
    adapted: bool
    """Whether the learner follows the adapted rule."""
    without: tuple[str, ...] = ()
    """Names of features to leave out."""
    names: tuple[str, ...] = NAMES
    """Names of the features, in order."""
    effects: LabelEffects | None = None
    """What labels have changed, if features tell of it."""

    @classmethod
    def of(cls, view: SelectionView, without: tuple[str, ...] = (), names: tuple[str, ...] = NAMES) -> "FeatureContext":
        """Return the context of an episode."""
        check_instance("view", view, SelectionView)
        effects = None if set(DYNAMIC).isdisjoint(names) else LabelEffects(view)
        return cls(structure_of(view.dataset), view.budget, view.rule == "adapted", without, names, effects)

    def features(self, obs: Observation, info: Info) -> Float32Array:
        """Return the features of every state [n, features]."""
        return state_features(
            obs,
            info,
            self.structure,
            budget=self.budget,
            adapted=self.adapted,
            without=self.without,
            names=self.names,
            effects=self.effects,
        )


class SelectorAgent(RankingAgent):
    """A strategy that labels the states to which a network gives the highest scores."""

    _without: tuple[str, ...] = ()
    _names: tuple[str, ...] = NAMES
    _context: FeatureContext | None = None

    @property
    def features(self) -> Sequence[str]:  # type: ignore[override]  # a file may say which
        """Features that it needs to observe."""
        rewards = {"reward": "reward", "reward_scale": "reward scale"}
        return (*OBSERVED, *(name for name, column in rewards.items() if column in self._names))

    @abstractmethod
    def score_features(self, features: Float32Array) -> Float32Array:
        """Return the scores [n] for features [n, features]."""

    def begin(self, view: SelectionView) -> None:
        """Compute the features of the data."""
        self._context = FeatureContext.of(view, self._without, self._names)

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return the network's score of each state [n]; NaN for states that can no longer be labelled."""
        if self._context is None:
            raise NotTrainedError(
                f"{self.name} does not know the data yet: call agent.begin(env.unwrapped.view()) after reset"
            )
        scores = self.score_features(self._context.features(obs, info))
        return only_open(scores.astype(np.float64), info)
