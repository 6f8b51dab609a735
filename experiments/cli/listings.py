"""What `selectenv list` prints: studies, worlds, agents and learners, with those of installed extensions."""

import inspect
from collections.abc import Callable
from typing import Any

import agents
import selectenv
from experiments.cli.tables import WIDTH, table
from experiments.studies import find_studies
from selectenv.learners import LEARNERS


def list_studies() -> str:
    """Return one line per study: its name and the question that it answers."""
    rows = [(study.name, study.question.strip().split("\n\n")[0]) for study in find_studies().values()]
    return table(("study", "question"), rows, WIDTH)


def list_worlds() -> str:
    """Return one line per world: its name, its environment id, its default learner and its first sentence."""
    rows = [
        (name, selectenv.env_id(name), row.published.learner, _first_sentence(row.make))
        for name, row in selectenv.WORLDS.items()
    ]
    return table(("world", "environment", "learner", "description"), rows, WIDTH)


def list_agents() -> str:
    """Return one line per strategy: its name, when it asks the evaluator, and its first sentence."""
    rows = [(name, kind.taxonomy.evaluator, _first_sentence(kind)) for name, (kind, _) in agents.AGENTS.items()]
    return table(("agent", "asks evaluator", "description"), rows, WIDTH)


def list_learners() -> str:
    """Return one line per learner: its name and its first sentence."""
    return table(("learner",), [(name,) for name in LEARNERS], WIDTH)


def _first_sentence(described: Any) -> str:
    """Return the first line of a docstring; a partial is described by the function that it calls."""
    text = inspect.getdoc(getattr(described, "func", described)) or ""
    return text.split("\n")[0]


LISTINGS: dict[str, Callable[[], str]] = {
    "studies": list_studies,
    "worlds": list_worlds,
    "agents": list_agents,
    "learners": list_learners,
}
"""What can be listed, and how."""
