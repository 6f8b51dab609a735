"""Training runs that are evaluated while they train: both readings of a return and the learning curve."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.engine.cell import Record
from selectenv.evaluation import Evaluator
from selectenv.io.atomic import whole_file
from selectenv.learners import training_run
from selectenv.policies import CloningPolicy, LabelledPolicy, Policy, PolicyList
from selectenv.problem import Labels, SelectionProblem
from selectenv.typing import BoolArray

LAST_PART = 0.4
"""Share of the updates, counted from the end, over which the evaluations of a return are spread."""
EARLIER = tuple(k / 10 for k in range(1, 7))
"""Shares of the updates at which the earlier part of a learning curve is evaluated."""


def moments(updates: int, evaluations: int, *, whole: bool = False) -> tuple[int, ...]:
    """Return the numbers of updates after which a training run is evaluated.

    Args:
        updates: updates of the run.
        evaluations: evaluations in the last part of the run, equally spaced; the last one is at the end.
        whole: evaluate the earlier part too.
    """
    shares = [1 - LAST_PART * k / evaluations for k in range(evaluations)] + [*EARLIER] * whole
    stretch = training_run.STRETCH
    return tuple(sorted({min(updates, math.ceil(round(share * updates / stretch, 9)) * stretch) for share in shares}))


class EvaluatedTraining:
    """A problem with a neural learner whose training runs are evaluated at several moments.

    Checkpoints and evaluations are kept on disk, so that an interrupted run resumes with both.
    """

    def __init__(
        self,
        problem: SelectionProblem,
        folder: Path,
        evaluations: int,
        fresh: Evaluator | None = None,
    ) -> None:
        """Prepare training from scratch.

        Args:
            problem: its learner must be a neural one.
            folder: directory of checkpoints and evaluations.
            evaluations: evaluations whose mean is the return of a run.
            fresh: evaluates on other episodes too, if given.
        """
        learner: Any = problem.learner
        self.problem = SelectionProblem(
            problem.dataset, replace(learner, checkpoints=folder / "refits"), problem.evaluator
        )
        self._learner = replace(learner, checkpoints=folder / "evaluated", watch=self._watch)
        self._evaluators: Mapping[str, Evaluator] = {"return": problem.evaluator} | ({"fresh": fresh} if fresh else {})
        self._folder, self._evaluations = folder, evaluations
        self._labels: BoolArray = np.zeros(problem.n_states, bool)
        self._moments: tuple[int, ...] = ()
        self._points: dict[int, dict[str, float]] = {}
        self._path = folder

    def run(self, labels: Labels, *, whole: bool = False) -> tuple[Record, list[Record]]:
        """Train from scratch and return the readings of the run, and its learning curve.

        Args:
            labels: the labelled states.
            whole: evaluate the earlier part of the run too.

        Returns:
            A record with "return", the mean over the last part of the run, "last weights", and "evaluations", the
            single values behind the mean (and the mean on other episodes, "fresh", if there are such); and one record
            per point of the learning curve, with "updates" and "curve".
        """
        data = self.problem.dataset
        self._labels = self.problem.mask(labels) & data.labelable
        name = hashlib.blake2b(self._labels.tobytes(), digest_size=8).hexdigest()
        self._path = self._folder / f"evaluations-{name}.json"
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._points = {int(updates): values for updates, values in known.items()}
        updates = self._learner.settings.updates
        last = moments(updates, self._evaluations)
        self._moments = moments(updates, self._evaluations, whole=whole)
        policy = self._learner.fit(data, data.all_rewards, self._labels).policy
        if not self._points:  # nothing was trained, because no reward is known
            self._points = {moment: self._returns(policy) for moment in self._moments}
        values = [self._points[moment]["return"] for moment in last]
        record = {"return": float(np.mean(values)), "last weights": values[-1], "evaluations": values}
        if "fresh" in self._evaluators:
            record["fresh"] = float(np.mean([self._points[moment]["fresh"] for moment in last]))
        return record, [{"updates": moment, "curve": self._points[moment]["return"]} for moment in self._moments]

    def _watch(self, done: int, run: training_run.Run) -> None:
        """Evaluate the networks if it is time to, and keep the result on disk."""
        adapted = self._learner.rule == "adapted"
        if done not in self._moments or done in self._points or (adapted and isinstance(run, training_run.CloningRun)):
            return
        policy: Policy = run.policy
        if adapted:
            clone = self._learner.cloning.clone(self.problem.dataset, 0)
            policy = LabelledPolicy(run.policy, CloningPolicy(clone), self._labels)
        self._points[done] = self._returns(policy)
        with whole_file(self._path) as file:
            file.write(json.dumps(self._points).encode())

    def _returns(self, policy: Policy) -> dict[str, float]:
        return {name: float(one.returns(PolicyList([policy]))[0]) for name, one in self._evaluators.items()}
