"""uniform: all states are equally likely."""

from dataclasses import dataclass

import numpy as np

from agents.base import Info, Observation, SamplingAgent, Taxonomy, open_mask
from agents.registry import register
from selectenv.typing import FloatArray


@register("uniform")
@dataclass
class Uniform(SamplingAgent):
    """Draws uniformly from all states that can be labelled: the baseline, strong where rare states matter."""

    name = "uniform"
    taxonomy = Taxonomy(test_loop="open", training="none", evaluator="never")

    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return equal weights."""
        return np.ones(len(open_mask(info)))
