"""The features of `state_features` for many episodes at once, in one pass instead of one call per episode."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.learned.behaviour_features import logarithm
from agents.learned.state_features import LARGE, NAMES, structure_of
from selectenv.datasets import OfflineDataset
from selectenv.kernels.tabular.row_features import near_the_best, rank_rows
from selectenv.observation import Observation
from selectenv.typing import BoolArray, Float32Array, Int32Array, IntArray


@dataclass(frozen=True, eq=False)
class DataRow:
    """What the features need to know of a dataset."""

    fixed: Float32Array
    """[n, features] the features that depend on the data alone; 0 where others stand."""
    seen: BoolArray
    """[n] the states that occur in the data."""
    first: Int32Array
    """[n + 1] range of predecessors of each state."""
    predecessor: Int32Array

    @classmethod
    def of(cls, dataset: OfflineDataset, adapted: bool, without: tuple[str, ...] = ()) -> "DataRow":
        """Return the row of a dataset.

        Args:
            dataset: the data.
            adapted: whether the learner follows the adapted rule.
            without: names of features to leave out.
        """
        structure = structure_of(dataset).columns
        seen = structure["seen"] > 0
        states = np.log(min(max(int(seen.sum()), 1), LARGE)) / 5
        columns = {**structure, "adapted": float(adapted), "states": states}
        fixed = np.zeros((len(seen), len(NAMES)), np.float32)
        for i, name in enumerate(NAMES):
            if name in columns and name not in without:
                fixed[:, i] = columns[name]
        fixed[~seen] = 0
        first, predecessor, _ = dataset.predecessors
        return cls(fixed, seen, first, predecessor)


class BatchedFeatures:
    """Computes the features of the states in every episode of a batch."""

    def __init__(self, rows: list[DataRow], without: tuple[str, ...] = ()) -> None:
        """Compute features of episodes with one dataset, or of as many as there are ``rows``."""
        self._without = without
        self.fixed = np.stack([row.fixed for row in rows])
        self.seen = np.stack([row.seen for row in rows])
        self._first = np.stack([row.first for row in rows])
        self._predecessor = np.zeros((len(rows), max(len(row.predecessor) for row in rows)), np.int32)
        for number, row in enumerate(rows):
            self._predecessor[number, : len(row.predecessor)] = row.predecessor

    def replace(self, number: int, row: DataRow) -> None:
        """Replace the dataset of an episode."""
        self.fixed[number], self.seen[number], self._first[number] = row.fixed, row.seen, row.first
        more = len(row.predecessor) - self._predecessor.shape[1]
        self._predecessor = np.pad(self._predecessor, ((0, 0), (0, max(0, more))))
        self._predecessor[number, : len(row.predecessor)] = row.predecessor

    def of(
        self, obs: Observation, masks: NDArray[np.integer], budgets: IntArray, which: IntArray | None = None
    ) -> Float32Array:
        """Return the features [episodes, n, features].

        Args:
            obs: the observations.
            masks: [episodes, n] which states can still be labelled.
            budgets: [episodes] number of labels.
            which: numbers of the episodes that the rows belong to; all by default.
        """
        at = slice(None) if which is None or len(self.seen) == 1 else which
        seen, fixed, first, predecessor = self.seen[at], self.fixed[at], self._first[at], self._predecessor[at]
        policy, value, spread = (
            obs[name].astype(np.float64) for name in ("on_policy_visitation", "value", "predecessors")
        )
        labelled, left = obs["labelled"] > 0, obs["budget"].astype(np.float64)
        count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
        ranks, near = np.empty_like(policy), np.empty_like(policy)
        rank_rows(policy, seen, ranks)
        near_the_best(first, predecessor, value, labelled, near)
        columns = {
            "open": masks,
            "labelled": labelled,
            "on-policy rank": ranks,
            "on-policy visitation": logarithm(policy * count),
            "value": value,
            "predecessors": spread / np.maximum(spread.max(axis=1, keepdims=True), 1e-12),
            "termination": obs["termination"],
            "nearness to best value": near,
            "budget left": left,
            "labels left": left * budgets[:, None] / count,
            "reward seen": value.any(axis=1, keepdims=True),
        }
        out: Float32Array = np.repeat(fixed, len(value) // len(fixed), axis=0)
        for i, name in enumerate(NAMES):
            if name in columns and name not in self._without:
                np.multiply(columns[name], seen, out=out[:, :, i], casting="unsafe")
        return out
