"""Tabular worlds: finite Markov decision processes stored as arrays."""

from selectenv.domains.tabular.cliff_walk import cliff_walk
from selectenv.domains.tabular.frozen_lake import frozen_lake
from selectenv.domains.tabular.graph import graph
from selectenv.domains.tabular.mixture import expert_actions, mixture_policy, optimal_policy
from selectenv.domains.tabular.sparse_world import sparse
from selectenv.domains.tabular.tree import tree
from selectenv.domains.tabular.two_rooms import two_rooms, two_rooms_trap
from selectenv.domains.tabular.world import TabularWorld, from_outcomes, from_toy_text

__all__ = [
    "TabularWorld",
    "cliff_walk",
    "expert_actions",
    "from_outcomes",
    "from_toy_text",
    "frozen_lake",
    "graph",
    "mixture_policy",
    "optimal_policy",
    "sparse",
    "tree",
    "two_rooms",
    "two_rooms_trap",
]
