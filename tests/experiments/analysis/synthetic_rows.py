"""Rows and results with chosen numbers."""

from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.analysis.verdicts import Control, Verdict
from experiments.engine.cell import Cell, Result

TOLD, UNTOLD = Control(1, 4), Control(3, 4)
"""Controls of cells that discriminate and that do not."""


def told(by_rule, reason=""):
    """Return the verdict of a cell that discriminates."""
    return Verdict(by_rule, reason, TOLD)


def summary(mean, stderr=0.0, runs=10, low=None, high=None, iqm=None, improvement=None):
    """Return a summary whose interval is the mean unless it is given."""
    low, high, iqm = (mean if value is None else value for value in (low, high, iqm))
    return Summary(runs, mean, stderr, low, high, iqm, improvement)


def row(world="Graph", labels=3, strategy="uniform", metric="return", mean=None, **more):
    """Return a row; ``mean`` is ours."""
    ours = None if mean is None else summary(mean)
    return Row(world, labels, strategy, metric, more.pop("ours", ours), more.pop("gap", None), **more)


def result(records, world="Graph", strategy="uniform", seed=0, **settings):
    """Return the result of a cell."""
    return Result(Cell("study", world, strategy, seed, settings), records, 0.5)
