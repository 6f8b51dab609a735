"""OneShot: the bandit face, one score a state."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from selectenv.env import Observation
from selectenv.errors import ActionError
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.wrappers.batch_labels import selection_env


class OneShot(gym.Wrapper[Observation, Any, Observation, Any], RecordConstructorArgs):
    """One action is a score for every state; the best-scored states are labelled up to the budget.

    The reward is the performance, and the episode is over: a continuous-armed bandit that any optimiser can play. Only
    the order of the scores counts, ties go to the lower number; scores outside the action space's [-1, 1] are welcome.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Score the states of ``env``."""
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._selection = selection_env(env)
        self.action_space = gym.spaces.Box(-1, 1, (self._selection.problem.n_states,), np.float32)

    def step(self, action: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label the best-scored states."""
        scores = self._check(np.asarray(action), 1)
        left = self._selection.budget - self._selection.labels_spent
        return self._selection.label_many(self._best(scores, left)) if left else self._selection.step(0)

    def masks(self, scores: FloatArray) -> BoolArray:
        """Return the label sets [sets, n] that many score vectors [sets, n] would make, initial labels included."""
        checked = self._check(np.asarray(scores), 2)
        labelled = self._selection.labelled_at > 0
        masks = np.repeat(labelled[None], len(checked), axis=0)
        left = self._selection.budget - int(labelled.sum())
        np.put_along_axis(masks, self._best(checked, left), True, axis=1)
        return masks

    def performance_many(self, scores: FloatArray) -> FloatArray:
        """Return what many score vectors [sets, n] would earn; counts as so many evaluator calls."""
        return self._selection.problem.performance_many(self.masks(scores))

    def _best(self, scores: FloatArray, k: int) -> IntArray:
        """Return the k best-scored states that can be labelled, best first; then, if there are too few, the rest."""
        ranked = np.where(self._selection.action_masks(), -scores, np.inf)
        return np.argsort(ranked, axis=-1, kind="stable")[..., :k]

    def _check(self, scores: NDArray[Any], dimensions: int) -> FloatArray:
        n = self._selection.problem.n_states
        if scores.dtype.kind not in "fiu" or scores.ndim != dimensions or scores.shape[-1] != n:
            raise ActionError(f"an action is one score a state, {n} numbers, not {scores.dtype}{scores.shape}")
        if not np.isfinite(scores).all():
            raise ActionError("scores must be finite")
        return scores.astype(np.float64)
