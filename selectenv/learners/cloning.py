"""Behaviour cloning: a network that imitates the actions of the data and needs no labels."""

from dataclasses import dataclass, field
from threading import Lock
from typing import cast

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.kernels.network.updates import Transitions
from selectenv.learners.network_learner import NetworkLearner, Trained
from selectenv.learners.training_run import CloningRun
from selectenv.policies import ActingNetwork, CloningPolicy
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray

_CLONING = Lock()


@dataclass(frozen=True, eq=False, kw_only=True)
class CloningLearner(NetworkLearner):
    """Maximises the likelihood of the data's actions."""

    gamma: float = 0.99
    most_likely: bool = False
    """Take the most likely action instead of sampling one."""
    rule = "none"
    _clones: dict[tuple[str, int], tuple[CloningPolicy, ...]] = field(default_factory=dict, init=False, repr=False)

    def clone(self, dataset: OfflineDataset, run: int) -> ActingNetwork:
        """Return the trained network of a run; it does not depend on labels."""
        return self._clone_policies(dataset, run)[-1].logits

    def _clone_policies(self, dataset: OfflineDataset, run: int) -> tuple[CloningPolicy, ...]:
        """Return the policies [evaluations] of a run."""
        key = dataset.base.fingerprint, run
        with _CLONING:
            if key not in self._clones:
                base = dataset.base
                data = Transitions(base.state, base.action, base.next_state, np.zeros(len(base), np.float32))
                rng = generator(self.seed, "learner", run, "cloning")
                fresh = CloningRun(
                    data, self.architecture(base), base.n_actions, self.settings, rng, most_likely=self.most_likely
                )
                trained = self.train(base, fresh, np.arange(len(base)), run)
                self._clones[key] = cast(tuple[CloningPolicy, ...], trained.policies)
        return self._clones[key]

    def _informative(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray) -> BoolArray:
        return np.zeros_like(labels)

    def _trained(
        self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray, run: int, before: Trained | None = None
    ) -> Trained:
        return Trained(self._clone_policies(dataset, run))
