"""The published stochastic learner: Q-learning, sample by sample, over reshuffled passes through the data."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.kernels.tabular.qlearning import learn_sets
from selectenv.learners.base import FitResult, TableFit
from selectenv.learners.imputed_reward import imputed_rewards, oracle_of
from selectenv.policies import TablePolicies
from selectenv.streams import seed_word
from selectenv.typing import BoolArray, FloatArray, Int32Array


class _Samples(NamedTuple):
    """The transitions as small tables and an index into them."""

    unique: Int32Array
    """[size] which unique transition each one is."""
    state: Int32Array
    action: Int32Array
    next_state: Int32Array
    reward: FloatArray


@dataclass(frozen=True, eq=False)
class SampledLearner:
    """Q-learning with a constant step size; the random order follows from the seed and the label set."""

    rule: str = "uds"
    """"uds" or "adapted"."""
    gamma: float = 0.99
    impute: float | str = 0.0
    """UDS: the reward of unlabelled transitions, "min" or "dataset-min"; see `imputed_rewards`."""
    exclude_unseen: bool = False
    """Whether actions that the data never took are left out instead of being valued at 0."""
    seed: int = 0
    passes: int = 20
    """Maximum number of passes over the data."""
    step_size: float = 0.05
    tolerance: float = 0.001
    """Stop when the mean absolute TD error of two passes differs by less."""
    is_table: ClassVar[bool] = True
    _last: list[tuple[OfflineDataset, _Samples]] = field(default_factory=list, init=False, repr=False)

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return a few label sets: one takes milliseconds."""
        return 4

    @property
    def oracle(self) -> str:
        """What the learner knows beyond the rewards that labels reveal, if anything."""
        return oracle_of(self.impute)

    @property
    def only_rewards_matter(self) -> bool:
        """Never: the order of the samples depends on the label set."""
        return False

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> FitResult:
        """Learn from one label set; see `Learner.fit`."""
        known = dataset.states_with_rewards(rewards) if labels is None else labels
        q, policies, excluded = self._learn(dataset, rewards, known[None])
        best = np.where(excluded, -np.inf, q[0]).max(axis=1)
        values = np.where(np.isfinite(best), best, 0.0)
        q_seen = np.where(excluded, np.nan, q[0])
        return TableFit(policies[0], q_seen, values, dataset)

    def fit_many(self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> TablePolicies:
        """Learn one policy per label set [sets, n]."""
        return TablePolicies(self._learn(dataset, rewards, masks)[1][..., None], len(masks))

    def _learn(
        self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return action values and policies [sets, n, actions], and which actions [n, actions] are excluded."""
        unique = dataset.unique_transitions
        seen = np.zeros((dataset.n_states, dataset.n_actions), bool)
        seen[unique.state, unique.action] = True
        excluded = ~seen if self.exclude_unseen else np.zeros_like(seen)
        q = np.empty((len(masks), dataset.n_states, dataset.n_actions))
        policies = np.empty_like(q)
        imputed = imputed_rewards(self.impute, dataset, rewards, masks)
        for impute in np.unique(imputed):
            where = imputed == impute
            some_q, some_policies = q[where], policies[where]
            learn_sets(
                np.ascontiguousarray(masks[where]),
                *self._samples(dataset, rewards, float(impute)),
                float(impute),
                self.rule == "adapted",
                excluded,
                self.gamma,
                self.step_size,
                self.passes,
                self.tolerance,
                seed_word(self.seed, "learner"),
                dataset.action_frequencies,
                some_q,
                some_policies,
            )
            q[where], policies[where] = some_q, some_policies
        return q, policies, excluded

    def _samples(self, dataset: OfflineDataset, rewards: FloatArray, impute: float) -> _Samples:
        """Return the distinct transitions and rewards: noisy rewards are learned from as they are."""
        hidden = rewards is dataset.hidden_reward
        if hidden and self._last and self._last[0][0] is dataset:
            return self._last[0][1]
        unique = dataset.unique_transitions
        filled = np.where(np.isnan(rewards), impute, rewards)
        values = unique.mean_rewards(filled)[0]
        index, merged = unique.index, np.arange(len(unique.count))
        if (filled != values[index]).any():
            pairs = np.stack([index.astype(np.float64), filled], axis=1)
            distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
            index, merged, values = inverse.ravel().astype(np.int32), distinct[:, 0].astype(np.int64), distinct[:, 1]
        state, action, following = (
            column[merged].astype(np.int32) for column in (unique.state, unique.action, unique.next_state)
        )
        samples = _Samples(index, state, action, following, np.ascontiguousarray(values))
        if hidden:
            self._last[:] = [(dataset, samples)]
        return samples
