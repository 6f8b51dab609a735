"""terminal: labels states that terminate episodes first, then moves backwards from them."""

from dataclasses import dataclass

import numpy as np

from agents.base import Info, Observation, RankingAgent, Taxonomy, open_mask
from agents.errors import NotTrainedError
from agents.registry import register
from selectenv.datasets import OfflineDataset
from selectenv.kernels.tabular.distances import steps_from
from selectenv.typing import FloatArray, IntArray
from selectenv.view import SelectionView


@register("terminal")
@dataclass
class Terminal(RankingAgent):
    """Labels the states whose transitions terminate episodes, then their predecessors, nearest first.

    Ties are broken by visitation. Goals and traps terminate episodes, and termination is known without any reward.
    """

    name = "terminal"
    taxonomy = Taxonomy(test_loop="open", training="none", evaluator="never")

    def __post_init__(self) -> None:
        """Start without distances; `begin` computes them."""
        self._steps: IntArray | None = None

    def begin(self, view: SelectionView) -> None:
        """Compute the distance of each state to termination in the data."""
        self._steps = steps_to_termination(view.dataset)

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return minus the distance to termination, plus up to a half for visitation."""
        if self._steps is None:
            raise NotTrainedError(
                "terminal does not know the data yet: call agent.begin(env.unwrapped.view()) after reset"
            )
        visits = np.asarray(obs["visitation"], np.float64)
        return np.where(open_mask(info), -self._steps + 0.5 * visits / visits.max(), np.nan)


def steps_to_termination(dataset: OfflineDataset) -> IntArray:
    """Return the distance [n] of each state to termination, in observed transitions; n if it is unreachable."""
    first, source, _ = dataset.predecessors
    return steps_from(first, source, dataset.termination > 0)
