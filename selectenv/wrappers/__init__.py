"""Wrappers: several labels per step, a bandit view of the problem, and a TensorBoard monitor."""

from selectenv.wrappers.batch_labels import BatchLabels
from selectenv.wrappers.one_shot import OneShot
from selectenv.wrappers.tensorboard_monitor import TensorBoardMonitor

__all__ = ["BatchLabels", "OneShot", "TensorBoardMonitor"]
