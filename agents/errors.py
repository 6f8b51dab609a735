"""Errors raised by strategies."""

from selectenv.errors import SelectEnvError


class NotTrainedError(SelectEnvError, RuntimeError):
    """A strategy was asked to select before it was trained or before an episode was begun."""


class SearchLimitError(SelectEnvError, RuntimeError):
    """A search would evaluate more label sets than its ``max_evaluations``."""


class WeightsError(SelectEnvError, ValueError):
    """A strategy returned weights that are not numbers, infinite or negative."""


class EnvironmentCopyError(SelectEnvError, TypeError):
    """An environment cannot be copied together with its wrappers; the message says what to do instead."""


class UnsupportedModelError(SelectEnvError, TypeError):
    """A model of Stable-Baselines3 that cannot be played as a strategy, or not loaded without unpickling."""


class SavedAgentError(SelectEnvError, ValueError, OSError):
    """A saved strategy is damaged, not a saved strategy, or was trained for another world or budget."""
