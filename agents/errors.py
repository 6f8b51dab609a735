"""What can go wrong with a strategy."""

from selectenv.errors import SelectEnvError


class NotTrainedError(SelectEnvError, RuntimeError):
    """A strategy that must be trained, or shown its environment, was asked to select before that."""


class SearchLimitError(SelectEnvError, RuntimeError):
    """A search would evaluate more label sets than it is allowed to."""


class SavedAgentError(SelectEnvError, ValueError, OSError):
    """A saved strategy that is damaged, foreign, or made for another world or budget."""
