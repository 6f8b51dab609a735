"""The worlds: tabular ones are data; each knows its expert."""

from selectenv.domains.cliff_walk import cliff_walk
from selectenv.domains.expert import expert_actions, mixture_policy, optimal_policy
from selectenv.domains.frozen_lake import frozen_lake
from selectenv.domains.graph import graph
from selectenv.domains.layout import Layout
from selectenv.domains.tree import tree
from selectenv.domains.two_rooms import two_rooms, two_rooms_trap
from selectenv.domains.world import TabularWorld, from_outcomes, from_toy_text

__all__ = [
    "Layout",
    "TabularWorld",
    "cliff_walk",
    "expert_actions",
    "from_outcomes",
    "from_toy_text",
    "frozen_lake",
    "graph",
    "mixture_policy",
    "optimal_policy",
    "tree",
    "two_rooms",
    "two_rooms_trap",
]
