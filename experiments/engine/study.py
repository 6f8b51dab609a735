"""What a study is: cells, a way to run one, and rows that set ours beside the published metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.engine.problems import cell_problem
from experiments.engine.runner import CELLS_PER_TASK, RunCell
from selectenv.problem import SelectionProblem


def no_figures(results: list[Result]) -> dict[str, Any]:
    """Draw nothing."""
    return {}


def no_findings(rows: list[Row]) -> list[str]:
    """Find nothing worth a headline."""
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
    """Seeds by default."""
    figures: Callable[[list[Result]], dict[str, Any]] = no_figures
    """Title -> Matplotlib figure."""
    place: int = 100
    """Where it stands among the studies."""
    solvers: tuple[str, ...] = ("exact", "sampled")
    """Learners it can be run with."""
    findings: Callable[[list[Row]], list[str]] = no_findings
    """What the rows say, in sentences for the top of the report."""
    scales: tuple[str, ...] | None = None
    """Scales of its cells that are run unless another one is asked for; all of them if left out."""
    problem_of: Callable[[Cell], SelectionProblem] = cell_problem
    """The problem of a cell, to draw what was labelled in it."""
    cells_per_task: int = CELLS_PER_TASK
    """Cells that are sent to a worker together; 1 where a cell takes minutes, so that little is lost."""
    cpu_hours: Callable[[list[Cell]], float] | None = None
    """About how long cells take on one core, for studies that take long."""
