"""The learning curve of a network before the evaluations that its performance is the mean of."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.engine.cell import Record
from selectenv.io.atomic import whole_file
from selectenv.learners import training_run
from selectenv.policies import PolicyList
from selectenv.problem import SelectionProblem

POINTS = 6
"""Number of points, at 10, 20, ... 60 % of the updates; performance is evaluated after that."""


class EarlyCurve:
    """Evaluates a learner in the first part of its training; points are kept on disk, so that runs can resume."""

    def __init__(self, task: SelectionProblem, path: Path) -> None:
        """Watch the learner of ``task``, a neural one whose policy is that of its networks.

        Args:
            task: the problem; its learner is replaced by one that is watched.
            path: file of the points, which need not exist.
        """
        self._path, self._task = path, task
        learner: Any = task.learner
        stretch = training_run.STRETCH
        tenth = learner.settings.updates / 10
        self._moments = {round(k * tenth / stretch) * stretch for k in range(1, POINTS + 1)} - {0}
        self.points: list[Record] = json.loads(path.read_text()) if path.exists() else []
        task.learner = replace(learner, watch=self._evaluate)

    def _evaluate(self, done: int, run: training_run.Run) -> None:
        if done not in self._moments or any(point["updates"] == done for point in self.points):
            return
        value = float(self._task.evaluator.returns(PolicyList([run.policy]))[0])
        self.points.append({"updates": done, "curve": value})
        with whole_file(self._path) as file:
            file.write(json.dumps(self.points).encode())
