"""What learned selectors see of an environment, one row of figures a state, and how they play."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from agents.base import Info, Observation, RankingAgent, open_mask
from agents.errors import NotTrainedError
from agents.learned.state_features import NAMES, Structure, state_features, structure_of
from selectenv.env import RewardSelectionEnv
from selectenv.typing import BoolArray, Float32Array, FloatArray
from selectenv.wrappers.batch_labels import selection_env

BOUND = 10.0


@dataclass(frozen=True, eq=False)
class Sight:
    """What does not change during an episode."""

    structure: Structure
    budget: int
    adapted: bool
    """Whether the learner follows the adapted rule."""
    without: tuple[str, ...]

    def figures(self, obs: Observation, info: Info) -> Float32Array:
        """Return the figures of every state [n, features]."""
        return state_features(obs, info, self.structure, budget=self.budget, adapted=self.adapted, without=self.without)


def sight_of(env: RewardSelectionEnv, without: tuple[str, ...] = ()) -> Sight:
    """Look at an environment that was reset; the structure of a dataset is computed once."""
    known: Structure | None = getattr(env, "_structure", None)
    if known is None or known.dataset is not env.problem.dataset:
        known = structure_of(env.problem.dataset)
        env._structure = known  # type: ignore[attr-defined]  # kept with what it belongs to
    return Sight(known, env.budget, bool(getattr(env.problem.learner, "adapted", False)), without)


class SelectorAgent(RankingAgent):
    """A strategy that takes the state which a network scores best."""

    _without: tuple[str, ...] = ()
    _sight: Sight | None = None

    @abstractmethod
    def score_figures(self, figures: Float32Array) -> Float32Array:
        """Return the scores [n] for figures [n, features]."""

    def begin(self, env: gym.Env[Any, Any]) -> None:
        """Look at the data of the environment."""
        self._sight = sight_of(selection_env(env), self._without)

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return what the network thinks of each state."""
        if self._sight is None:
            raise NotTrainedError(f"{self.name} does not know the data yet: call agent.begin(env) after reset")
        scores = self.score_figures(self._sight.figures(obs, info))
        return np.where(open_mask(info), scores.astype(np.float64), np.nan)


class SelectorView(gym.Wrapper[Any, Any, Any, Any]):
    """Shows `state_features` instead of the observation.

    With ``normalised`` rewards an episode earns 0 for what no label earns and 1 for what all labels earn, so that
    worlds with large rewards do not drown the others.
    """

    def __init__(self, env: gym.Env[Any, Any], *, without: tuple[str, ...] = (), normalised: bool = False) -> None:
        """Look at ``env``, leaving out the figures named in ``without``."""
        super().__init__(env)
        self._selection, self._without, self._normalised = selection_env(env), without, normalised
        n = self._selection.problem.n_states
        self.observation_space = gym.spaces.Box(-BOUND, BOUND, (n, len(NAMES)), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        problem = self._selection.problem
        self._sight = sight_of(self._selection, self._without)
        self._low, self._span, self._paid = 0.0, 1.0, False
        if self._normalised:
            self._low = problem.score(np.zeros(problem.n_states, bool))
            self._span = max(problem.score(problem.dataset.labelable) - self._low, 1e-9)
        return self._sight.figures(obs, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Label, and look again; the first reward that is paid is reduced by what no label earns."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if not self._paid and (terminated or self._selection.marginal):
            reward, self._paid = float(reward) - self._low, True
        return self._sight.figures(obs, info), float(reward) / self._span, terminated, truncated, info

    def action_masks(self) -> BoolArray:
        """Return which states can still be labelled usefully."""
        return self._selection.action_masks()
