"""LoadedAgent: a strategy from a file, which plays as it was saved."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.base import Agent, Info, Observation
from selectenv.typing import FloatArray, IntArray
from selectenv.view import SelectionView


class LoadedAgent(Agent):
    """Plays a saved strategy and never trains it again, so that commands and studies compare what was saved."""

    def __init__(self, agent: Agent, name: str) -> None:
        """Play ``agent`` under another name."""
        self.agent, self.name = agent, name  # type: ignore[misc]  # a name of its own
        self.taxonomy = agent.taxonomy  # type: ignore[misc]
        self.one_at_a_time = agent.one_at_a_time  # type: ignore[misc]
        self.features = agent.features
        self.training_calls, self.search_notes = agent.training_calls, agent.search_notes

    def train(self, env: Any, seed: int = 0) -> None:
        """Do nothing: the strategy was trained before it was saved."""

    def begin(self, view: SelectionView) -> None:
        """Start an episode."""
        self.agent.begin(view)

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return the scores [n] of the saved strategy."""
        return self.agent.scores(obs, info)

    def select_many(self, obs: Observation, info: Info, k: int, rng: np.random.Generator) -> IntArray:
        """Return the k states [k] that the saved strategy chooses."""
        return self.agent.select_many(obs, info, k, rng)

    @property
    def replaced(self) -> Sequence[Any]:  # type: ignore[override]  # known after `begin` only
        """Ids that the saved strategy wanted but the data never visit."""
        return self.agent.replaced
