"""Distances along the edges of a graph."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.typing import BoolArray, Int32Array, IntArray


@kernel
def steps_from(first: Int32Array, neighbour: Int32Array, sources: BoolArray) -> IntArray:
    """Return the smallest number of edges from a source to each node [n]; n for a node that cannot be reached.

    Args:
        first: [n + 1] range of neighbours of each node.
        neighbour: [edges] the node that each edge leads to.
        sources: [n] which nodes are sources.
    """
    n = len(sources)
    steps = np.full(n, n, np.int64)
    queue = np.empty(n, np.int64)
    head, tail = 0, 0
    for i in range(n):
        if sources[i]:
            steps[i] = 0
            queue[tail] = i
            tail += 1
    while head < tail:
        node = queue[head]
        head += 1
        for at in range(first[node], first[node + 1]):
            other = neighbour[at]
            if steps[other] == n:
                steps[other] = steps[node] + 1
                queue[tail] = other
                tail += 1
    return steps
