"""Policies of Stable-Baselines3 around the network that scores states one by one."""

from typing import Any

from selectenv.errors import MissingExtraError

try:
    import torch
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
    from torch import nn
except ImportError as error:
    raise MissingExtraError(
        f"selectors need Stable-Baselines3 and torch ({error}): pip install 'selectenv[meta]'"
    ) from error

from agents.learned.scorer import StateScorer
from agents.learned.state_features import NAMES


class _ScorerExtractor(nn.Module):
    """The network in the place where SB3 has its shared layers: what comes out are logits, and a value."""

    latent_dim_pi = latent_dim_vf = 1  # the layers that SB3 builds on top are taken away again

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.scorer = StateScorer(hidden)

    def forward(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, value = self.scorer(flat.view(len(flat), -1, len(NAMES)))
        return scores, value[:, None]

    def forward_actor(self, flat: torch.Tensor) -> torch.Tensor:
        return self.forward(flat)[0]

    def forward_critic(self, flat: torch.Tensor) -> torch.Tensor:
        return self.forward(flat)[1]


class ScoringMixin:
    """Turns an actor-critic policy of SB3 into ours."""

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
    """For PPO and A2C."""


class _ScorerQNetwork(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.scorer = StateScorer(hidden)

    def forward(self, flat: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scorer(flat.view(len(flat), -1, len(NAMES)))[0]
        return scores


class ScorerDqnPolicy(DQNPolicy):
    """For DQN."""

    def __init__(self, *args: Any, hidden: int = 64, **kwargs: Any) -> None:
        """Remember the width of the network; SB3 does the rest."""
        self._hidden = hidden
        super().__init__(*args, **{**kwargs, "net_arch": []})

    def make_q_net(self) -> QNetwork:
        """Return SB3's network with ours inside."""
        network: Any = super().make_q_net()
        network.q_net = _ScorerQNetwork(self._hidden)
        built: QNetwork = network.to(self.device)
        return built
