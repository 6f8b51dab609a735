"""The published stochastic learner: Q-learning, sample by sample, over reshuffled passes through the data."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.kernels.tabular.qlearning import learn_sets
from selectenv.learners.base import Learned
from selectenv.streams import seed_word
from selectenv.typing import BoolArray, FloatArray, Int32Array


class _Samples(NamedTuple):
    """The transitions as small tables and an index into them."""

    kind: Int32Array
    state: Int32Array
    action: Int32Array
    next_state: Int32Array
    reward: FloatArray


@dataclass(frozen=True, eq=False)
class SampledLearner:
    """Q-learning with a constant step size; the random order follows from the seed and the label set."""

    dataset: OfflineDataset
    adapted: bool = False
    gamma: float = 0.99
    impute: float = 0.0
    exclude_unseen: bool = False
    seed: int = 0
    passes: int = 20
    step_size: float = 0.05
    stop: float = 0.001

    sets_per_chunk = 4

    @cached_property
    def _samples(self) -> _Samples:
        """Distinct transitions, told apart by their rewards too: a noisy reward is learned from as it came."""
        kinds = self.dataset.kinds
        reward = self.dataset.hidden_reward
        kind, merged, values = kinds.kind, np.arange(len(kinds.count)), kinds.reward
        if reward is not None and (reward != kinds.reward[kind]).any():
            pairs = np.stack([kind.astype(np.float64), reward], axis=1)
            distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
            kind, merged, values = inverse.ravel().astype(np.int32), distinct[:, 0].astype(np.int64), distinct[:, 1]
        state, action, following = (
            column[merged].astype(np.int32) for column in (kinds.state, kinds.action, kinds.next_state)
        )
        return _Samples(kind, state, action, following, np.ascontiguousarray(values))

    @cached_property
    def _excluded(self) -> BoolArray:
        seen = np.zeros((self.dataset.n_states, self.dataset.n_actions), bool)
        seen[self._samples.state, self._samples.action] = True
        return ~seen if self.exclude_unseen else np.zeros_like(seen)

    def learn(self, labels: BoolArray) -> Learned:
        """Learn from one label set [n]."""
        q, policies = self._learn(labels[None])
        return Learned(np.where(self._excluded, np.nan, q[0]), self._best(q[0]), policies[0])

    def learn_policies(self, masks: BoolArray) -> FloatArray:
        """Learn from many label sets [sets, n]; see `Learner.learn_policies`."""
        return self._learn(masks)[1][..., None]

    def _best(self, q: FloatArray) -> FloatArray:
        best = np.where(self._excluded, -np.inf, q).max(axis=1)
        return np.where(np.isfinite(best), best, 0.0)

    def _learn(self, masks: BoolArray) -> tuple[FloatArray, FloatArray]:
        q = np.empty((len(masks), self.dataset.n_states, self.dataset.n_actions))
        policies = np.empty_like(q)
        learn_sets(
            np.ascontiguousarray(masks), *self._samples, self.impute, self.adapted, self._excluded, self.gamma,
            self.step_size, self.passes, self.stop, seed_word(self.seed, "learner"),
            self.dataset.action_frequencies, q, policies,
        )  # fmt: skip
        return q, policies
