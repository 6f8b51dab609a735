"""A study: cells, a function that runs one, and rows that compare the results with the published numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.analysis.row import Row
from experiments.engine.agent_versions import with_agent_version
from experiments.engine.cell import Cell, Result
from experiments.engine.problems import cell_problem
from experiments.engine.runner import CELLS_PER_TASK, RunCell
from selectenv.problem import SelectionProblem


def no_figures(results: list[Result]) -> dict[str, Any]:
    """Return no figures."""
    return {}


def no_findings(rows: list[Row]) -> list[str]:
    """Return no findings."""
    return []


@dataclass(frozen=True)
class Study:
    """A question and how to answer it."""

    name: str
    question: str
    cells: Callable[[int, str], list[Cell]]
    """Seeds and solver -> cells."""
    run_cell: RunCell
    rows: Callable[[list[Result]], list[Row]]
    seeds: int = 100
    """Default number of seeds."""
    figures: Callable[[list[Result]], dict[str, Any]] = no_figures
    """Title -> Matplotlib figure."""
    place: int = 100
    """Position in the list of studies, which is sorted by it."""
    solvers: tuple[str, ...] = ("exact", "sampled")
    """Solvers that it can be run with."""
    findings: Callable[[list[Row]], list[str]] = no_findings
    """Rows -> sentences for the top of the report."""
    scales: tuple[str, ...] | None = None
    """Scales that are run by default; None means all."""
    problem_of: Callable[[Cell], SelectionProblem] = cell_problem
    """Cell -> problem, used to draw the labels of the cell."""
    cells_per_task: int = CELLS_PER_TASK
    """Cells that are sent to a worker together; 1 where a cell takes minutes, so that little is lost."""
    cpu_hours: Callable[[list[Cell]], float] | None = None
    """Cells -> estimated CPU hours; None for short studies."""

    def __post_init__(self) -> None:
        """Add the versions of agents to cells, so that a changed agent is run again."""
        made = self.cells
        object.__setattr__(self, "cells", lambda seeds, solver: [with_agent_version(c) for c in made(seeds, solver)])
