"""The input of `auto`: the features of `learned`, its scores, and what is imagined about every state."""

import numpy as np

from agents.base import Info, Observation, open_mask
from agents.imagine.imagine_agent import Imagine
from agents.imagine.outlook import BY_STATE, OVERALL, PROPOSED
from agents.imagine.reward_prior import FAMILIES
from agents.learned.behaviour_features import ranks
from agents.learned.feature_context import FeatureContext
from agents.learned.moves import moves_of
from agents.learned.selector import SHIPPED, read_selector, score_states, selector_path
from agents.learned.state_features import ALL_NAMES
from selectenv.typing import Float32Array
from selectenv.view import SelectionView

LEARNED = ("learned rank", "learned share")
"""Names of the features that come from the scores of `learned`."""
IMAGINED = (*BY_STATE, *OVERALL, *(f"family {family.name}" for family in FAMILIES), *LEARNED, *PROPOSED)
"""Names of the features that follow those of `learned`."""
STACKED_NAMES = (*ALL_NAMES, *IMAGINED)
LEAST_SHARE = np.exp(-10.0)
"""Smallest share of a state in the softmax of the scores of `learned`."""


class StackedContext:
    """Computes the features of the states during an episode."""

    def __init__(self, view: SelectionView, imagine: Imagine) -> None:
        """Follow an episode.

        Args:
            view: what may be known about the episode.
            imagine: the imagination, which has begun with the same view.
        """
        self._parts, card = read_selector(selector_path(SHIPPED))
        self._moves = moves_of(view.dataset)
        self._context = FeatureContext.of(view, (), tuple(card["features"]))
        self._imagine = imagine

    def features(self, obs: Observation, info: Info) -> Float32Array:
        """Return the features of every state [n, features]."""
        own = self._context.features(obs, info)
        seen, open_states = own[:, 0] > 0, open_mask(info)
        scores = score_states(self._parts, own, self._moves).astype(np.float64)
        outlook = self._imagine.outlook(obs)
        wanted = np.argsort(-np.where(open_states & seen, scores, -np.inf), kind="stable")
        columns = {**outlook.columns(), **outlook.proposal_columns(wanted[: len(outlook.plan)])}
        columns["learned rank"] = ranks(scores, open_states & seen)
        chance = np.where(open_states, np.exp(scores - scores.max(where=open_states, initial=-np.inf)), 0.0)
        columns["learned share"] = 1 + np.log(np.maximum(chance / max(float(chance.sum()), 1e-300), LEAST_SHARE)) / 10
        more = np.zeros((len(own), len(IMAGINED)), np.float32)
        for i, name in enumerate(IMAGINED):
            more[:, i] = columns[name]
        more[~seen] = 0
        return np.concatenate([own, more], axis=1)
