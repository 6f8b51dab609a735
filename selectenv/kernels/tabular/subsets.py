"""All sets of k out of m items, in lexicographic order, block by block."""

from math import comb

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.typing import BoolArray, IntArray


def combination(rank: int, m: int, k: int) -> IntArray:
    """Return the set with number ``rank`` (0-based) among the C(m, k) sets in lexicographic order."""
    chosen = []
    item = 0
    for left in range(k, 0, -1):
        while (block := comb(m - item - 1, left - 1)) <= rank:
            rank -= block
            item += 1
        chosen.append(item)
        item += 1
    return np.array(chosen, np.int64)


@kernel
def fill_masks(current: IntArray, items: IntArray, masks: BoolArray) -> None:
    """Mark the set ``current`` and its successors in the rows of ``masks``; leave the next set in ``current``.

    Args:
        current: [k] places in ``items``, ascending; updated in place.
        items: [m] columns of ``masks`` of the places.
        masks: [sets, n] all False; rows after the last set stay so.
    """
    k = len(current)
    m = len(items)
    for row in range(len(masks)):
        for i in range(k):
            masks[row, items[current[i]]] = True
        i = k - 1
        while i >= 0 and current[i] == m - k + i:
            i -= 1
        if i < 0:
            return
        current[i] += 1
        for j in range(i + 1, k):
            current[j] = current[j - 1] + 1
