"""visitation and visitation-on-policy: draw states in proportion to how often they are visited."""

from dataclasses import dataclass

from agents.base import Info, Observation, SamplingAgent, Taxonomy, feature
from agents.registry import register
from selectenv.typing import FloatArray


@register("visitation")
@dataclass
class Visitation(SamplingAgent):
    """Draws in proportion to the visits in the data, so that a large share of the data is labelled."""

    name = "visitation"
    taxonomy = Taxonomy(test_loop="open", training="none", evaluator="never")
    features = ("visitation",)

    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return the visitation of the data."""
        return feature(obs, "visitation")


@register("visitation-on-policy")
@dataclass
class VisitationOnPolicy(SamplingAgent):
    """Draws in proportion to the visits of the current policy in the empirical model."""

    name = "visitation-on-policy"
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")
    features = ("on_policy_visitation",)

    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return the occupancy of the current policy."""
        return feature(obs, "on_policy_visitation")
