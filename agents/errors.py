"""Errors raised by strategies."""

from selectenv.errors import SelectEnvError


class NotTrainedError(SelectEnvError, RuntimeError):
    """A strategy was asked to select before it was trained or before an episode was begun."""


class SearchLimitError(SelectEnvError, RuntimeError):
    """A search would evaluate more label sets than its ``max_evaluations``."""


class SavedAgentError(SelectEnvError, ValueError, OSError):
    """A saved strategy is damaged, not a saved strategy, or was trained for another world or budget."""
