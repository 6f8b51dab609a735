"""adaptive-mixture: explores while the learner predicts its own return accurately, and exploits otherwise."""

import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from agents.base import Info, Observation, SamplingAgent, Taxonomy, feature, of_length
from agents.errors import NotTrainedError
from agents.registry import register
from selectenv.checks import check_instance, check_name, check_real
from selectenv.env import RewardSelectionEnv
from selectenv.typing import FloatArray
from selectenv.view import SelectionView
from selectenv.wrappers.batch_labels import selection_env

EXPLOITS = ("visitation", "on_policy_visitation")
EXPLORES = ("inverse", "uniform")


@register("adaptive-mixture")
@dataclass
class AdaptiveMixture(SamplingAgent):
    """Samples from w explore + (1 - w) exploit with w = exp(-|J - J_proxy| / scale); J costs one evaluator call.

    J is the true discounted return of the current policy, J_proxy the value the learner predicts for it at the data's
    start distribution. The exploit distribution is a visitation, the explore distribution its inverse (or uniform).
    """

    exploit: str = "visitation"
    """"visitation" (of the data) or "on_policy_visitation"."""
    explore: str = "inverse"
    """"inverse" (of the visitation) or "uniform"."""
    scale: float = 0.5
    """Scale of the prediction error, in units of return."""

    name = "adaptive-mixture"
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="playing")

    def __post_init__(self) -> None:
        """Reject options that do not define a mixture."""
        check_name("exploit", self.exploit, EXPLOITS)
        check_name("explore", self.explore, EXPLORES)
        check_real("scale", self.scale, "(0, inf)")
        self.features = tuple(dict.fromkeys(("visitation", self.exploit)))
        self._env: RewardSelectionEnv | None = None

    def train(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        """Keep the environment to play: its evaluator is called at every selection."""
        self._env = selection_env(env)

    def begin(self, view: SelectionView) -> None:
        """Check that the episode is played in the environment that was given to `train`.

        Raises:
            NotTrainedError: `train` was not called, or was called with an environment that has other data.
        """
        check_instance("view", view, SelectionView)
        if self._env is None or self._env.problem.dataset.without_rewards is not view.dataset:
            raise NotTrainedError(
                "adaptive-mixture calls the evaluator while it plays: first call agent.train(env) with the same env"
            )

    def exploration(self) -> float:
        """Return w for the current labels; costs one evaluator call."""
        if self._env is None:
            raise NotTrainedError("adaptive-mixture calls the evaluator while it plays: call agent.train(env) first")
        problem = self._env.problem
        result = problem.learn(self._env.labels)
        true = problem.evaluator.evaluate(result.policy, discount=problem.learner.gamma)
        predicted = float(problem.dataset.start @ result.values)
        return math.exp(-abs(true - predicted) / self.scale)

    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return the weights [n] of the mixture."""
        w = self.exploration()
        visits = feature(obs, self.exploit)
        seen = of_length(len(visits), feature(obs, "visitation")) > 0
        inverse = np.where(seen, 1 / np.maximum(visits, 1e-12), 0.0)
        explore = inverse if self.explore == "inverse" else seen.astype(np.float64)
        mixed: FloatArray = w * explore / _total(explore) + (1 - w) * visits / _total(visits)
        return mixed


def _total(weights: FloatArray) -> float:
    """Return the sum of weights, or 1 if they are all 0."""
    total = float(weights.sum())
    return total if total > 0 else 1.0
