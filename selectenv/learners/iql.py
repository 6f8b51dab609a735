"""Implicit Q-learning with networks, from partly known rewards, under both rules.

UDS: unlabelled transitions get an imputed reward and are learned from like the others. Adapted: only transitions out of
labelled states are learned from, an unlabelled next state is worth 0, and in unlabelled states a second network
imitates the data.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from selectenv.checks import check_name
from selectenv.datasets.dataset import OfflineDataset
from selectenv.kernels.network.updates import Transitions
from selectenv.learners.cloning import CloningLearner
from selectenv.learners.imputed_reward import imputed_reward, oracle_of
from selectenv.learners.network_learner import NetworkLearner, Trained
from selectenv.learners.training_run import IqlRun
from selectenv.options import REVEALED_MINIMUM
from selectenv.policies import CloningPolicy, LabelledPolicy, UniformPolicy
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray, IntArray

RULES = ("uds", "adapted")


@dataclass(frozen=True, eq=False, kw_only=True)
class IqlLearner(NetworkLearner):
    """Trains two action-value networks and a value network for any label set.

    Where the labels reveal no reward other than 0, nothing is trained: every action is worth the same, in all states
    under UDS, in labelled ones under the adapted rule.
    """

    rule: str = "uds"
    """"uds" or "adapted"."""
    gamma: float = 0.99
    impute: float | str = 0.0
    """UDS: the reward of unlabelled transitions, "min" or "dataset-min"; see `imputed_rewards`."""

    def __post_init__(self) -> None:
        """Reject other rules."""
        check_name("rule", self.rule, RULES)

    @property
    def oracle(self) -> str:
        """What the learner knows beyond the rewards that labels reveal, if anything."""
        return oracle_of(self.impute)

    @property
    def only_rewards_matter(self) -> bool:
        """Whether labelling a state all of whose rewards are 0 changes nothing."""
        return self.rule == "uds" and self.impute == 0

    @cached_property
    def cloning(self) -> CloningLearner:
        """The learner whose network acts in unlabelled states under the adapted rule."""
        shared = {f.name: getattr(self, f.name) for f in fields(NetworkLearner) if f.init}
        shared |= {"settings": replace(self.settings, evaluations=1), "warm_start": False}
        return CloningLearner(gamma=self.gamma, **shared)

    def _informative(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray) -> BoolArray:
        """Under UDS, drop labels whose reward equals the imputed value, unless they decide what is imputed."""
        if self.rule == "adapted" or self.impute == REVEALED_MINIMUM:
            return labels
        telling = np.zeros(dataset.n_states, bool)
        different = ~np.isnan(rewards) & (rewards != imputed_reward(self.impute, dataset, rewards, labels))
        telling[dataset.state[different]] = True
        return labels & telling

    def _trained(
        self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray, run: int, before: Trained | None = None
    ) -> Trained:
        data, pool = self._transitions(dataset, rewards, labels)
        trained = Trained((UniformPolicy(dataset.n_actions),) * self.settings.evaluations)
        if len(pool) and data.reward[pool].any():
            rng = generator(self.seed, "learner", run, "weights")
            fresh = IqlRun(data, self.architecture(dataset), dataset.n_actions, self.gamma, self.settings, rng)
            known = labels.tobytes()
            if rewards is not dataset.hidden_reward:
                known += np.where(labels[dataset.state], rewards, np.nan).tobytes()
            identity = self.rule, self.gamma, self.impute
            trained = self.train(dataset, fresh, pool, run, *identity, labels=known, before=before)
        if self.rule == "uds":
            return trained
        otherwise = CloningPolicy(self.cloning.clone(dataset, run))
        labelled = dataset.labelled_cells(labels).copy()
        acting = tuple(LabelledPolicy(policy, otherwise, labelled) for policy in trained.policies)
        return trained._replace(policies=acting)

    def _transitions(
        self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray
    ) -> tuple[Transitions, IntArray]:
        """Return the data as the rule sees them, and the transitions to learn from."""
        impute = imputed_reward(self.impute, dataset, rewards, labels)
        known = labels[dataset.state] & ~np.isnan(rewards)
        reward = np.where(known, rewards, impute)
        base, entered = dataset.base, dataset.next_state
        following = base.next_state
        if self.rule == "adapted":
            following = np.where((entered >= 0) & labels[entered], following, np.int32(-1))
        pool = np.flatnonzero(known) if self.rule == "adapted" else np.arange(len(dataset))
        return Transitions(base.state, base.action, following, reward.astype(np.float32)), pool
