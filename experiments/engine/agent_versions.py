"""Versions of agents in cells, so that results of an agent are not taken for those of its changed successor."""

from dataclasses import replace

import agents
from agents.registry import SAVED
from experiments.engine.cell import Cell
from selectenv.references import is_reference

VERSION = "agent_version"
"""The setting that holds the version."""


def version_of(strategy: str) -> int | None:
    """Return the version of the agent that a strategy names, 1 for a saved one; None for one that is not an agent."""
    if strategy in list(agents.AGENTS) or is_reference(strategy):
        return agents.AGENTS.find(strategy).kind.version
    return 1 if strategy.endswith(SAVED) else None


def with_agent_version(cell: Cell, agent: str | None = None) -> Cell:
    """Return the cell with the version of its agent among its settings if that is greater than 1.

    Cells that name the weights of their agent identify it by them and are returned as they are.

    Args:
        cell: what to run.
        agent: name of the agent; defaults to the strategy of the cell.
    """
    version = version_of(cell.strategy if agent is None else agent)
    if version is None or "weights" in cell.settings:
        return cell
    settings = {name: value for name, value in cell.settings.items() if name != VERSION}
    return replace(cell, settings={**settings, VERSION: version} if version > 1 else settings)
