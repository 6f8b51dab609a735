"""visitation and visitation-on-policy: states that are often visited come first."""

from dataclasses import dataclass

from agents.base import Info, Observation, SamplingAgent, Taxonomy, feature
from agents.registry import register
from selectenv.typing import FloatArray


@register("visitation")
@dataclass
class Visitation(SamplingAgent):
    """Draws in proportion to the visits in the data, so that as much of the data as possible is labelled."""

    name = "visitation"
    taxonomy = Taxonomy(test_loop="open", training="none", evaluator="never")

    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return the visitation of the data."""
        return feature(obs, "visitation")


@register("visitation-on-policy")
@dataclass
class VisitationOnPolicy(SamplingAgent):
    """Draws in proportion to where the current policy would go, in the empirical model."""

    name = "visitation-on-policy"
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")

    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return the occupancy of the current policy."""
        return feature(obs, "on_policy_visitation")
