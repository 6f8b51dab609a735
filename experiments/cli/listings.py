"""What `selectenv list` prints: studies, worlds, agents and learners, with those of installed extensions."""

import inspect
from collections.abc import Callable
from typing import Any

import selectenv
from agents import AGENTS
from experiments.cli.tables import WIDTH, table
from experiments.studies import find_studies
from selectenv.errors import ExtensionError
from selectenv.learners import LEARNERS
from selectenv.worlds import CONTROL, GAMES, RANDOM, WORLDS

BUILT_IN = {
    "uds": "Q-learning on a table; the rewards of unlabelled states are imputed (UDS).",
    "adapted": "Q-learning on a table at labelled states; elsewhere it imitates the data (adapted rule).",
    "iql": "Implicit Q-learning with a network; the rewards of unlabelled states are imputed (UDS).",
    "iql-adapted": "Implicit Q-learning with a network on labelled states; elsewhere it imitates the data.",
    "bc": "Behaviour cloning with a network: ignores the labels, samples actions.",
    "bc-greedy": "Behaviour cloning with a network: ignores the labels, takes the most likely action.",
}
"""What the learners of this package do; those of extensions are described by their docstring."""
STRATEGIES = {
    "uniform": "Draws every state with the same probability.",
    "visitation": "Draws states in proportion to their visits in the data.",
    "visitation-on-policy": "Draws states in proportion to the visits of the current policy.",
    "guided": "Moves from visited states to the predecessors of the best-valued state.",
    "guided-on-policy": "Guided, but explores where the current policy goes.",
    "terminal": "Starts where episodes terminate and works backwards.",
    "terminal-guided": "Rare terminal states first, then what data, policy and termination favour.",
    "adaptive-mixture": "Explores while the learner's estimate of its own return is right.",
    "learned": "A network trained on random worlds, shipped with the package.",
    "learned-v1": "The first network of this kind, which sees nothing of the data's behaviour.",
    "imagine": "Labels what is worth most under rewards that the data and the labels so far make plausible.",
    "auto": "A network trained on random worlds that sees what learned sees and what imagine imagines.",
    "sequential-greedy": "Adds the state that improves the return most.",
    "beam": "Sequential-greedy that keeps several sets.",
    "swap-search": "Exchanges states of the greedy set, then of random sets.",
    "best-of": "Draws a few sets by visitation and keeps the best one.",
    "es": "Evolution strategy over one score per state.",
    "es-50": "Es with 10 iterations of 5 sets.",
    "es-200": "Es with 10 iterations of 20 sets.",
    "es-1000": "Es with 10 iterations of 100 sets, in the form for many states.",
    "optuna": "TPE, CMA-ES or a genetic algorithm; resumable from disk.",
    "brute-force": "Tries every set, up to a limit.",
    "reduced-brute-force": "Tries every set of states with a reward (needs to know which they are).",
    "exact": "Branch and bound: the best set with a proof, or a set with a proven bound.",
    "maskable-ppo": "Sb3-contrib's PPO with action masks.",
    "ppo": "Stable-Baselines3's PPO.",
    "dqn": "Stable-Baselines3's DQN.",
}
"""What the agents of this package do, as in the README; those of extensions are described by their docstring."""


def list_studies() -> str:
    """Return one line per study: its name and the question that it answers."""
    rows = [(study.name, study.question.strip().split("\n\n")[0]) for study in find_studies().values()]
    return table(("study", "question"), rows, WIDTH)


def list_worlds() -> str:
    """Return one line per world: its name, its environment id, its default learner and what it is."""

    def describe(name: str) -> tuple[str, str]:
        row = WORLDS[name]
        return row.defaults.learner, _world_summary(name, row.make)

    rows = [(name, selectenv.env_id(name), *_described(name, describe)) for name in WORLDS]
    if RANDOM not in WORLDS:
        rows.append((RANDOM, selectenv.env_id(RANDOM), "uds", "A new random world with new data in every episode."))
    return table(("world", "environment", "learner", "description"), rows, WIDTH)


def list_agents() -> str:
    """Return one line per strategy: its name, when it asks the evaluator, and what it does."""

    def describe(name: str) -> tuple[str, str]:
        kind = AGENTS[name].kind
        return kind.taxonomy.evaluator, STRATEGIES.get(name) or _summary(kind)

    return table(("agent", "asks evaluator", "description"), [(n, *_described(n, describe)) for n in AGENTS], WIDTH)


def list_learners() -> str:
    """Return one line per learner: its name, its own options and what it does."""

    def describe(name: str) -> tuple[str, str]:
        return ", ".join(LEARNERS[name].parameters), BUILT_IN.get(name) or LEARNERS[name].summary

    return table(("learner", "own options", "description"), [(n, *_described(n, describe)) for n in LEARNERS], WIDTH)


def _described(name: str, describe: Callable[[str], tuple[str, str]]) -> tuple[str, str]:
    """Return a property and a description; an extension that cannot be loaded is described by its error."""
    try:
        return describe(name)
    except ExtensionError as error:
        return "", f"error: {error}"


def _world_summary(name: str, make: Callable[..., Any]) -> str:
    """Return the summary of a world from its module ("Name: ...") or from the function that makes it."""
    if name in GAMES:
        return f"The MinAtar game {name}."
    if name in CONTROL:
        return f"Gymnasium's {name}, with groups of vectors as what is labelled."
    title, _, text = _summary(inspect.getmodule(make)).partition(": ")
    if title == name:
        return text[:1].upper() + text[1:]
    return _summary(make).removeprefix("Return ")


def _summary(described: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(described) or "").split("\n")[0]


LISTINGS: dict[str, Callable[[], str]] = {
    "studies": list_studies,
    "worlds": list_worlds,
    "agents": list_agents,
    "learners": list_learners,
}
"""What can be listed, and how."""
