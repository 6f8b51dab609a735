"""Scores of states by policies of Stable-Baselines3 and sb3-contrib: log probabilities, action values or own scores."""

from typing import Any

import gymnasium as gym
import numpy as np

from agents.errors import UnsupportedModelError
from selectenv.typing import BoolArray, FloatArray

Memory = Any
"""State of a recurrent policy within an episode; None at its start, and for all other policies."""


class PolicyScores:
    """Scores of states by a policy; the highest is the action that the policy itself would take."""

    def __init__(self, policy: Any) -> None:
        """Read the policy of a model.

        Raises:
            UnsupportedModelError: its actions are not those of a reward-selection environment, or it has neither a
                distribution over them nor values of them.
        """
        policy.set_training_mode(False)
        self._policy, space = policy, policy.action_space
        if isinstance(space, gym.spaces.Discrete):
            self.n_states, self.labels_per_step = int(space.n), 1
        elif isinstance(space, gym.spaces.MultiDiscrete) and len(set(space.nvec.tolist())) == 1:
            self.n_states, self.labels_per_step = int(space.nvec[0]), len(space.nvec)
        elif isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
            self.n_states, self.labels_per_step = space.shape[0], 1
        else:
            raise UnsupportedModelError(
                "the actions of a model must be state numbers (Discrete), one state number per label of a batch "
                f"(MultiDiscrete, as in BatchLabels) or one score per state (Box, as in OneShot), not {space}"
            )
        self.scores_all_at_once = isinstance(space, gym.spaces.Box)
        """Whether one action scores all states, as in `OneShot`."""
        if not self.scores_all_at_once and not any(hasattr(policy, name) for name in KNOWN):
            raise UnsupportedModelError(
                f"{type(policy).__name__} has neither a distribution over actions (get_distribution) nor action values "
                "(q_net, quantile_net), so that states cannot be compared"
            )

    def of(self, observation: Any, open_states: BoolArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Return the scores [labels per step, n] for an observation, and the memory of a recurrent policy after it."""
        import torch

        policy = self._policy
        if self.scores_all_at_once:
            action, memory = policy.predict(observation, state=memory, deterministic=True)
            return np.asarray(action, np.float64)[None], memory
        with torch.no_grad():
            seen = policy.obs_to_tensor(observation)[0]
            if hasattr(policy, "lstm_actor"):
                distribution, memory = policy.get_distribution(seen, *self._recall(memory))
                found = _logits(distribution)
            elif hasattr(policy, "get_distribution"):
                found = _logits(policy.get_distribution(seen, **self._masks(open_states)))
            elif hasattr(policy, "quantile_net"):
                found = policy.quantile_net(seen).mean(dim=1)
            elif hasattr(policy, "q_net"):
                found = policy.q_net(seen)
            else:
                found = policy.action_net(policy.extract_features(seen, policy.features_extractor))
        scores: FloatArray = found.cpu().numpy().astype(np.float64)
        return scores, memory

    def _masks(self, open_states: BoolArray) -> dict[str, Any]:
        """Return the argument that policies with action masks take in addition."""
        if not hasattr(self._policy.action_dist, "apply_masking"):
            return {}
        return {"action_masks": np.tile(open_states, self.labels_per_step)}

    def _recall(self, memory: Memory) -> tuple[Any, Any]:
        """Return the states of the network of a recurrent policy, and whether an episode starts."""
        import torch

        start = torch.tensor([float(memory is None)], device=self._policy.device)
        if memory is None:
            layers, _, width = self._policy.lstm_hidden_state_shape
            memory = tuple(torch.zeros(layers, 1, width, device=self._policy.device) for _ in range(2))
        return memory, start


KNOWN = ("get_distribution", "quantile_net", "q_net", "action_net")
"""Attributes of policies by which `PolicyScores.of` scores states."""


def _logits(distribution: Any) -> Any:
    """Return the log probabilities [labels per step, n] of a categorical distribution, masked or not."""
    import torch

    inner = getattr(distribution, "distributions", None) or distribution.distribution
    return torch.cat([one.logits for one in inner]) if isinstance(inner, list) else inner.logits
