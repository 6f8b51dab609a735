"""Registry of strategies: registration, construction by name, loading."""

import importlib
import os
import pkgutil
import zipfile
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

from agents.base import Agent
from agents.errors import SavedAgentError
from agents.loaded_agent import LoadedAgent
from selectenv.checks import check_name, check_path, did_you_mean, shown
from selectenv.errors import OptionError, OptionTypeError, UnknownNameError
from selectenv.extensions import Registry

A = TypeVar("A", bound=type[Agent])
SAVED = (".zip", ".json")
"""How the names of files of saved strategies end; no other name of a strategy contains a dot."""


class AgentRow(NamedTuple):
    """A row of the table of strategies."""

    kind: type[Agent]
    preset: dict[str, Any]
    """Preset options of the name."""


def _row_of(name: str, kind: Any) -> AgentRow:
    if not isinstance(kind, type) or not issubclass(kind, Agent) or "__dataclass_fields__" not in vars(kind):
        raise OptionTypeError(
            f"the agent {shown(name)} must be a dataclass that derives from agents.Agent, not {shown(kind)}"
        )
    return AgentRow(kind, {})


AGENTS: Registry[AgentRow] = Registry("agent", "selectenv.agents", _row_of)
"""Name -> class and preset options."""


def register(name: str, **preset: Any) -> Callable[[A], A]:
    """Register a strategy: a dataclass that derives from `Agent`, whose fields are its options.

    Args:
        name: the name that `agents.make` takes.
        **preset: preset options; a class can be registered under several names with different presets.
    """

    def add(kind: A) -> A:
        AGENTS.add(name, _row_of(name, kind)._replace(preset=preset))
        return kind

    return add


def make(name: str, **options: Any) -> Agent:
    """Make a strategy by name.

    Args:
        name: a key of `AGENTS`; "module:Class" for a class that is not registered; or the path of a file (.zip or
            .json) of a saved strategy or of a model of Stable-Baselines3, which plays as it was saved.
        **options: its options; presets such as those of "es-50" can be overridden.

    Raises:
        UnknownNameError: the strategy or an option does not exist; the message suggests the nearest names.
        OptionError: an option has an invalid value.
        ExtensionError: the module does not exist or cannot be imported.
        SavedAgentError: the file is missing or damaged.
    """
    if isinstance(name, str) and name.endswith(SAVED):
        if options:
            raise UnknownNameError(f"{name} is a saved strategy, which has no options; got {', '.join(options)}")
        return LoadedAgent(load(name), name)
    kind, preset = AGENTS.find(name)
    allowed = [option.name for option in fields(kind) if option.init]  # type: ignore[arg-type]  # a dataclass, see above
    for option in options:
        if option not in allowed:
            hint = did_you_mean(option, allowed) if allowed else "it has no options."
            raise UnknownNameError(f"{name} has no option {option!r}; {hint}")
    try:
        agent = kind(**{**preset, **options})
    except TypeError as error:
        raise OptionTypeError(f"{name}: {error}") from error
    agent.name = name  # type: ignore[misc]  # a preset has its own name
    return agent


def load(path: str | os.PathLike[str]) -> Agent:
    """Load a trained strategy from the file that its `save` wrote, or a model from that of Stable-Baselines3.

    Raises:
        SavedAgentError: the file is missing or damaged, or contains a strategy that this release does not have.
        UnsupportedModelError: a model of Stable-Baselines3 that cannot be loaded without unpickling.
    """
    from agents.sb3.from_sb3 import from_sb3
    from agents.sb3.policy_files import saved_data
    from agents.sb3.sb3_agents import CARD, load_sb3
    from agents.search.search_agent import SearchAgent, read_memory

    path = check_path("path", path)
    if os.fspath(path).endswith(".zip") or zipfile.is_zipfile(path):
        is_model = "policy_class" in (data := saved_data(path)) and CARD not in data
        return from_sb3(path) if is_model else load_sb3(path, _make_registered)
    memory = read_memory(path)
    try:
        agent = _make_registered(memory["agent"], **memory["options"])
    except (OptionError, TypeError) as error:
        raise SavedAgentError(
            f"{os.fspath(path)!r} contains a strategy that cannot be made by this release: {error}"
        ) from None
    if not isinstance(agent, SearchAgent):
        raise SavedAgentError(
            f"{os.fspath(path)!r} contains {agent.name!r}, which is not a search strategy and cannot be saved"
        )
    agent.remember(memory)
    return agent


def _make_registered(name: str, **options: Any) -> Agent:
    """Make a strategy that a file names: a registered one, so that no file decides which modules are imported."""
    return make(check_name("agent", name, AGENTS), **options)


BUILT_IN = (
    "agents.heuristics",
    "agents.learned.selector",
    "agents.imagine.imagine_agent",
    "agents.imagine.stacked_agent",
    "agents.search",
    "agents.sb3.sb3_agents",
)
"""Modules that register strategies, and packages of such modules, in the order in which strategies are listed."""


def _register_built_in() -> None:
    for name in BUILT_IN:
        module = importlib.import_module(name)
        for inner in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
            importlib.import_module(inner.name)


_register_built_in()
