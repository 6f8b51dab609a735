"""The table of strategies by name: a new one is one file and one row."""

import os
import zipfile
from dataclasses import fields
from typing import Any

from agents.base import Agent
from agents.errors import SavedAgentError
from agents.heuristics.adaptive_mixture import AdaptiveMixture
from agents.heuristics.guided import Guided, GuidedOnPolicy
from agents.heuristics.terminal import Terminal
from agents.heuristics.terminal_guided import TerminalGuided
from agents.heuristics.uniform import Uniform
from agents.heuristics.visitation import Visitation, VisitationOnPolicy
from agents.learned.selector import Learned
from agents.sb3.sb3_agents import Dqn, MaskablePpo, Ppo, Sb3Agent, load_sb3
from agents.search.beam import Beam
from agents.search.best_of import BestOf
from agents.search.branch_and_bound import Exact
from agents.search.brute_force import BruteForce, ReducedBruteForce
from agents.search.evolution import EvolutionStrategy
from agents.search.optuna_search import OptunaSearch
from agents.search.search_agent import TrainedAgent, read_memory
from agents.search.sequential_greedy import SequentialGreedy
from agents.search.swap_search import SwapSearch
from selectenv.checks import check_name, did_you_mean
from selectenv.errors import OptionError, UnknownNameError

AGENTS: dict[str, tuple[type[Agent], dict[str, Any]]] = {
    "uniform": (Uniform, {}),
    "visitation": (Visitation, {}),
    "visitation-on-policy": (VisitationOnPolicy, {}),
    "guided": (Guided, {}),
    "guided-on-policy": (GuidedOnPolicy, {}),
    "terminal": (Terminal, {}),
    "terminal-guided": (TerminalGuided, {}),
    "adaptive-mixture": (AdaptiveMixture, {}),
    "learned": (Learned, {}),
    "sequential-greedy": (SequentialGreedy, {}),
    "beam": (Beam, {}),
    "swap-search": (SwapSearch, {}),
    "best-of": (BestOf, {}),
    "es": (EvolutionStrategy, {}),
    "es-50": (EvolutionStrategy, {"k": 10, "m": 5}),
    "es-200": (EvolutionStrategy, {"k": 10, "m": 20}),
    "es-1000": (EvolutionStrategy, {"k": 10, "m": 100, "form": "minatar"}),
    "optuna": (OptunaSearch, {}),
    "brute-force": (BruteForce, {}),
    "reduced-brute-force": (ReducedBruteForce, {}),
    "exact": (Exact, {}),
    "maskable-ppo": (MaskablePpo, {}),
    "ppo": (Ppo, {}),
    "dqn": (Dqn, {}),
}
"""Name -> class and preset options."""


def make(name: str, **options: Any) -> Agent:
    """Make a strategy by name.

    Args:
        name: a key of `AGENTS`.
        **options: its options; presets such as those of "es-50" can be overridden.

    Raises:
        UnknownNameError: a strategy or option that does not exist; the message says what was probably meant.
        OptionError: a value that is not allowed.
    """
    kind, preset = AGENTS[check_name("agent", name, AGENTS)]
    allowed = [option.name for option in fields(kind)]  # type: ignore[arg-type]  # every agent is a dataclass
    for option in options:
        if option not in allowed:
            has = did_you_mean(option, allowed) if allowed else "it has none."
            raise UnknownNameError(f"{name} has no option {option!r}; {has}")
    try:
        agent = kind(**{**preset, **options})
    except TypeError as error:
        raise OptionError(f"{name}: {error}") from None
    agent.name = name  # type: ignore[misc]  # a preset goes by its own name
    return agent


def load(path: str | os.PathLike[str]) -> TrainedAgent | Sb3Agent:
    """Load a trained strategy from the file that its `save` wrote.

    Raises:
        SavedAgentError: the file is missing, damaged, foreign, or of a strategy that this release has not got.
    """
    if os.fspath(path).endswith(".zip") or zipfile.is_zipfile(path):
        return load_sb3(path, make)
    memory = read_memory(path)
    try:
        agent = make(memory["agent"], **memory["options"])
    except (OptionError, TypeError) as error:
        raise SavedAgentError(f"{os.fspath(path)!r} holds a strategy that cannot be made here: {error}") from None
    if not isinstance(agent, TrainedAgent):
        raise SavedAgentError(f"{os.fspath(path)!r} holds {agent.name!r}, which learns nothing that could be saved")
    agent.remember(memory)
    return agent
