"""A world around a Gymnasium environment with discrete observations and no table of outcomes."""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from selectenv.domains.layout import Layout


@dataclass(frozen=True, eq=False)
class DiscreteEnvWorld:
    """A world that evaluates policies by rollouts; its data must be supplied."""

    env: gym.Env[Any, Any]
    layout: Layout | None = None
    family = "environment"

    @property
    def name(self) -> str:
        """The id of the environment, or the name of its class."""
        return self.env.spec.id if self.env.spec else type(self.env.unwrapped).__name__
