"""Wrappers: several labels a step, and the bandit face."""

from selectenv.wrappers.batch_labels import BatchLabels
from selectenv.wrappers.one_shot import OneShot

__all__ = ["BatchLabels", "OneShot"]
