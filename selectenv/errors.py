"""The exceptions a user can meet; all of them are `SelectEnvError`, most also the built-in or Gymnasium kind."""

from gymnasium import error as gym_error


class SelectEnvError(Exception):
    """Base of every error raised on purpose by this project."""


class OptionError(SelectEnvError, ValueError):
    """An option has a value that is not allowed, or options contradict each other."""


class UnknownNameError(OptionError):
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

    def __str__(self) -> str:
        """Say the message plainly: KeyError would quote it."""
        return str(self.args[0]) if self.args else ""


class EpisodeError(SelectEnvError, gym_error.ResetNeeded):
    """A step before reset or after the end of the episode."""


class WorldError(SelectEnvError, ValueError):
    """A world whose outcomes, start or horizon make no sense."""


class DatasetError(SelectEnvError, ValueError):
    """Arrays that do not form a dataset."""


class DatasetFileError(DatasetError):
    """A dataset file that is damaged, foreign, or of another format version."""


class PolicyError(SelectEnvError, ValueError):
    """A policy that does not return action probabilities, or whose states are not those of the world."""


class LearnerError(SelectEnvError, TypeError):
    """A learner without a method `fit`, or whose `fit` returns something other than a policy or a `FitResult`."""


class ExtensionError(SelectEnvError, ImportError):
    """An entry point of another package that cannot be loaded."""


class WeightsFileError(SelectEnvError, ValueError):
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


class UnseenStatesWarning(UserWarning):
    """An evaluation visits mostly states that are not in the data."""


class NoRewardsWarning(UserWarning):
    """A strategy that uses revealed rewards is played on data without rewards."""
