"""OneShot: the problem as a bandit, whose action is one score per state."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from selectenv.checks import as_array, as_reals
from selectenv.errors import ActionError, EpisodeError
from selectenv.observation import Observation
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.wrappers.batch_labels import selection_env


class OneShot(gym.Wrapper[Observation, Any, Observation, Any], RecordConstructorArgs):
    """Wrapper in which one action scores every state, and the states with the highest scores are labelled.

    The whole budget is spent in one step, and the reward is the performance: a continuous-armed bandit that any
    optimiser can play. Only the order of the scores matters, and ties go to the lower state number; scores outside
    [-1, 1], the bounds of the action space, are accepted.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Score the states of ``env``."""
        self._selection = selection_env(env)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self.action_space = gym.spaces.Box(-1, 1, (self._selection.problem.n_states,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and record its initial labels."""
        result = self.env.reset(seed=seed, options=options)
        self._initial = self._selection.labelled_at > 0
        self._open = self._selection.action_masks()
        self._left = self._selection.budget - self._selection.labels_spent
        return result

    def step(self, action: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label the states with the highest scores ``action`` [n]."""
        best = self._best(self._check(as_array("an action", action, ActionError), 1))
        return self.env.step(best)  # type: ignore[return-value]  # Gymnasium's reward is a SupportsFloat

    def masks(self, scores: FloatArray) -> BoolArray:
        """Return the label sets [sets, n] of score vectors [sets, n], initial labels included."""
        best = self._best(self._check(as_array("scores", scores, ActionError), 2))
        masks = np.repeat(self._initial[None], len(best), axis=0)
        np.put_along_axis(masks, best, True, axis=1)
        return masks

    def performance_many(self, scores: FloatArray) -> FloatArray:
        """Return the performances [sets] of score vectors [sets, n]; each counts as one evaluator call."""
        return self._selection.problem.performance_many(self.masks(scores))

    def _best(self, scores: FloatArray) -> IntArray:
        """Return the states to label, highest scores first; states that cannot be labelled come last."""
        ranked = np.where(self._open, -scores, np.inf)
        return np.argsort(ranked, axis=-1, kind="stable")[..., : self._left]

    def _check(self, scores: NDArray[Any], dimensions: int) -> FloatArray:
        if not hasattr(self, "_initial"):
            raise EpisodeError("no episode is running: call reset() first")
        n = self._selection.problem.n_states
        if scores.dtype.kind not in "fiu" or scores.ndim != dimensions or scores.shape[-1] != n:
            raise ActionError(f"an action is one score per state, {n} numbers, not {scores.dtype}{scores.shape}")
        if not np.isfinite(scores).all():
            raise ActionError("scores must be finite")
        return as_reals("scores", scores, ActionError)
