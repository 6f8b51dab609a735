"""The bounds of a session as a function of the number of labels."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from selectenv.evaluation.value_bounds import ValueBounds, value_bounds
from selectenv.labelling.queries import state_id
from selectenv.labelling.session_reports import CurvePoint
from selectenv.labelling.told_problem import ToldProblem
from selectenv.typing import BoolArray, FloatArray


class BoundsCurve:
    """Computes bounds after each label of a session, and caches the points of the curve."""

    def __init__(self, problem: ToldProblem) -> None:
        """Begin without labels."""
        self._problem = problem
        self._points: list[tuple[Any, CurvePoint]] = []
        """Points, each with everything that it depends on."""

    def bounds(self, labels: BoolArray, low: FloatArray, high: FloatArray) -> ValueBounds:
        """Return the bounds for what was told about ``labels`` [n]."""
        problem = self._problem
        rewards = np.where(labels[problem.dataset.state], problem.rewards, np.nan)
        policy = problem.learn(labels).over_cells().table
        return value_bounds(problem.dataset, rewards, policy, problem.learner.gamma, low, high)

    def points(self, labels: Iterable[tuple[int, Any]], low: FloatArray, high: FloatArray) -> list[CurvePoint]:
        """Return the bounds before the first label and after every label.

        Args:
            labels: state numbers in order, each with a value that changes whenever its rewards do.
            low: [1 or n] smallest possible unknown reward.
            high: [1 or n] largest possible unknown reward.
        """
        known = np.zeros(self._problem.n_states, bool)
        ends = low.tobytes(), high.tobytes()
        for i, (state, version) in enumerate([(-1, ends), *labels]):
            if state >= 0:
                known[state] = True
            if i >= len(self._points) or self._points[i][0] != (state, version):
                found = self.bounds(known, low, high)
                name = state_id(self._problem.dataset, state)
                point = CurvePoint(i, name, found.least, found.most, found.upper, found.regret)
                self._points[i:] = [((state, version), point)]
            last = i
        del self._points[last + 1 :]
        return [point for _, point in self._points]
