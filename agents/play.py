"""One loop serves all strategies."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from agents.base import Agent
from selectenv.checks import check_int
from selectenv.errors import OptionError
from selectenv.streams import generator
from selectenv.typing import IntArray
from selectenv.wrappers import BatchLabels, OneShot
from selectenv.wrappers.batch_labels import selection_env


@dataclass(frozen=True, eq=False)
class Episode:
    """What was labelled, what it earned and what it cost."""

    agent: str
    labels: IntArray
    """Numbers of the labelled states, in order, those labelled at random at reset first."""
    ids: NDArray[Any]
    """The world's own ids of the same states."""
    performance: float | None
    """Expected return of the policy learned from the labels; None without an evaluator."""
    asked: int
    """Evaluator calls asked for, in training and in play; what marginal rewards tell counts too."""
    computed: int
    """Those that had to be computed."""
    replaced: list[Any] = field(default_factory=list)
    """Ids that a trained strategy wanted but the data never saw."""


def play(env: gym.Env[Any, Any], agent: Agent, seed: int = 0) -> Episode:
    """Play one episode.

    A closed-loop strategy labels as many states at a time as the environment labels between two refits: what was
    learned does not change in between. An open-loop strategy labels all states at once. With `BatchLabels` both keep to
    its k.

    Args:
        env: an environment that plays reward selection, wrapped or not.
        agent: the strategy, trained if it has to be.
        seed: decides the episode: the environment's chance and the strategy's.
    """
    if not isinstance(agent, Agent):
        raise OptionError(f"a strategy is made with agents.make(name), not {agent!r}")
    inner, seed = selection_env(env), check_int("seed", seed, 0)
    if layer(env, OneShot) is not None:
        raise OptionError("a OneShot environment is played by scores, not by a strategy that labels")
    batches = layer(env, BatchLabels)
    before = inner.calls.asked, inner.calls.computed
    obs, info = env.reset(seed=seed)
    rng = generator(seed, "selection", agent.name)
    agent.begin(env)
    left, open_states = inner.budget - inner.labels_spent, int(info["action_mask"].sum())
    if left > open_states:
        raise OptionError(f"{left} labels are to be made, but the data saw only {open_states} states without one")
    terminated = False
    performance = None
    while not terminated:
        left = inner.budget - inner.labels_spent
        if batches is not None:
            k = min(left, batches.k)
        else:
            k = left if agent.taxonomy.test_loop == "open" else min(left, inner.labels_to_refit)
        choice: Any = agent.select(obs, info, rng) if k == 1 else agent.select_many(obs, info, k, rng)
        if batches is not None:
            choice = np.resize(choice, batches.k)  # labels beyond the budget are not made
        obs, _, terminated, _, news = env.step(choice)
        info = {**info, **news}
        performance = news.get("performance")
    return Episode(
        agent.name,
        inner.labels,
        inner.problem.states[inner.labels],
        performance,
        asked=inner.calls.asked - before[0] + agent.training_calls[0],
        computed=inner.calls.computed - before[1] + agent.training_calls[1],
        replaced=list(getattr(agent, "replaced", [])),
    )


W = TypeVar("W", bound=gym.Wrapper[Any, Any, Any, Any])


def layer(env: gym.Env[Any, Any], kind: type[W]) -> W | None:
    """Return the wrapper of a kind around an environment, if there is one."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None
