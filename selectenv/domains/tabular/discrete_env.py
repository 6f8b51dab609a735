"""A Gymnasium environment with discrete observations and no table of outcomes, as a world."""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from selectenv.domains.layout import Layout


@dataclass(frozen=True, eq=False)
class DiscreteEnvWorld:
    """Policies can be evaluated in it by rollouts; data must be given."""

    env: gym.Env[Any, Any]
    layout: Layout | None = None
    family = "environment"

    @property
    def name(self) -> str:
        """The environment's id, or its class."""
        return self.env.spec.id if self.env.spec else type(self.env.unwrapped).__name__
