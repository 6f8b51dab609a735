"""guided and guided-on-policy: start with frequently visited states, move to predecessors of high-valued states.

Label b is drawn from  alpha_b d(s) + (1 - alpha_b) d_prev(s | best),  where d is the visitation (of the data, or of the
current policy) and d_prev is a distribution over the unlabelled predecessors of "best", the labelled state with the
highest value among those that have such predecessors. In the games, d_prev spreads nearly uniformly over the unlabelled
predecessors of all near-best labelled states ("pooled"), and the labels between two refits share one alpha.
"""

import math
from dataclasses import dataclass

import numpy as np

from agents.base import (
    Info,
    Observation,
    SamplingAgent,
    Taxonomy,
    feature,
    gumbel_top_k,
    labels_made,
    of_length,
    open_mask,
)
from agents.registry import register
from selectenv.checks import check_instance, check_int, check_name, check_real, is_int
from selectenv.errors import LabelError, OptionError
from selectenv.options import EXPLOITS
from selectenv.typing import FloatArray, IntArray
from selectenv.view import SelectionView

DECAYS = ("linear", "convex", "concave")
SMALLEST = 1e-6
SMALLEST_POOLED = 1e-5


def exploration(b: int, n: int, decay: str, temperature: float, fixtime: float) -> float:
    """Return alpha_b: 1 for the first label, about 0 from label T = floor(fixtime (n + 1)) onwards.

    The result is at least 1e-6; with T <= 1 only the first label explores.
    """
    return 1.0 if b <= 1 else decayed(b, math.floor(fixtime * (n + 1)), decay, temperature, SMALLEST)


def pooled_exploration(
    b: int, n: int, decay: str, temperature: float, fixtime: float, batch: int, labels: float = math.inf
) -> float:
    """Return alpha of the label b of an episode with ``labels`` labels: 1 in the first batch, then one alpha per batch.

    It is taken at the number of labels after the batch, without the first batch, with T = floor(fixtime n), and is at
    least 1e-5. A batch is the ``batch`` labels between two refits.
    """
    earlier = (b - 1) // batch
    if earlier == 0:
        return 1.0
    last = min((earlier + 1) * batch, labels)
    return decayed(last - batch, math.floor(fixtime * n), decay, temperature, SMALLEST_POOLED)


def decayed(b: float, threshold: int, decay: str, temperature: float, smallest: float) -> float:
    """Return the schedule at label b, which falls from about 1 at b = 1 to ``smallest`` at b = T, the threshold.

    Linear: 1 - (b - 1) / (T - 1). Convex: exp(-temperature (b - 1) / (T - 1)). Concave: 1 - convex(T + 1 - b).
    """
    if b >= threshold:
        return smallest

    def convex(label: float) -> float:
        return math.exp(-temperature * (label - 1) / (threshold - 1))

    if decay == "linear":
        alpha = 1 - (b - 1) / (threshold - 1)
    else:
        alpha = convex(b) if decay == "convex" else 1 - convex(threshold + 1 - b)
    return min(1.0, max(smallest, alpha))


@register("guided")
@dataclass
class Guided(SamplingAgent):
    """Explores in proportion to the visitation of the data, then exploits the learned values."""

    decay: str | None = None
    """Shape of the decay of exploration: "linear", "convex" (early) or "concave" (late); by default linear, and concave
    with pooled predecessors."""
    temperature: float = 6.0
    """Steepness of the convex and concave decays."""
    fixtime: float = 0.5
    """Number of labels, as a share of all states, after which it only exploits."""
    exploit: str | None = None
    """"best" exploits the predecessors of the best-valued labelled state, "pooled" those of all near-best ones, with
    one alpha per batch; by default as the environment does: pooled in the games, best elsewhere."""

    name = "guided"
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")
    explore = "visitation"
    features = ("labelled", "visitation", "predecessors")

    def __post_init__(self) -> None:
        """Reject options that do not define a schedule."""
        if self.decay is not None:
            check_name("decay", self.decay, DECAYS)
        if self.exploit is not None:
            check_name("value of `exploit`", self.exploit, EXPLOITS)
        self.temperature = check_real("temperature", self.temperature, "(0, inf)")
        self.fixtime = check_real("fixtime", self.fixtime, "[0, 1]")
        self._pooled, self._batch, self._labels = self.exploit == "pooled", 1, math.inf

    def begin(self, view: SelectionView) -> None:
        """Adopt the way in which the environment computes predecessors, and its batches.

        Raises:
            OptionError: the environment computes them in the other way than ``exploit`` says.
        """
        check_instance("view", view, SelectionView)
        if self.exploit not in (None, view.exploit):
            raise OptionError(
                f"{self.name} with exploit={self.exploit!r} is played in an environment whose predecessors are "
                f"{view.exploit!r}: make the environment with exploit={self.exploit!r}"
            )
        self._pooled = view.exploit == "pooled"
        self._batch, self._labels = view.labels_per_refit, view.labels_to_choose

    def exploration(self, b: int, n: int) -> float:
        """Return alpha of label b in a problem of n states."""
        decay = self.decay or ("concave" if self._pooled else "linear")
        schedule = decay, self.temperature, self.fixtime
        if self._pooled:
            return pooled_exploration(b, n, *schedule, self._batch, self._labels)
        return exploration(b, n, *schedule)

    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return the weights [n] of the mixture; without predecessors to exploit, only exploration has weight."""
        b = 1 + labels_made(obs, info)
        explore = feature(obs, self.explore)
        exploit = of_length(len(explore), feature(obs, "predecessors"))
        alpha = self.exploration(b, len(explore))
        return alpha * explore + (1 - alpha) * exploit

    def select_many(self, obs: Observation, info: Info, k: int, rng: np.random.Generator) -> IntArray:
        """Draw k states [k] in one pass, each with the alpha of its label.

        Each state is drawn from one of the two distributions, chosen in proportion to its remaining mass. Within a
        distribution, the next state of a random order that is drawn once (see `gumbel_top_k`) has the same distribution
        as a new draw from the remaining states.
        """
        if is_int(k) and k == 1:
            return super().select_many(obs, info, k, rng)
        open_states = open_mask(info)
        n, count = len(open_states), int(open_states.sum())
        check_int("the number of states to draw", k, 1, max(count, 1), LabelError)
        b = 1 + labels_made(obs, info)
        parts = [
            np.where(open_states, of_length(n, feature(obs, name)), 0.0) for name in (self.explore, "predecessors")
        ]
        orders = [iter(gumbel_top_k(part, open_states, count, rng).tolist()) for part in parts]
        left = [float(part.sum()) for part in parts]
        free, chosen = open_states.copy(), np.empty(k, np.int64)
        for i, unit in enumerate(rng.random(k)):
            alpha = self.exploration(b + i, n)
            explore, exploit = alpha * max(left[0], 0.0), (1 - alpha) * max(left[1], 0.0)
            order = orders[0] if unit * (explore + exploit) < explore or exploit <= 0.0 else orders[1]
            state = next(s for s in order if free[s])
            free[state] = False
            left = [mass - float(part[state]) for mass, part in zip(left, parts, strict=True)]
            chosen[i] = state
        return chosen


@register("guided-on-policy")
@dataclass
class GuidedOnPolicy(Guided):
    """Like `Guided`, but explores in proportion to the visitation of the current policy."""

    name = "guided-on-policy"
    explore = "on_policy_visitation"
    features = ("labelled", "on_policy_visitation", "predecessors")
