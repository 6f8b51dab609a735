"""Expected returns by dynamic programming in a tabular world."""

import numpy as np

from selectenv.checks import check_instance
from selectenv.domains.tabular.world import TabularWorld, longest_path
from selectenv.kernels.tabular.model import ELIMINATION_LIMIT
from selectenv.kernels.tabular.one_set import return_of_policy
from selectenv.kernels.tabular.policy_returns import returns_one_by_one
from selectenv.kernels.tabular.returns import returns_of_blocks
from selectenv.kernels.threads import SLICE_COST
from selectenv.policies import PolicyBatch, checked_tables
from selectenv.typing import FloatArray


class ExactReturns:
    """Computes the expected return of policies up to the horizon."""

    parallel = True
    policies_at_once = 1

    def __init__(self, world: TabularWorld) -> None:
        """Prepare the exact returns of policies in ``world``."""
        self.world = check_instance("world", world, TabularWorld)
        self.is_quick = world.horizon * (world.n_states + len(world.chain.successor)) <= SLICE_COST
        """Whether the return of one policy is computed within a moment, so that there is no need to interrupt it."""
        self.one_sweep = world.model.acyclic and longest_path(world.model) <= world.horizon
        """Whether the world has no cycle and no path longer than the horizon."""

    def returns(self, policies: PolicyBatch, discount: float) -> FloatArray:
        """Return the expected return of each policy [policies]."""
        world, terms = self.world, (self.world.start, self.world.horizon, discount)
        blocks = np.ascontiguousarray(checked_tables(policies, world.n_states, world.n_actions))
        if len(policies) == 1 and self.is_quick:
            rest = world.start, world.horizon, discount, self.one_sweep, blocks[0, :, :, 0].copy()
            return np.array([return_of_policy(world.model, world.chain, *rest)])
        out = np.empty((blocks.shape[0], blocks.shape[3]))
        if world.n_states > ELIMINATION_LIMIT and not self.one_sweep:
            returns_one_by_one(world.model, *terms, blocks, out)
        else:
            returns_of_blocks(world.model, world.chain, *terms, self.one_sweep, blocks, out)
        return out.ravel()[: len(policies)]
