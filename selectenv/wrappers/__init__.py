"""Wrappers: several labels a step, the bandit face, and a monitor."""

from selectenv.wrappers.batch_labels import BatchLabels
from selectenv.wrappers.one_shot import OneShot
from selectenv.wrappers.tensorboard_monitor import TensorBoardMonitor

__all__ = ["BatchLabels", "OneShot", "TensorBoardMonitor"]
