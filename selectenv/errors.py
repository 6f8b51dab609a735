"""The exceptions a user can meet; all of them are `SelectEnvError`, most also the built-in or Gymnasium kind."""

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
    """A budget that is no number of labels between 1 and n and no share in (0, 1]."""


class LabelError(SelectEnvError, ValueError):
    """Labels or masks of the wrong type, shape or range."""


class ActionError(LabelError, gym_error.InvalidAction):
    """An action that is not an integer between 0 and n - 1."""


class UnknownStateError(SelectEnvError, KeyError):
    """A state id that the world or the dataset has not got."""


class EpisodeError(SelectEnvError, gym_error.ResetNeeded):
    """A step before reset or after the end of the episode."""


class WorldError(SelectEnvError, ValueError):
    """A world whose outcomes, start or horizon make no sense."""


class DatasetError(SelectEnvError, ValueError):
    """Arrays that do not form a dataset."""


class FileError(SelectEnvError, OSError):
    """A file or directory that cannot be read or written."""


class DatasetFileError(DatasetError, OSError):
    """A dataset file that is damaged, foreign, or of another format version."""


class ObservationError(SelectEnvError, ValueError):
    """An observation or an info that does not come from an environment of reward selection."""


class PolicyError(SelectEnvError, ValueError):
    """A policy that does not return action probabilities, or whose states are not those of the world."""


class LearnerError(SelectEnvError, TypeError):
    """A learner without a method `fit`, or whose `fit` returns something other than a policy or a `FitResult`."""


class ExtensionError(SelectEnvError, ImportError):
    """An entry point of another package that cannot be loaded."""


class WeightsFileError(SelectEnvError, ValueError, OSError):
    """A file of network weights that is damaged, foreign, or of another network."""


class JournalError(OptionError):
    """A tuning journal that is damaged or foreign, or that cannot be opened."""


class StoppedError(SelectEnvError, RuntimeError):
    """Work stopped at a checkpoint because nobody waits for it any more."""


class DivergedError(SelectEnvError, ArithmeticError):
    """Training ran wild: a loss is infinite or not a number."""


class ResourceError(SelectEnvError, OSError):
    """Too little memory or disk for what was asked; the message says how much is needed."""


class PhaseError(SelectEnvError, RuntimeError):
    """Something that the test phase forbids."""


class NoEvaluatorError(SelectEnvError, RuntimeError):
    """Performance was asked of a problem without an evaluator, or rewards of a dataset without them."""


class MissingExtraError(SelectEnvError, gym_error.DependencyNotInstalled):
    """An optional dependency is not installed; the message names the extra."""


class SelectEnvWarning(UserWarning):
    """Base of every warning issued on purpose by this project."""


class UnseenStatesWarning(SelectEnvWarning):
    """An evaluation visits mostly states that are not in the data."""


class NoTableWarning(SelectEnvWarning):
    """An environment has no table of outcomes, so returns are estimated by rollouts."""


class CacheWarning(SelectEnvWarning, RuntimeWarning):
    """Collected data cannot be kept in the cache."""


class NoRewardsWarning(SelectEnvWarning):
    """A strategy that uses revealed rewards is played on data without rewards."""
