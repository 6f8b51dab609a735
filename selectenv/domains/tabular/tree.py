"""Tree: walk down a complete binary tree in which actions slip.

Node i has the children 2i + 1 (left) and 2i + 2 (right). An action moves in the intended direction with probability
0.85, otherwise in the other. The reward depends on the child that is entered: positive for left children, negative for
right children; its magnitude is 1 where the direction changed (and below the root), and twice the parent's where it
continued. Leaves have actions too: they pay the reward of the child they would enter, one layer deeper, and terminate
the episode. With five levels (``depth=5``) there are 31 nodes and the best expected return is 17.685535.
"""

import numpy as np

from selectenv.checks import check_int
from selectenv.domains.layout import Layout
from selectenv.domains.tabular.world import TabularWorld, from_outcomes
from selectenv.errors import WorldError

SUCCESS = 0.85
DEEPEST = 16


def tree(depth: int = 5) -> TabularWorld:
    """Return the Tree world.

    Args:
        depth: number of levels of nodes, with one decision on each.
    """
    check_int("the depth of a Tree", depth, 1, DEEPEST, WorldError)
    n = 2**depth - 1
    size = np.zeros(2 * n + 1)
    for child in range(1, 2 * n + 1):
        parent = (child - 1) // 2
        direction = 1.0 if child % 2 == 1 else -1.0
        size[child] = direction * max(1.0, 2 * size[parent] * direction)
    state, action, slip = (x.ravel() for x in np.meshgrid(np.arange(n), [0, 1], [0, 1], indexing="ij"))
    child = 2 * state + 1 + (action ^ slip)
    inner = child < n
    level = np.floor(np.log2(np.arange(n) + 1)).astype(int)
    rank = np.arange(n) + 1 - 2**level
    position = np.stack([(rank + 0.5) * 2.0 ** (depth - 1 - level), level * 1.4], axis=1)
    edges = np.stack([state, action, child], axis=1)[inner & (slip == 0)]
    return from_outcomes(
        "Tree",
        state=state,
        action=action,
        probability=np.where(slip, 1 - SUCCESS, SUCCESS),
        next_state=np.where(inner, child, 0),
        reward=size[child],
        terminated=~inner,
        start=np.arange(n) == 0,
        layout=Layout(position, "nodes", edges=edges),
    )
