"""terminal: labels states that terminate episodes first, then moves backwards from them."""

from dataclasses import dataclass

from agents.base import Info, Observation, RankingAgent, Taxonomy, feature, of_length, only_open
from agents.errors import NotTrainedError
from agents.registry import register
from selectenv.checks import check_instance
from selectenv.datasets import OfflineDataset
from selectenv.kernels.tabular.distances import steps_from
from selectenv.typing import FloatArray, IntArray
from selectenv.view import SelectionView

SMALLEST = 1e-12


@register("terminal")
@dataclass
class Terminal(RankingAgent):
    """Labels the states whose transitions terminate episodes, then their predecessors, nearest first.

    Ties are broken by visitation. Goals and traps terminate episodes, and termination is known without any reward.
    """

    name = "terminal"
    taxonomy = Taxonomy(test_loop="open", training="none", evaluator="never")
    features = ("visitation",)

    def __post_init__(self) -> None:
        """Start without distances; `begin` computes them."""
        self._steps: IntArray | None = None

    def begin(self, view: SelectionView) -> None:
        """Compute the distance of each state to termination in the data."""
        check_instance("view", view, SelectionView)
        self._steps = steps_to_termination(view.dataset)

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return minus the distance to termination, plus up to a half for visitation."""
        if self._steps is None:
            raise NotTrainedError(
                "terminal does not know the data yet: call agent.begin(env.unwrapped.view()) after reset"
            )
        visits = of_length(len(self._steps), feature(obs, "visitation"))
        return only_open(-self._steps + 0.5 * visits / max(float(visits.max()), SMALLEST), info)


def steps_to_termination(dataset: OfflineDataset) -> IntArray:
    """Return the distance [n] of each state to termination, in observed transitions; n if it is unreachable."""
    first, source, _ = dataset.predecessors
    return steps_from(first, source, dataset.termination > 0)
