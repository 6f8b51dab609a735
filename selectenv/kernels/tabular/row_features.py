"""Ranks and distances of the states of many episodes, row by row."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.distances import steps_from
from selectenv.typing import BoolArray, FloatArray, Int32Array

SHORT = 128
"""Rows of at most this length are sorted by insertion."""


@kernel
def rank_rows(values: FloatArray, among: BoolArray, out: FloatArray) -> None:
    """Write the share of the other values in its row that are smaller than each value, ties counting half.

    Args:
        values: [rows, n]
        among: [1 or rows, n] the values that are compared; one row serves all.
        out: [rows, n] receives the ranks, 0 where a value is not compared.
    """
    rows, n = values.shape
    order = np.empty(n, np.int64)
    for row in range(rows):
        which = row if len(among) > 1 else 0
        sorted_places = np.argsort(values[row]) if n > SHORT else order
        count = 0
        for k in range(n):
            i = sorted_places[k] if n > SHORT else k
            out[row, i] = 0.0
            if among[which, i]:
                place = count
                while place > 0 and values[row, order[place - 1]] > values[row, i]:  # never true if sorted already
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = i
                count += 1
        first = 0
        while first < count:
            last = first + 1
            while last < count and values[row, order[last]] == values[row, order[first]]:
                last += 1
            for place in range(first, last):
                out[row, order[place]] = (first + last - 1) / 2 / max(count - 1, 1)
            first = last


@kernel
def near_the_best(
    first: Int32Array, neighbour: Int32Array, value: FloatArray, labelled: BoolArray, out: FloatArray
) -> None:
    """Write 1 / (1 + steps) from each state to the best-valued labelled one; 0 in rows where no such value is positive.

    Args:
        first: [1 or rows, n + 1] range of predecessors of each state; one row serves all.
        neighbour: [1 or rows, edges] the predecessors.
        value: [rows, n]
        labelled: [rows, n]
        out: [rows, n] receives the nearness, 0 where there is no path.
    """
    rows, n = value.shape
    sources = np.empty(n, np.bool_)
    for row in range(rows):
        which = row if len(first) > 1 else 0
        best = 0.0
        for s in range(n):
            if labelled[row, s] and value[row, s] > best:
                best = value[row, s]
        for s in range(n):
            out[row, s] = 0.0
            sources[s] = labelled[row, s] and value[row, s] == best
        if best > 0.0:
            steps = steps_from(first[which], neighbour[which], sources)
            for s in range(n):
                if steps[s] < n:
                    out[row, s] = 1.0 / (1.0 + steps[s])
