"""Exact learning on the empirical model: what Q-learning would find with endless passes over the data.

UDS (Yu et al. 2022, https://arxiv.org/abs/2202.01741) replaces unknown rewards and learns as usual:

    Q(s, a) = r_L(s, a) + gamma sum_s' P(s' | s, a) max_a' Q(s', a'),   r_L = r if s in L else impute.

Adapted Q-learning defines Q only on the labelled states, values unlabelled next states at 0 and leaves the data's own
action frequencies in force elsewhere.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.kernels.tabular.model import Model
from selectenv.kernels.tabular.single import in_lanes, learn_one
from selectenv.kernels.tabular.solve import LANES, learn_blocks
from selectenv.learners.base import Learned
from selectenv.typing import BoolArray, FloatArray

CHUNK_FLOATS = 1 << 16
"""Policies of one chunk: half a MiB, so that they are still in the cache when they are evaluated."""


@dataclass(frozen=True, eq=False)
class ExactLearner:
    """Solves the empirical model of a dataset for any label set."""

    dataset: OfflineDataset
    adapted: bool = False
    gamma: float = 0.99
    impute: float = 0.0
    exclude_unseen: bool = False

    @cached_property
    def _model(self) -> Model:
        return self.dataset.empirical_model(exclude_unseen=self.exclude_unseen)

    @property
    def sets_per_chunk(self) -> int:
        """Policies of about `CHUNK_FLOATS` in all: whole blocks of lanes where there is room for one."""
        sets = CHUNK_FLOATS // (self.dataset.n_states * self.dataset.n_actions)
        return LANES * (sets // LANES) if sets >= LANES else max(1, sets)

    @property
    def only_rewards_matter(self) -> bool:
        """Whether labelling a state without a reward changes nothing."""
        return not self.adapted and self.impute == 0

    def learn(self, labels: BoolArray) -> Learned:
        """Learn from one label set [n]."""
        values, q, policy = learn_one(self._model, labels, *self._rule)
        return Learned(q, values, policy)

    def learn_policies(self, masks: BoolArray) -> FloatArray:
        """Learn from many label sets [sets, n]; see `Learner.learn_policies`."""
        if not in_lanes(self._model):
            return np.stack([learn_one(self._model, mask, *self._rule)[2] for mask in masks])[..., None]
        n, actions = self.dataset.n_states, self.dataset.n_actions
        blocks = -(-len(masks) // LANES)
        lanes = -(-len(masks) // blocks)
        policies = np.empty((blocks, n, actions, lanes))
        learn_blocks(
            self._model, masks, *self._rule, np.empty((1, n, lanes)), np.empty((1, n, actions, lanes)), policies
        )
        return policies

    @property
    def _rule(self) -> tuple[float, float, bool, FloatArray]:
        return self.gamma, self.impute, self.adapted, self.dataset.action_frequencies
