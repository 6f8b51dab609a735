"""Finished cells in TensorBoard: performance, gap and evaluator calls against labels, and the selection drawn."""

import io
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.best_known import best_return
from experiments.cells import Result
from experiments.minatar import game_problem
from experiments.protocol import problem
from selectenv.domains.minatar import GAMES
from selectenv.errors import MissingExtraError
from selectenv.problem import SelectionProblem
from selectenv.rendering import draw_figure


class TensorBoardLog:
    """Writes one run a cell under a folder."""

    def __init__(self, folder: Path) -> None:
        """Write under ``folder``.

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ModuleNotFoundError:
            raise MissingExtraError("--tensorboard needs TensorBoard: pip install 'selectenv[meta]'") from None
        self._event, self._summary, self._writer, self._folder = Event, Summary, EventFileWriter, folder

    def log(self, result: Result) -> None:
        """Write the run of one cell."""
        cell = result.cell
        variant = str(cell.settings.get("variant", cell.settings.get("budget", ""))).replace("/", "-").replace(" ", "_")
        parts = (cell.study, cell.world, cell.strategy, variant, f"seed-{cell.seed}")
        writer: Any = self._writer(str(self._folder.joinpath(*filter(None, parts))))
        problem_options = cell.settings.get("problem", {})
        learner = problem_options.get("learner", cell.settings.get("learner", "uds"))
        for record in result.records:
            if "curve" in record:
                point = self._summary.Value(tag="return_by_updates", simple_value=record["curve"])
                self._add(writer, record["updates"], [point])
            value = record.get("return", record.get("train"))
            if value is None:
                continue
            labels = _step(record)
            figures = {"performance": value, "gap": best_return(cell.world, learner, labels) - value}
            if np.isnan(figures["gap"]):  # of games no best set is known
                del figures["gap"]
            if "asked" in record:
                figures["evaluator_calls"] = record["asked"]
            self._add(writer, labels, [self._summary.Value(tag=tag, simple_value=x) for tag, x in figures.items()])
        drawn = [record for record in result.records if {"ids", "first"} & record.keys() and "labels" in record]
        if drawn:
            task = game_problem(cell) if cell.world in GAMES else problem(cell.world, {"learner": learner})
            self._add(writer, _step(drawn[-1]), [self._picture(task, drawn[-1])])
        writer.close()

    def _add(self, writer: Any, step: int, values: list[Any]) -> None:
        writer.add_event(self._event(wall_time=time.time(), step=step, summary=self._summary(value=values)))

    def _picture(self, task: SelectionProblem, record: dict[str, Any]) -> Any:
        ids = record["ids"] if "ids" in record else record["first"]
        labelled_at = np.zeros(task.n_states, np.int64)
        labelled_at[task.actions(ids)] = np.arange(1, len(ids) + 1)
        figure, buffer = draw_figure(task, labelled_at, len(ids)), io.BytesIO()
        figure.savefig(buffer, format="png")
        width, height = (int(inches * figure.dpi) for inches in figure.get_size_inches())
        image = self._summary.Image(height=height, width=width, colorspace=3, encoded_image_string=buffer.getvalue())
        return self._summary.Value(tag="selection", image=image)


def _step(record: dict[str, Any]) -> int:
    """Return the number of labels of a record, or their percentage of the states."""
    labels = record["labels"]
    return labels if isinstance(labels, int) else round(100 * record.get("share", 0.0))
