"""Returns of policies over groups of states, in a tabular world over the states themselves."""

from dataclasses import dataclass
from typing import Any

from selectenv.evaluation.engine import ReturnEngine
from selectenv.policies import PolicyBatch
from selectenv.typing import FloatArray, Int32Array, IntArray


@dataclass(frozen=True, eq=False)
class ExpandedPolicies:
    """Policies over cells as policies over the states of a world."""

    policies: PolicyBatch
    cell: Int32Array
    """[states] the cell of each state."""
    n_cells: int

    def __len__(self) -> int:
        """Return the number of policies."""
        return len(self.policies)

    def tables(self, n_states: int, observations: Any = None) -> FloatArray:
        """Return action probabilities [blocks, states, actions, lanes]."""
        return self.policies.tables(self.n_cells, observations)[:, self.cell]

    def probabilities(self, which: IntArray, states: IntArray, observations: Any = None) -> FloatArray:
        """Return the action probabilities [batch, actions] of policy ``which[i]`` in ``states[i]``."""
        return self.policies.probabilities(which, self.cell[states].astype(states.dtype), observations)


class GroupedReturns:
    """Evaluates policies over cells with an engine for policies over states."""

    def __init__(self, engine: ReturnEngine, cell: Int32Array, n_cells: int) -> None:
        """Evaluate policies over ``n_cells`` cells, given the cell of each state [states]."""
        self.engine, self._cell, self._n_cells = engine, cell, n_cells

    @property
    def parallel(self) -> bool:
        """Whether several threads may use the engine at once."""
        return self.engine.parallel

    @property
    def policies_at_once(self) -> int:
        """The number of policies that is worth evaluating together."""
        return self.engine.policies_at_once

    def returns(self, policies: PolicyBatch, discount: float) -> FloatArray:
        """Return the expected return of each policy [policies]."""
        return self.engine.returns(ExpandedPolicies(policies, self._cell, self._n_cells), discount)
