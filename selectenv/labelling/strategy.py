"""The strategies of labelling sessions: agents, or names that the installed registry of agents resolves."""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np

from selectenv.checks import shown
from selectenv.errors import ExtensionError, OptionTypeError, StrategyError
from selectenv.typing import IntArray
from selectenv.view import SelectionView

GROUP = "selectenv.strategies"
"""Entry-point group of the function that makes a strategy from a name and options."""
REQUIRED = ("name", "taxonomy", "one_at_a_time", "begin", "select", "select_many")
"""Attributes and methods of a strategy."""


class Strategy(Protocol):
    """What a session requires of an agent; `agents.Agent` satisfies it."""

    name: str
    taxonomy: Any
    one_at_a_time: bool

    def begin(self, view: SelectionView) -> None:
        """Receive what a strategy may know."""

    def select(self, obs: dict[str, Any], info: dict[str, Any], rng: np.random.Generator) -> int:
        """Return the number of the state to label next."""

    def select_many(self, obs: dict[str, Any], info: dict[str, Any], k: int, rng: np.random.Generator) -> IntArray:
        """Return the numbers [k] of k different states to label, in order."""


def find_strategy(strategy: Any, **options: Any) -> Strategy:
    """Return a strategy that can choose queries for a person.

    Args:
        strategy: an agent, or the name of one.
        **options: options of a named one.

    Raises:
        StrategyError: it asks the evaluator.
        OptionTypeError: it is neither a name nor an agent.
        UnknownNameError: there is no strategy of this name.
    """
    found = _maker()(strategy, **options) if isinstance(strategy, str) else strategy
    if isinstance(found, type) or not all(hasattr(found, name) for name in REQUIRED):
        raise OptionTypeError(
            f"strategy must be the name of an agent or an agent, made with agents.make(name), not {shown(strategy)}"
        )
    when = {"training": "is trained with", "playing": "chooses with"}.get(found.taxonomy.evaluator)
    if when:
        raise StrategyError(
            f"the strategy {found.name!r} {when} the evaluator, and a person cannot say what a policy is worth; "
            "choose one that never asks it, such as 'auto', 'learned', 'terminal-guided' or 'uniform'"
        )
    agent: Strategy = found
    return agent


def described(strategy: Strategy) -> dict[str, Any]:
    """Return name and options of a strategy, as the session file stores them; None for options that are not JSON."""
    agent: Any = strategy
    options: dict[str, Any] | None = {}
    if is_dataclass(agent):
        options = {option.name: getattr(agent, option.name) for option in fields(agent) if option.init}
    try:
        options = json.loads(json.dumps(options))
    except (TypeError, ValueError):
        options = None
    return {"name": strategy.name, "options": options}


def _maker() -> Callable[..., Any]:
    points = entry_points(group=GROUP)
    if not points:
        raise ExtensionError(
            f"no installed package has an entry point in the group {GROUP!r}: install selectenv again, or pass an agent"
        )
    make: Callable[..., Any] = next(iter(points)).load()
    return make
