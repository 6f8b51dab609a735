"""Policies of Stable-Baselines3 with the state scorer as their network."""

from typing import Any

from selectenv.errors import MissingExtraError

try:
    import torch
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    raise MissingExtraError(
        f"selectors need Stable-Baselines3 and torch ({error}): pip install 'selectenv[meta]'"
    ) from error

from agents.learned.scorer import StateScorer
from agents.learned.state_features import NAMES


class PooledScorer(StateScorer):
    """The state scorer with less arithmetic: what the pool contributes to a layer is computed once per set.

    The function is that of `StateScorer`, with the same weights; only the last bits of the results differ.
    """

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores [batch, n] and values [batch] for features [batch, n, features]."""
        code, pool = self.pooled(features)
        first: Any = self.score[0]
        beside = functional.linear(pool, first.weight[:, self.hidden :], first.bias)
        inner = functional.linear(code, first.weight[:, : self.hidden]) + beside[:, None, :]
        return self.score[2](functional.relu(inner))[:, :, 0], self.judge(pool)[:, 0]


class _ScorerExtractor(nn.Module):
    """The state scorer in place of SB3's shared layers; its outputs are the logits and the value."""

    latent_dim_pi = latent_dim_vf = 1  # the layers that SB3 builds on top are replaced by identities

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.scorer = PooledScorer(hidden)

    def forward(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, value = self.scorer(flat.view(len(flat), -1, len(NAMES)))
        return scores, value[:, None]

    def forward_actor(self, flat: torch.Tensor) -> torch.Tensor:
        return self.forward(flat)[0]

    def forward_critic(self, flat: torch.Tensor) -> torch.Tensor:
        return self.forward(flat)[1]


class ScoringMixin:
    """Mixin that puts the state scorer into an actor-critic policy of SB3."""

    def __init__(self, *args: Any, hidden: int = 64, **kwargs: Any) -> None:
        self._hidden = hidden
        super().__init__(*args, **{**kwargs, "net_arch": [], "ortho_init": False})

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _ScorerExtractor(self._hidden)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)  # type: ignore[misc]
        self.action_net, self.value_net = nn.Identity(), nn.Identity()
        mine: Any = self
        mine.optimizer = mine.optimizer_class(mine.parameters(), lr=lr_schedule(1), **mine.optimizer_kwargs)


class ScorerPolicy(ScoringMixin, ActorCriticPolicy):  # type: ignore[misc]
    """Policy for PPO and A2C."""


class _ScorerQNetwork(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.scorer = PooledScorer(hidden)

    def forward(self, flat: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scorer(flat.view(len(flat), -1, len(NAMES)))[0]
        return scores


class ScorerDqnPolicy(DQNPolicy):
    """Policy for DQN."""

    def __init__(self, *args: Any, hidden: int = 64, **kwargs: Any) -> None:
        """Store the width of the network before SB3 builds it."""
        self._hidden = hidden
        super().__init__(*args, **{**kwargs, "net_arch": []})

    def make_q_net(self) -> QNetwork:
        """Return SB3's Q-network with the state scorer inside."""
        network: Any = super().make_q_net()
        network.q_net = _ScorerQNetwork(self._hidden)
        built: QNetwork = network.to(self.device)
        return built
