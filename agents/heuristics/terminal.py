"""terminal: where episodes end first, then backwards from there."""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from agents.base import Info, Observation, RankingAgent, Taxonomy, open_mask
from agents.errors import NotTrainedError
from selectenv.datasets import OfflineDataset
from selectenv.kernels.tabular.distances import steps_from
from selectenv.typing import FloatArray, IntArray
from selectenv.wrappers.batch_labels import selection_env


@dataclass
class Terminal(RankingAgent):
    """Labels the states whose transitions end episodes, then their predecessors, nearest first; ties by visitation.

    Goals and traps end episodes, and that an episode ended is known without any reward.
    """

    name = "terminal"
    taxonomy = Taxonomy(test_loop="open", training="none", evaluator="never")

    def __post_init__(self) -> None:
        """Start without a dataset."""
        self._steps: IntArray | None = None

    def begin(self, env: gym.Env[Any, Any]) -> None:
        """Find how many steps each state is from an end, in the data."""
        self._steps = steps_to_termination(selection_env(env).problem.dataset)

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return minus the steps to an end, plus up to a half for visitation."""
        if self._steps is None:
            raise NotTrainedError("terminal does not know the data yet: call agent.begin(env) after reset")
        visits = np.asarray(obs["visitation"], np.float64)
        return np.where(open_mask(info), -self._steps + 0.5 * visits / visits.max(), np.nan)


def steps_to_termination(dataset: OfflineDataset) -> IntArray:
    """Return the fewest observed transitions from each state to one that ended an episode; n where there is no way."""
    first, source, _ = dataset.predecessors
    return steps_from(first, source, dataset.termination > 0)
