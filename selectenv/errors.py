"""Exceptions and warnings: each exception is a `SelectEnvError` and also the matching built-in one."""

from gymnasium import error as gym_error


class SelectEnvError(Exception):
    """Base of every error raised on purpose by this project."""

    def __str__(self) -> str:
        """Return the message as it is: KeyError, which some subclasses also are, would quote it."""
        return str(self.args[0]) if self.args else ""


class OptionError(SelectEnvError, ValueError):
    """An option has a value that is not allowed, or options contradict each other."""


class UnknownNameError(OptionError, KeyError):
    """A world, dataset, learner or option of this name does not exist."""


class OptionTypeError(OptionError, TypeError):
    """An argument of the wrong type."""


class BudgetError(OptionError):
    """A budget that is neither a number of labels from 1 to n nor a share in (0, 1]."""


class LabelError(SelectEnvError, ValueError):
    """Labels or masks of the wrong type, shape or range."""


class ActionError(LabelError, gym_error.InvalidAction):
    """An action that is not an integer between 0 and n - 1."""


class UnknownStateError(SelectEnvError, KeyError):
    """A state id that the world or the dataset does not have."""


class MemberError(SelectEnvError, AttributeError):
    """An attribute that the environments of a vector do not have one by one."""


class EpisodeError(SelectEnvError, RuntimeError, gym_error.ResetNeeded):
    """A step before reset or after the end of the episode."""


class ClosedError(SelectEnvError, RuntimeError, gym_error.ClosedEnvironmentError):
    """A step or a reset after close()."""


class WorldError(SelectEnvError, ValueError):
    """A world with invalid outcomes, start or horizon."""


class DatasetError(SelectEnvError, ValueError):
    """Arrays that do not form a dataset."""


class LogError(DatasetError):
    """A log with an entry that cannot be used; the message names its row and its column."""


class FileError(SelectEnvError, OSError):
    """A file or directory that cannot be read or written."""


class DatasetFileError(DatasetError, OSError):
    """A dataset file that is damaged, not written by selectenv, or of another format version."""


class ObservationError(SelectEnvError, ValueError):
    """An observation or an info that does not come from a reward-selection environment."""


class MissingFeatureError(ObservationError):
    """An observation lacks features that a strategy needs: the option ``features`` left them out."""


class PolicyError(SelectEnvError, ValueError):
    """A policy that does not return action probabilities, or whose states are not those of the world."""


class LearnerError(SelectEnvError, TypeError):
    """A learner without a method `fit`, or whose `fit` returns something other than a policy or a `FitResult`."""


class ExtensionError(SelectEnvError, ImportError):
    """An entry point of another package that cannot be loaded."""


class WeightsFileError(SelectEnvError, ValueError, OSError):
    """A file of network weights that is damaged, not written by selectenv, or of another network."""


class JournalError(OptionError):
    """A tuning journal that is damaged, not written by selectenv, or cannot be opened."""


class StoppedError(SelectEnvError, RuntimeError):
    """Work was stopped at a checkpoint because its results are no longer needed."""


class DivergedError(SelectEnvError, ArithmeticError):
    """Training diverged: a loss is infinite or not a number."""


class ResourceError(SelectEnvError, OSError):
    """There is not enough memory or disk space; the message states how much is needed."""


class PhaseError(SelectEnvError, RuntimeError):
    """An operation that is not allowed in the test phase."""


class NoEvaluatorError(SelectEnvError, RuntimeError):
    """Performance was asked of a problem without an evaluator, or rewards of a dataset without them."""


class MissingExtraError(SelectEnvError, ImportError, gym_error.DependencyNotInstalled):
    """An optional dependency is not installed; the message names the extra."""


class StrategyError(OptionError):
    """A strategy that cannot choose the queries of a labelling session."""


class SessionError(SelectEnvError, ValueError):
    """A labelling session of another dataset or with other settings."""


class SessionFileError(SessionError, OSError):
    """A session file that is missing, damaged, not written by selectenv, or of another format version."""


class SessionFileRemovedError(SessionFileError):
    """A session file that was removed or replaced while the session was open."""


class QueryError(SelectEnvError, ValueError):
    """A query that was not asked, that has all its answers, or that others are working on."""


class AnswerError(LabelError):
    """An answer that does not give every transition of a state a finite reward."""


class AnswerRangeError(AnswerError):
    """An answer outside the range of rewards that the session stores."""


class VectorCheckError(SelectEnvError, AssertionError):
    """A vector environment breaks a promise that `check_vector_env` looks at."""


class SelectEnvWarning(UserWarning):
    """Base of every warning issued on purpose by this project."""


class UnseenStatesWarning(SelectEnvWarning):
    """An evaluation visits mostly states that are not in the data."""


class LongEpisodeWarning(SelectEnvWarning):
    """The evaluation of an episode was stopped before the episode ended."""


class NoTableWarning(SelectEnvWarning):
    """An environment has no table of outcomes, so returns are estimated by rollouts."""


class CacheWarning(SelectEnvWarning, RuntimeWarning):
    """Collected data cannot be kept in the cache."""


class BudgetWarning(SelectEnvWarning):
    """A budget of more labels than there are states to label; it is reduced to their number."""


class UnknownCostWarning(SelectEnvWarning):
    """The cost of training a model is not known, and counts as 0."""


class NoRewardsWarning(SelectEnvWarning):
    """A strategy that uses revealed rewards is played on data without rewards."""


class LargeWorldWarning(SelectEnvWarning):
    """A strategy leaves a world that is too large for it to another strategy."""
