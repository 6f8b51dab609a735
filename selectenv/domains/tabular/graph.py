"""Graph: move from a start node through seven columns of two nodes; the upper row pays +1, the lower row -1.

Node 0 is the start; the columns hold the pairs (1, 2), (3, 4), ... (13, 14). Action 0 moves to the next
column's odd node, action 1 to its even node; moves are deterministic. Entering an odd node pays +1, an even node -1.
From node 13 either action pays +1 and terminates the episode; from node 14 either action pays -1 and terminates it. The
best return is 8.
"""

import numpy as np

from selectenv.domains.layout import Layout
from selectenv.domains.tabular.world import TabularWorld, from_outcomes

COLUMNS = 8


def graph() -> TabularWorld:
    """Return the Graph world."""
    n = 2 * COLUMNS - 1
    state = np.repeat(np.arange(n), 2)
    action = np.tile([0, 1], n)
    last = state >= n - 2
    next_state = np.where(last, 0, (state + 1) // 2 * 2 + 1 + action)
    reward = np.where(np.where(last, state, next_state) % 2 == 1, 1.0, -1.0)
    nodes = np.arange(n)
    position = np.stack(
        [(nodes + 1) // 2 * 1.6, np.where(nodes == 0, 0.75, np.where(nodes % 2 == 1, 0.0, 1.5))], axis=1
    )
    edges = np.stack([state, action, next_state], axis=1)[~last]
    return from_outcomes(
        "Graph",
        state=state,
        action=action,
        probability=np.ones(2 * n),
        next_state=next_state,
        reward=reward,
        terminated=last,
        start=nodes == 0,
        layout=Layout(position, "nodes", edges=edges),
    )
