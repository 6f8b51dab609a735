"""The loop that plays one episode with any strategy."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, Taxonomy, check_features
from selectenv.checks import check_int, shown
from selectenv.errors import NoRewardsWarning, OptionError, OptionTypeError
from selectenv.evaluation.evaluator import Calls
from selectenv.streams import generator
from selectenv.typing import IntArray
from selectenv.wrappers import BatchLabels, OneShot
from selectenv.wrappers.batch_labels import selection_env


@dataclass(frozen=True, eq=False)
class Episode:
    """The labels of an episode, their performance and their cost."""

    agent: str
    labels: IntArray
    """Numbers of the labelled states in the order of labelling; initial labels come first."""
    ids: NDArray[Any]
    """The world's own ids of the same states."""
    performance: float | None
    """Expected return of the policy learned from the labels; None without an evaluator."""
    calls: Calls
    """Performances disclosed to the strategy, in training and in play; its own final score is not among them."""
    taxonomy: Taxonomy
    """What the strategy needs to know; for closed-loop strategies, this includes oracles of the learner."""
    replaced: list[Any] = field(default_factory=list)
    """Ids that a trained strategy wanted but the data never visit."""

    @property
    def cost(self) -> int:
        """Number of performances disclosed to the strategy, in training and in play: `asked` and `disclosed`."""
        return self.calls.cost

    @property
    def asked(self) -> int:
        """Evaluations that the strategy asked for, whether computed or cached."""
        return self.calls.asked

    @property
    def disclosed(self) -> int:
        """Performances that were paid to the strategy as rewards."""
        return self.calls.disclosed

    @property
    def computed(self) -> int:
        """Those of the performances that had to be computed rather than read from the cache."""
        return self.calls.computed

    def __repr__(self) -> str:
        """Return one line: the strategy, the labels, their performance and their cost."""
        performance = "unknown" if self.performance is None else f"{self.performance:.6g}"
        return f"<Episode of {self.agent}: {len(self.labels)} labels, performance {performance}, cost {self.cost}>"


def play(env: gym.Env[Any, Any], agent: Agent, seed: int = 0) -> Episode:
    """Play one episode.

    A closed-loop strategy labels as many states at a time as the environment labels between two refits, since the
    learned features do not change in between. An open-loop strategy labels all states at once. With `BatchLabels` both
    label k states per step.

    Args:
        env: a reward-selection environment, wrapped or not.
        agent: the strategy, trained if it needs training.
        seed: seed of the environment and of the strategy.

    Raises:
        MissingFeatureError: the environment leaves out features that the strategy needs.

    Warns:
        NoRewardsWarning: the strategy uses rewards, and the data have none.
    """
    if not isinstance(agent, Agent):
        raise OptionTypeError(f"agent must be an Agent, made with agents.make(name), not {shown(agent)}")
    inner, seed = selection_env(env), check_int("seed", seed, 0)
    if layer(env, OneShot) is not None:
        raise OptionError(
            "a OneShot environment takes scores as actions; unwrap it to play a strategy that labels states"
        )
    batches = layer(env, BatchLabels)
    before = replace(inner.calls)
    obs, info = env.reset(seed=seed)
    if isinstance(obs, dict):
        check_features(agent.name, agent.features, obs)
    rng = generator(seed, "selection", agent.name)
    if agent.taxonomy.test_loop == "closed" and not inner.problem.dataset.has_rewards:
        warnings.warn(
            f"{agent.name} uses revealed rewards, but the data have none: it plays as if labels revealed nothing",
            NoRewardsWarning,
            stacklevel=2,
        )
    view = inner.view()
    agent.begin(view)
    inner.judge()
    taxonomy = agent.taxonomy
    if view.oracle and taxonomy.test_loop == "closed":
        known = [oracle for oracle in (taxonomy.oracle, view.oracle) if oracle]
        taxonomy = replace(taxonomy, oracle=", ".join(known))
    terminated = False
    performance = None
    while not terminated:
        left = inner.budget - inner.labels_spent
        if batches is not None:
            k = min(left, batches.k)
        else:
            between_refits = 1 if agent.one_at_a_time else inner.labels_to_refit
            k = left if agent.taxonomy.test_loop == "open" else min(left, between_refits)
        choice: Any = agent.select(obs, info, rng) if k == 1 else agent.select_many(obs, info, k, rng)
        if batches is not None:
            choice = np.resize(choice, batches.k)  # entries beyond the budget are ignored
        obs, _, terminated, _, news = env.step(choice)
        info = {**info, **news}
        performance = news.get("performance")
    return Episode(
        agent.name,
        inner.labels,
        inner.problem.states[inner.labels],
        performance,
        inner.calls - before + agent.training_calls,
        taxonomy,
        replaced=list(agent.replaced),
    )


W = TypeVar("W", bound=gym.Wrapper[Any, Any, Any, Any])


def layer(env: gym.Env[Any, Any], kind: type[W]) -> W | None:
    """Return the wrapper of type ``kind`` around an environment, if there is one."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None
