"""Wrapper for Stable-Baselines3: observations with one row of features per state."""

from typing import Any
from weakref import WeakKeyDictionary

import gymnasium as gym
import numpy as np

from agents.learned.feature_context import FeatureContext
from agents.learned.state_features import NAMES
from selectenv.datasets import OfflineDataset
from selectenv.learners.base import Learner
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray
from selectenv.wrappers.batch_labels import selection_env

BOUND = 10.0


class RewardScales:
    """The constants that normalise returns, known once per problem: asking for them costs two evaluator calls."""

    def __init__(self) -> None:
        """Start without any."""
        self._known: WeakKeyDictionary[OfflineDataset, tuple[Learner, float, float]] = WeakKeyDictionary()

    def of(self, problem: SelectionProblem) -> tuple[float, float]:
        """Return the performance without labels, and how much all labels add to it."""
        known = self._known.get(problem.dataset)
        if known is None or known[0] is not problem.learner:
            low = problem.performance(np.zeros(problem.n_states, bool))
            span = max(problem.performance(problem.dataset.labelable) - low, 1e-9)
            known = self._known[problem.dataset] = problem.learner, low, span
        return known[1:]


class FeatureWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Wrapper that replaces the observation by `state_features` [n, features].

    With ``scales``, which several environments may share, the return of an episode is 0 for the performance without
    labels and 1 for that with all labels, so that worlds with large rewards do not dominate.
    """

    def __init__(
        self, env: gym.Env[Any, Any], *, without: tuple[str, ...] = (), scales: RewardScales | None = None
    ) -> None:
        """Wrap ``env``, leaving out the features named in ``without``."""
        super().__init__(env)
        self._selection, self._without, self._scales = selection_env(env), without, scales
        n = self._selection.problem.n_states
        self.observation_space = gym.spaces.Box(-BOUND, BOUND, (n, len(NAMES)), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._context = FeatureContext.of(self._selection.view(), self._without)
        self._low, self._span, self._paid = 0.0, 1.0, False
        if self._scales is not None:
            self._low, self._span = self._scales.of(self._selection.problem)
        return self._context.features(obs, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Label a state; if normalised, the performance without labels is subtracted from the first reward."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if not self._paid and (terminated or self._selection.marginal):
            reward, self._paid = float(reward) - self._low, True
        return self._context.features(obs, info), float(reward) / self._span, terminated, truncated, info

    def action_masks(self) -> BoolArray:
        """Return the mask [n] of states that can still be labelled."""
        return self._selection.action_masks()
