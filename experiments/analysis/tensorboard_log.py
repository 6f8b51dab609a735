"""Finished cells in TensorBoard: performance, gap and cost against labels, and the selection drawn."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.analysis.best_known import best_return
from experiments.engine.cell import Cell, Result
from experiments.engine.problems import cell_problem
from selectenv.io.event_log import EventLog, require_tensorboard
from selectenv.problem import SelectionProblem
from selectenv.rendering.selection import draw_figure


class TensorBoardLog:
    """Writes one run per cell under a directory."""

    def __init__(self, folder: Path, problem_of: Callable[[Cell], SelectionProblem] = cell_problem) -> None:
        """Write to the directory ``folder``.

        Args:
            folder: the directory of TensorBoard.
            problem_of: returns the problem of a cell, to draw what was labelled in it; see `Study.problem_of`.

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        require_tensorboard()
        self._folder, self._problem_of = folder, problem_of

    def log(self, result: Result) -> None:
        """Write the run of one cell."""
        cell = result.cell
        variant = str(cell.settings.get("variant", cell.settings.get("budget", ""))).replace(" ", "_")
        parts = (cell.study, cell.world, cell.strategy, variant, f"seed-{cell.seed}")
        # A strategy may be a path, even an absolute one, and "module:name" is not a valid directory everywhere.
        log = EventLog(self._folder.joinpath(*(re.sub(r"[/\\:]", "-", part) for part in parts if part)))
        problem_options = cell.settings.get("problem", {})
        learner = problem_options.get("learner", cell.settings.get("learner", "uds"))
        for record in result.records:
            if "curve" in record:
                log.scalars(record["updates"], {"return_by_updates": record["curve"]})
            value = record.get("return", record.get("train"))
            if value is None:
                continue
            labels = _step(record)
            metrics = {"performance": value, "gap": best_return(cell.world, learner, labels) - value}
            if np.isnan(metrics["gap"]):  # no best set is known in the games
                del metrics["gap"]
            if "cost" in record:
                metrics["cost"] = record["cost"]
            log.scalars(labels, metrics)
        drawn = [record for record in result.records if {"ids", "first"} & record.keys() and "labels" in record]
        if drawn:
            task = self._problem_of(cell)
            ids = drawn[-1]["ids"] if "ids" in drawn[-1] else drawn[-1]["first"]
            labelled_at = np.zeros(task.n_states, np.int64)
            labelled_at[task.actions(ids)] = np.arange(1, len(ids) + 1)
            log.image(_step(drawn[-1]), "selection", draw_figure(task, labelled_at, len(ids)))
        log.close()


def _step(record: dict[str, Any]) -> int:
    """Return the number of labels of a record, or their percentage of the states."""
    labels = record["labels"]
    return labels if isinstance(labels, int) else round(100 * record.get("share", 0.0))
