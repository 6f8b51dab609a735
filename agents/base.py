"""Base classes of selection strategies, which score states and choose the ones to label."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from agents.errors import WeightsError
from selectenv.checks import as_reals, check_instance, check_name, is_int, shown
from selectenv.errors import LabelError, MissingFeatureError, ObservationError
from selectenv.evaluation.evaluator import Calls
from selectenv.options import FEATURES
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.view import SelectionView

A = TypeVar("A", bound=np.generic)
Observation = dict[str, Any]
Info = dict[str, Any]
UNLIKELY = -1e6
"""Log weight of states with weight 0: they are drawn only if no other states are left."""
LARGEST_WEIGHT = 1e290
"""Largest weight of a state: sums of weights stay below the largest float, about 1e308."""


@dataclass(frozen=True)
class Taxonomy:
    """The categories of the paper that a strategy falls into, and what it needs to know."""

    test_loop: str
    """"open" if the labels do not depend on what was learned from earlier ones, else "closed"."""
    training: str
    """"none", "batch" (whole sets) or "iterative" (one label at a time)."""
    evaluator: str
    """When it asks the evaluator: "never", "training" or "playing"."""
    oracle: str = ""
    """What it needs to know beyond data and evaluator, if anything."""

    def __post_init__(self) -> None:
        """Check the words.

        Raises:
            UnknownNameError: a category does not have this word; the message lists those that it has.
        """
        check_name("test_loop", self.test_loop, ("open", "closed"))
        check_name("training", self.training, ("none", "batch", "iterative"))
        check_name("evaluator", self.evaluator, ("never", "training", "playing"))
        check_instance("oracle", self.oracle, str)


class Agent(ABC):
    """A selection strategy. Subclasses are dataclasses whose fields are its options."""

    name: ClassVar[str]
    taxonomy: ClassVar[Taxonomy]
    version: ClassVar[int] = 1
    """Bump this when the same options and seed come to choose other labels: stored results are then run again."""
    slow: ClassVar[bool] = False
    """Whether training takes minutes: such strategies are run only when asked for by name."""
    features: Sequence[str] = ()
    """Features that it needs to observe; `play` raises a `MissingFeatureError` where the environment leaves one out."""
    one_at_a_time: ClassVar[bool] = False
    """Whether it chooses every label anew, even where the learner is not refitted between two labels."""
    training_calls: Calls = Calls()
    """Performances disclosed in training."""
    search_notes: Mapping[str, Any] = MappingProxyType({})
    """Details of the search that trained the strategy, ready for JSON; empty for strategies that do not search."""
    replaced: Sequence[Any] = ()
    """Ids that a trained strategy wanted but the data never visit."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Keep `__repr__`, which `dataclass` would replace: it shows neither the name nor one line only."""
        super().__init_subclass__(**more)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return one line: the name and the options."""
        options: list[str] = [field.name for field in fields(self) if field.init] if is_dataclass(self) else []
        listed = ", ".join(f"{name}={shown(getattr(self, name, None))}" for name in options)
        return f"<agent {getattr(self, 'name', type(self).__name__)}{': ' if listed else ''}{listed}>"

    def train(self, env: gym.Env[Any, Any], seed: int = 0) -> None:  # noqa: B027 - most strategies need no training
        """Train through the evaluator of ``env``; strategies that need no training do nothing."""

    def begin(self, view: SelectionView) -> None:  # noqa: B027 - most strategies need only observations
        """Receive what a strategy may know about the episode that has just started.

        Args:
            view: the reward-free data, the rewards revealed so far, and the rule, gamma and budget of the episode.
        """

    @abstractmethod
    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return a score per state [n]; NaN for states that can no longer be labelled."""

    @abstractmethod
    def select_many(self, obs: Observation, info: Info, k: int, rng: np.random.Generator) -> IntArray:
        """Return the numbers [k] of k different states to label, in order."""

    def select(self, obs: Observation, info: Info, rng: np.random.Generator) -> int:
        """Return the number of the state to label next."""
        return int(self.select_many(obs, info, 1, rng)[0])


class SamplingAgent(Agent):
    """A strategy that draws states in proportion to weights."""

    @abstractmethod
    def weights(self, obs: Observation, info: Info) -> FloatArray:
        """Return finite weights [n] of 0 or more; those of states that cannot be labelled do not matter."""

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return the probability [n] that each state is drawn next; NaN for states that can no longer be labelled."""
        open_states = open_mask(info)
        weights = self._checked_weights(obs, info, open_states)
        total = weights.sum()
        share = weights / total if total > 0 else open_states / max(open_states.sum(), 1)
        return np.where(open_states, share, np.nan)

    def select_many(self, obs: Observation, info: Info, k: int, rng: np.random.Generator) -> IntArray:
        """Draw k states [k] without replacement in one pass."""
        open_states = open_mask(info)
        return gumbel_top_k(self._checked_weights(obs, info, open_states), open_states, k, rng)

    def _checked_weights(self, obs: Observation, info: Info, open_states: BoolArray) -> FloatArray:
        """Return the weights [n], 0 for states that cannot be labelled.

        Raises:
            WeightsError: weights of states that can be labelled are NaN, infinite or negative.
        """
        given = as_reals(f"the weights of {self.name}", self.weights(obs, info), WeightsError)
        if given.ndim != 1:
            raise WeightsError(f"the weights of {self.name} must be one number per state, not of shape {given.shape}")
        weights = np.where(open_states, of_length(len(open_states), given), 0.0)
        if not (weights.min(initial=0.0) >= 0 and weights.max(initial=0.0) <= LARGEST_WEIGHT):
            wrong = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
            which = (
                f"{weights[wrong[0]]} for state number {wrong[0]}" if len(wrong) else f"{weights.max()} is too large"
            )
            raise WeightsError(
                f"the weights of {self.name} must be finite and 0 or more: {which}; weights are shares, so that 0 "
                "stands for a state that is not to be drawn"
            )
        return weights


class RankingAgent(Agent):
    """A strategy that labels the states with the highest scores; ties go to the lower number."""

    def select_many(self, obs: Observation, info: Info, k: int, rng: np.random.Generator) -> IntArray:
        """Return the k states [k] with the highest scores among those that can still be labelled."""
        return top_k(only_open(self.scores(obs, info), info), k)


def feature(obs: Observation, name: str) -> FloatArray:
    """Return a feature of every state [n], or of the episode [1].

    Raises:
        MissingFeatureError: the environment leaves it out.
        ObservationError: this is not an observation.
    """
    values = obs.get(name) if isinstance(obs, dict) else None
    if values is None and isinstance(obs, dict) and not obs.keys().isdisjoint(FEATURES):
        check_features("this strategy", [name], obs)
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiub" or not values.size:
        raise ObservationError(
            f"an observation is a dict of arrays, as env.reset and env.step return it, with {name!r}; got {shown(obs)}"
        )
    found = values.astype(np.float64)
    if not math.isfinite(found.dot(found)):
        raise ObservationError(f"the feature {name!r} of an observation must be finite")
    return found


def check_features(strategy: str, needed: Sequence[str], observed: Collection[str]) -> None:
    """Raise unless all features that a strategy needs are among those that are observed.

    Raises:
        MissingFeatureError: some are not; the message lists those needed.
    """
    missing = [name for name in needed if name not in observed]
    if missing:
        wanted = [name for name in FEATURES if name in observed or name in needed]
        raise MissingFeatureError(
            f"{strategy} needs to observe {', '.join(map(repr, needed))}, and the observation lacks "
            f"{', '.join(map(repr, missing))}: make the environment with features={wanted}, or without `features`"
        )


def open_mask(info: Info) -> BoolArray:
    """Return the mask [n] of states that can still be labelled.

    Raises:
        ObservationError: the info has no such mask.
    """
    values = info.get("action_mask") if isinstance(info, dict) else None
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiub":
        raise ObservationError(
            f"an info is a dict, as env.reset and env.step return it, with an array 'action_mask'; got {shown(info)}"
        )
    mask: BoolArray = values > 0
    return mask


def only_open(scores: FloatArray, info: Info) -> FloatArray:
    """Return the scores [n] of states that can still be labelled, NaN for the others.

    Raises:
        ObservationError: there are not as many scores as states.
    """
    mask = open_mask(info)
    return np.where(mask, of_length(len(mask), scores), np.nan)


def of_length(n: int, values: NDArray[A]) -> NDArray[A]:
    """Return ``values`` if there are ``n`` of them.

    Raises:
        ObservationError: there are more or fewer, so observation and info come from different environments.
    """
    if len(values) != n:
        raise ObservationError(f"the observation has {len(values)} states, the info or the data have {n}")
    return values


def labels_made(obs: Observation, info: Info) -> int:
    """Return the number of labels that the strategy has made so far, without the initial ones."""
    initial = info.get("initial") if isinstance(info, dict) else None
    if not isinstance(initial, np.ndarray) or initial.ndim != 1:
        raise ObservationError(
            f"an info has an array 'initial', as env.reset and env.step return it; got {shown(info)}"
        )
    return int(np.count_nonzero(feature(obs, "labelled"))) - len(initial)


def top_k(scores: FloatArray, k: int) -> IntArray:
    """Return the k states [k] with the highest scores, highest first; NaN scores are skipped."""
    wanted = np.where(np.isnan(scores), -np.inf, scores)
    _check_enough(int((wanted > -np.inf).sum()), k)
    if 0 < k < len(wanted) // 8:  # partial sorting keeps this linear in the number of states
        bar = np.partition(wanted, len(wanted) - k)[len(wanted) - k]
        candidates = np.flatnonzero(wanted >= bar)
    else:
        candidates = np.arange(len(wanted))
    return candidates[np.argsort(-wanted[candidates], kind="stable")[:k]]


def gumbel_top_k(weights: FloatArray, open_states: BoolArray, k: int, rng: np.random.Generator) -> IntArray:
    """Draw k of the open states [k] sequentially without replacement, in proportion to their weights.

    Adding Gumbel noise to log weights and taking the k largest draws from the same distribution as k draws with the
    weights of drawn states set to 0 (Vieira 2014; Kool et al. 2019, https://arxiv.org/abs/1903.06059).
    """
    check_instance("rng", rng, np.random.Generator)
    of_length(len(open_states), weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        keys = np.where(weights > 0, np.log(weights), UNLIKELY) + rng.gumbel(size=len(weights))
    return top_k(np.where(open_states, keys, np.nan), k)


def _check_enough(available: int, k: int) -> None:
    if not is_int(k) or not 1 <= k <= available:
        raise LabelError(
            f"k must be an integer between 1 and the {available} states that can still be labelled; got {shown(k)}"
        )
