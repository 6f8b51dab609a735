"""Wrappers: several labels per step, a bandit view of the problem, flat observations, and a TensorBoard monitor."""

from selectenv.wrappers.batch_labels import BatchLabels
from selectenv.wrappers.flat_observation import FlatObservation
from selectenv.wrappers.one_shot import OneShot
from selectenv.wrappers.tensorboard_monitor import TensorBoardMonitor

__all__ = ["BatchLabels", "FlatObservation", "OneShot", "TensorBoardMonitor"]
