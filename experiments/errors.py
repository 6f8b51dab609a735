"""The exceptions that running a study can raise."""

from selectenv.errors import OptionError, SelectEnvError


class StoreError(SelectEnvError, OSError):
    """A results file that is damaged, foreign, from a newer version, or cannot be read or written."""


class StoreInUseError(StoreError):
    """Another run is writing to the results file."""


class ClusterError(SelectEnvError, ConnectionError):
    """A Dask scheduler that does not answer, or that is gone in the middle of a run."""


class UnreplaceableError(OptionError):
    """A study in which no world or no strategy can be replaced by a user-defined one."""


class TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM; it stops as if it had been interrupted by Ctrl-C."""


class LabelsFileError(SelectEnvError, ValueError):
    """A file of labels or annotations that cannot be read, or that does not belong to the session."""


class SiteError(SelectEnvError, ValueError):
    """The documentation site cannot be built: a page is not listed, or a link leads nowhere."""


class BenchmarkError(SelectEnvError):
    """Something that `selectenv benchmark` cannot score: results of another suite, or a strategy that fails."""


class StrategyFailedError(BenchmarkError, RuntimeError):
    """A strategy that raised an exception, or whose process ended, in the middle of an episode."""


class UndeclaredEvaluatorError(BenchmarkError, PermissionError):
    """A strategy that asked the evaluator, although its taxonomy says that it does not do so at this moment."""


class ChannelError(BenchmarkError, ValueError):
    """A strategy that sent something else than a message to the benchmark."""


class ChannelClosedError(BenchmarkError, ConnectionError):
    """The process at the other end of a channel has ended."""
