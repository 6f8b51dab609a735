"""What can go wrong with a study."""

from selectenv.errors import SelectEnvError


class StoreError(SelectEnvError):
    """A results file that is damaged, foreign, from a newer version, or cannot be written."""


class StoreInUseError(StoreError):
    """Another run is writing to the results file."""


class ClusterError(SelectEnvError):
    """A cluster that does not answer."""
