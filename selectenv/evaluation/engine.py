"""The protocol of engines, which compute the returns behind an evaluator."""

from typing import Protocol

from selectenv.policies import PolicyBatch
from selectenv.typing import FloatArray


class ReturnEngine(Protocol):
    """Computes the expected returns of policies; counting is left to the `Evaluator`."""

    @property
    def parallel(self) -> bool:
        """Whether several threads may use the engine at once."""

    @property
    def policies_at_once(self) -> int:
        """The number of policies that is worth evaluating together."""

    def returns(self, policies: PolicyBatch, discount: float) -> FloatArray:
        """Return the expected return of each policy [policies]."""
