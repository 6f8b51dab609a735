"""from_sb3: a model of Stable-Baselines3 or sb3-contrib as a strategy."""

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, Info, Observation, Taxonomy, only_open, open_mask, top_k
from agents.loaded_agent import LoadedAgent
from agents.registry import load
from agents.sb3.policy_files import read_policy, saved_data
from agents.sb3.policy_scores import PolicyScores
from agents.sb3.sb3_agents import CARD
from selectenv.checks import check_callable, check_instance, shown
from selectenv.errors import MissingExtraError, ObservationError, OptionTypeError, UnknownCostWarning
from selectenv.evaluation.evaluator import Calls
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.view import SelectionView
from selectenv.wrappers.flat_observation import flattened

Observe = Callable[[Observation, Info], Any]
"""Observation and info of the environment -> what the model was trained to see."""
GIVE_OBSERVE = "give from_sb3 a function observe(obs, info) that returns what the model was trained to see"


class Sb3Strategy(Agent):
    """Labels the state that a trained model prefers among those that can still be labelled.

    States are compared by the log probabilities of the policy (PPO, A2C, TRPO, MaskablePPO, RecurrentPPO), by action
    values (DQN, QR-DQN) or by the scores that it returns (ARS, and any model of `OneShot`). So a model that was trained
    without action masks never labels a state twice, and where its preferred state can be labelled, it labels that one.
    """

    taxonomy = Taxonomy(test_loop="closed", training="iterative", evaluator="training")
    one_at_a_time = True

    def __init__(self, policy: Any, name: str, observe: Observe | None = None, normalise: Any = None) -> None:
        """Play a policy of SB3; see `from_sb3`.

        Args:
            policy: the policy of a model.
            name: the name of the strategy.
            observe: returns what the policy was trained to see.
            normalise: applied to what it sees, as `VecNormalize.normalize_obs` is.
        """
        self.name = name  # type: ignore[misc]  # a strategy of its own
        self._scores, self._space = PolicyScores(policy), policy.observation_space
        self._observe, self._normalise, self._memory = observe, normalise, None
        if self._scores.scores_all_at_once:
            self.taxonomy = Taxonomy("open", "batch", "training")  # type: ignore[misc]

    def train(self, env: Any, seed: int = 0) -> None:
        """Do nothing: the model is trained already."""

    def begin(self, view: SelectionView) -> None:
        """Start an episode: a recurrent policy forgets the last one."""
        self._memory = None

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return how much the model prefers each state [n]; NaN for states that can no longer be labelled."""
        return only_open(self._evaluated(obs, info)[0].max(axis=0), info)

    def select_many(self, obs: Observation, info: Info, k: int, rng: np.random.Generator) -> IntArray:
        """Return the k states [k] that the model prefers; one per entry of its action if it labels in batches."""
        scores, self._memory = self._evaluated(obs, info)
        if len(scores) == 1:
            return top_k(only_open(scores[0], info), k)
        chosen: list[int] = []
        for i in range(k):
            left = only_open(scores[i % len(scores)], info)
            left[chosen] = np.nan
            chosen.append(int(top_k(left, 1)[0]))
        return np.array(chosen, np.int64)

    def _evaluated(self, obs: Observation, info: Info) -> tuple[FloatArray, Any]:
        """Return the scores [labels per step, n] and the memory of the policy after this observation.

        Raises:
            ObservationError: the observation is not what the model was trained on.
        """
        mask = open_mask(info)
        if len(mask) != self._scores.n_states:
            raise ObservationError(
                f"{self.name} was trained to choose among {self._scores.n_states} states, and here are {len(mask)}: "
                "play it in the world that it was trained in"
            )
        seen = matching(self._space, obs, mask) if self._observe is None else self._observe(obs, info)
        _check_shape(self._space, seen)
        if self._normalise is not None:
            seen = self._normalise(seen)
        return self._scores.of(seen, mask, self._memory)


def from_sb3(
    model: Any,
    *,
    observe: Observe | None = None,
    name: str | None = None,
) -> Agent:
    """Return a strategy that plays a model of Stable-Baselines3 or sb3-contrib.

    Args:
        model: a model trained on a reward-selection environment, or the .zip file of one. Only JSON and tensors of a
            file are read, never pickled objects. A file with a policy class of another package has to be loaded by
            someone who trusts it: ``from_sb3(PPO.load(path))``.
        observe: function of an observation and an info of the environment that returns what the model was trained to
            see. By default the entries of the observation that the model knows or, for a model with a flat vector,
            those of `selectenv.wrappers.FlatObservation` or `gymnasium.wrappers.FlattenObservation`, whichever has the
            length of the vector; observations that are flat already are shown as they are. They are normalised if the
            model holds a `VecNormalize`, which files do not contain.
        name: name of the strategy; defaults to the name of the algorithm, or of the file.

    Raises:
        UnsupportedModelError: its actions are not those of an environment of this package, or its file cannot be read
            without unpickling.
        SavedAgentError: the file is missing or damaged.
        MissingExtraError: Stable-Baselines3 is not installed.

    Warns:
        UnknownCostWarning: the model comes from a file, which does not contain the cost of its training.
    """
    if observe is not None:
        check_callable("observe", observe, "obs", "info")
    if name is not None:
        check_instance("name", name, str)
    if isinstance(model, str | os.PathLike):
        if observe is None and CARD in saved_data(model):
            return load(model) if name is None else LoadedAgent(load(model), name)
        policy = read_policy(model)
        _warn_of_unknown_cost()
        return Sb3Strategy(policy, name or Path(model).stem, observe)
    try:
        from stable_baselines3.common.base_class import BaseAlgorithm
    except ImportError as error:
        raise MissingExtraError(
            f"playing models needs Stable-Baselines3 ({error}): pip install 'selectenv[meta]'"
        ) from error
    if not isinstance(model, BaseAlgorithm):
        raise OptionTypeError(
            f"model must be a model of Stable-Baselines3 or sb3-contrib, or the path of its .zip file, not "
            f"{shown(model)}"
        )
    normalised = model.get_vec_normalize_env()
    strategy = Sb3Strategy(
        model.policy,
        name or type(model).__name__,
        observe,
        None if normalised is None else normalised.normalize_obs,
    )
    strategy.training_calls = _training_calls(model)
    return strategy


def matching(space: gym.Space[Any], obs: Observation | NDArray[Any], mask: BoolArray) -> Any:
    """Return the part of an observation that a model with this observation space sees.

    Args:
        space: what the model sees.
        obs: the observation.
        mask: [n] which states can still be labelled.

    Raises:
        ObservationError: the model sees something else.
    """
    if isinstance(obs, np.ndarray):  # a wrapper has flattened it already
        return obs
    if not isinstance(obs, Mapping):
        raise ObservationError(f"an observation is a dict of arrays, as env.reset returns it, not {shown(obs)}")
    if isinstance(space, gym.spaces.Dict):
        unknown = [name for name in space.spaces if name not in obs]
        if unknown:
            raise ObservationError(
                f"the model sees {', '.join(unknown)}, which observations do not have: they have {', '.join(obs)}; "
                f"{GIVE_OBSERVE}"
            )
        return {name: obs[name] for name in space.spaces}
    size = sum(np.size(values) for values in obs.values())
    if space.shape == (size,):
        return np.concatenate([np.ravel(obs[name]) for name in sorted(obs)]).astype(np.float32)
    if space.shape == (size + len(mask),):
        return flattened(obs, mask)
    raise ObservationError(
        f"the model sees {space}, which is neither the observation nor a flat vector of its {size} numbers, with or "
        f"without the {len(mask)} of the action mask; it may have been trained with other `features`: {GIVE_OBSERVE}"
    )


def _check_shape(space: gym.Space[Any], seen: Any) -> None:
    """Raise unless what a model is shown has the shape that it was trained on."""
    parts = space.spaces if isinstance(space, gym.spaces.Dict) else {"": space}
    shown_parts = seen if isinstance(space, gym.spaces.Dict) else {"": seen}
    for name, part in parts.items():
        try:
            shape = np.shape(shown_parts[name])
        except (KeyError, TypeError, ValueError, IndexError):
            shape = None
        if shape != part.shape:
            what = f"an entry {name!r} of shape {part.shape}" if name else f"an array of shape {part.shape}"
            got = "nothing of that kind" if shape is None else f"shape {shape}"
            raise ObservationError(f"the model was trained to see {what}, and is shown {got}; {GIVE_OBSERVE}")


def _training_calls(model: Any) -> Calls:
    """Return the performances that the environments of a model disclosed."""
    vectorised = model.get_env()
    if vectorised is None:
        _warn_of_unknown_cost()
        return Calls()
    return sum(vectorised.get_attr("calls"), Calls())


def _warn_of_unknown_cost() -> None:
    warnings.warn(
        "the file of a model does not contain the cost of its training, which counts as 0 here; a model that still has "
        "its environments knows its cost",
        UnknownCostWarning,
        stacklevel=3,
    )
