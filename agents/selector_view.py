"""SelectorView: an environment as learned selectors see it, one row of figures a state."""

from typing import Any

import gymnasium as gym
import numpy as np

from agents.state_features import NAMES, Structure, state_features, structure_of
from selectenv.env import RewardSelectionEnv
from selectenv.typing import BoolArray, Float32Array
from selectenv.wrappers.batch_labels import selection_env

BOUND = 10.0


class SelectorView(gym.Wrapper[Float32Array, Any, Any, Any]):
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
        self._structure = structure_of_problem(self._selection)
        self._low, self._span, self._paid = 0.0, 1.0, False
        if self._normalised:
            self._low = problem.score(np.zeros(problem.n_states, bool))
            self._span = max(problem.score(problem.dataset.labelable) - self._low, 1e-9)
        return self._look(obs, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Label, and look again; the first reward that is paid is reduced by what no label earns."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if not self._paid and (terminated or self._selection.marginal):
            reward, self._paid = float(reward) - self._low, True
        return self._look(obs, info), float(reward) / self._span, terminated, truncated, info

    def action_masks(self) -> BoolArray:
        """Return which states can still be labelled usefully."""
        return self._selection.action_masks()

    def _look(self, obs: Any, info: dict[str, Any]) -> Float32Array:
        return state_features(
            obs, info, self._structure, budget=self._selection.budget, adapted=is_adapted(self._selection),
            without=self._without,
        )  # fmt: skip


def is_adapted(env: RewardSelectionEnv) -> bool:
    """Return whether the learner follows the adapted rule."""
    return bool(getattr(env.problem.learner, "adapted", False))


def structure_of_problem(env: RewardSelectionEnv) -> Structure:
    """Return the structure of the environment's dataset, computed once a dataset."""
    known: Structure | None = getattr(env, "_structure", None)
    if known is None or known.dataset is not env.problem.dataset:
        known = structure_of(env.problem.dataset)
        env._structure = known  # type: ignore[attr-defined]  # kept with what it belongs to
    return known
