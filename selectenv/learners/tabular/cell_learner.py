"""Tables for labels that cover whole episodes instead of the states of the table.

A label on an episode reveals the rewards of its transitions, so a state of the table, a cell, may have transitions with
and without a known reward. UDS imputes the unknown ones, transition by transition. The adapted rule learns from the
transitions with a known reward only, values cells without any at 0, and follows the data's own action frequencies
there.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.learners.base import FitResult, Learner
from selectenv.learners.imputed_reward import imputed_reward
from selectenv.policies import PolicyBatch, PolicyList, TablePolicy
from selectenv.typing import BoolArray, FloatArray


class CellFit(FitResult):
    """A table over cells; values and probabilities of groups are means over their transitions."""

    def __init__(self, table: FloatArray, q: FloatArray, values: FloatArray, dataset: OfflineDataset) -> None:
        """Create a result from a policy and action values [cells, actions] and values [cells]."""
        super().__init__(TablePolicy(table), dataset=dataset)
        self._cell_table, self._cell_q, self._cell_values = table, q, values

    def over_cells(self) -> FitResult:
        """Return the table itself."""
        return FitResult(self.policy, self._cell_q, self._cell_values, table=self._cell_table, dataset=self._data.cells)

    def _means(self, of_cells: FloatArray) -> FloatArray:
        return self._data.means_by_state(of_cells[self._data.cells.state])

    @property
    def q(self) -> FloatArray:
        """[n, actions] action values."""
        return self._means(self._cell_q)

    @cached_property
    def values(self) -> FloatArray:
        """[n] state values."""
        return self._means(self._cell_values)

    @cached_property
    def table(self) -> FloatArray:
        """[n, actions] action probabilities; uniform in groups without transitions."""
        found = self._means(self._cell_table)
        found[~self._data.labelable] = 1 / self._data.n_actions
        return found


class CellLearner:
    """Learns a table over the cells of a dataset whose labels cover other groups of transitions."""

    def __init__(self, inner: Any) -> None:
        """Learn with ``inner``, a tabular learner."""
        self.inner = inner
        self.rule: str = inner.rule
        self.gamma: float = inner.gamma
        self.oracle: str = inner.oracle

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return 1: the model is built anew for every label set."""
        return 1

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> CellFit:
        """Learn from one label set; see `Learner.fit`."""
        labels = dataset.states_with_rewards(rewards) if labels is None else labels
        known = labels[dataset.state] & ~np.isnan(rewards)
        cells = dataset.cells
        if self.rule == "adapted":
            return self._fit_known(dataset, cells, rewards, known)
        impute = imputed_reward(self.inner.impute, dataset, rewards, labels)
        found = replace(self.inner, impute=impute).fit(cells, np.where(known, rewards, impute))
        return CellFit(found.table, found.q, found.values, dataset)

    def _fit_known(
        self, dataset: OfflineDataset, cells: OfflineDataset, rewards: FloatArray, known: BoolArray
    ) -> CellFit:
        """Learn from the transitions with known rewards only."""
        shape = cells.n_states, cells.n_actions
        table, q, values = cells.action_frequencies.copy(), np.zeros(shape), np.zeros(shape[0])
        if known.any():
            kept = replace(
                cells,
                state=cells.state[known],
                action=cells.action[known],
                next_state=cells.next_state[known],
                terminated=cells.terminated[known],
                truncated=cells.truncated[known],
                episode_start=cells.episode_start[known],
                groups=None,
                _shared={},
            )
            found, learned = self.inner.fit(kept, rewards[known]), kept.labelable
            assert found.q is not None
            table[learned], q[learned], values[learned] = found.table[learned], found.q[learned], found.values[learned]
        return CellFit(table, q, values, dataset)

    def fit_many(self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> PolicyBatch:
        """Learn one policy per label set [sets, n], one after the other."""
        return PolicyList([self.fit(dataset, rewards, mask).policy for mask in masks])


def on_cells(learner: Learner, dataset: OfflineDataset) -> Learner:
    """Return a learner for a dataset: a table learns on its cells where they are not what labels cover."""
    return CellLearner(learner) if dataset.cells is not dataset and getattr(learner, "is_table", False) else learner
