"""FeatureVector: the vector environment of `FeatureWrapper`, with the features of all environments in one pass."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space

from agents.learned.batched_features import BatchedFeatures, DataRow
from agents.learned.state_features import NAMES
from agents.sb3.feature_wrapper import BOUND, RewardScales
from selectenv.kernels.tabular.packed_tables import BUDGET
from selectenv.observation import Observation
from selectenv.typing import BoolArray, Float32Array, FloatArray
from selectenv.vector_env import RewardSelectionVectorEnv


class FeatureVector(gym.vector.VectorWrapper[Any, Any, Observation, Any, Any]):
    """Wrapper that replaces the observations by features [environments, n, features], see `FeatureWrapper`.

    Episodes that end are reset in the same step, as Stable-Baselines3 expects it.
    """

    env: RewardSelectionVectorEnv

    def __init__(
        self, env: RewardSelectionVectorEnv, *, without: tuple[str, ...] = (), scales: RewardScales | None = None
    ) -> None:
        """Wrap ``env``, leaving out the features named in ``without``.

        Args:
            env: the environments.
            without: names of features to leave out.
            scales: normalise returns with these, which several environments may share.
        """
        super().__init__(env)
        self._without, self._scales = without, scales
        n = env.single_observation_space["labelled"].shape[0]  # type: ignore[index]  # a Dict
        self.single_observation_space = gym.spaces.Box(-BOUND, BOUND, (n, len(NAMES)), np.float32)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._marginal = env.options.reward_mode == "marginal"
        count = 1 if env.source is None else env.num_envs
        self._features = BatchedFeatures([self._row(0)] * count, without)
        self._low, self._span = np.zeros(env.num_envs), np.ones(env.num_envs)
        self._paid = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Float32Array, dict[str, Any]]:
        """Start episodes."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._begin(info["_budget"])
        return self._seen(obs), info

    def step(self, actions: Any) -> tuple[Float32Array, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Label a state in each; if normalised, the performance without labels is subtracted from the first reward."""
        obs, rewards, terminations, truncations, info = self.env.step(actions)
        due = ~self._paid & (terminations | self._marginal)
        rewards = np.where(due, rewards - self._low, rewards) / self._span
        self._paid |= due
        if "_final_obs" in info:
            which = np.flatnonzero(info["_final_obs"])
            final = {
                name: np.stack([info["final_obs"][i][name] for i in which]) for name in info["final_obs"][which[0]]
            }
            masks = info["final_info"]["action_mask"][which]
            features = self._features.of(final, masks, self._budgets[which], which)
            for number, row in zip(which.tolist(), features, strict=True):
                info["final_obs"][number] = row
            self._begin(info["_final_obs"])
        return self._seen(obs), rewards, terminations, truncations, info

    def _seen(self, obs: Observation) -> Float32Array:
        return self._features.of(obs, self.env.episodes.open, self._budgets)

    def _begin(self, mask: BoolArray) -> None:
        """Note what changes at the start of an episode."""
        self._budgets = self.env.episodes.counts[:, BUDGET].copy()
        self._paid[mask] = False
        which = np.flatnonzero(mask).tolist()
        if self.env.source is not None:
            for number in which:
                self._features.replace(number, self._row(number))
        if self._scales is not None:
            same = self.env.source is None
            for number in which[:1] if same else which:
                scale = self._scales.of(self.env.problem_of(number))
                self._low[mask if same else number], self._span[mask if same else number] = scale

    def _row(self, number: int) -> DataRow:
        problem = self.env.problem_of(number)
        return DataRow.of(problem.dataset.without_rewards, problem.learner.rule == "adapted", self._without)
