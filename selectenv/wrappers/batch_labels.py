"""BatchLabels: k labels per step."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from selectenv.checks import as_array, check_int, shown
from selectenv.env import RewardSelectionEnv
from selectenv.errors import ActionError, OptionTypeError
from selectenv.observation import Observation
from selectenv.typing import BoolArray


class BatchLabels(gym.Wrapper[Observation, Any, Observation, Any], RecordConstructorArgs):
    """Wrapper in which one action labels k states; the learner is refitted, and observed, once per batch.

    If the budget is not a multiple of k, only the labels that are left are taken from the last batch, the first ones
    first. The return is the same as for the same labels one at a time. ``info["state"]`` holds the ids of the labels
    that were taken, and ``info["wasted"]`` counts the wasted ones among them.
    """

    def __init__(self, env: gym.Env[Any, Any], k: int) -> None:
        """Label ``k`` states per step in ``env``."""
        self._selection = selection_env(env)
        self.k = check_int("k", k, 1, self._selection.budget)
        RecordConstructorArgs.__init__(self, k=self.k)
        gym.Wrapper.__init__(self, env)
        n = self._selection.problem.n_states
        self.action_space = gym.spaces.MultiDiscrete(np.full(self.k, n))

    def step(self, action: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label the states with the numbers ``action`` [k]."""
        numbers = as_array("an action", action, ActionError)
        if numbers.shape != (self.k,):
            raise ActionError(f"an action lists {self.k} state numbers, not {shown(action)}")
        return self.env.step(numbers)  # type: ignore[return-value]  # Gymnasium's reward is a SupportsFloat

    def action_masks(self) -> BoolArray:
        """Return the mask [k * n] of states that can still be labelled, repeated for each of the k labels."""
        return np.tile(self._selection.action_masks(), self.k)


def selection_env(env: gym.Env[Any, Any]) -> RewardSelectionEnv:
    """Return the `RewardSelectionEnv` inside ``env``.

    Raises:
        OptionTypeError: ``env`` does not wrap one.
    """
    inner = env.unwrapped if isinstance(env, gym.Env) else None
    if not isinstance(inner, RewardSelectionEnv):
        raise OptionTypeError(
            f"env must be an environment of reward selection, as gym.make returns it, not {shown(env)}"
        )
    return inner
