"""Base class of neural learners: training runs with checkpoints, and a cache of the last few networks."""

import hashlib
import json
import math
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.kernels.network.updates import Network
from selectenv.learners.architectures import Architecture, architecture_of, check_observations
from selectenv.learners.base import FitResult
from selectenv.learners.training_run import VERSION, Run, Settings, Watch, copy_networks, train
from selectenv.policies import NetworkInput, PolicyList, ValuedPolicy
from selectenv.typing import BoolArray, FloatArray, IntArray

KEPT = 16
"""Maximum number of policies that are kept in memory; those of the last label set are always kept."""
_KEEPING, _PREPARING = Lock(), Lock()


class Trained(NamedTuple):
    """A finished training run."""

    policies: tuple[ValuedPolicy, ...]
    """[evaluations]"""
    networks: dict[str, Network] | None = None
    """What a warm start continues from; None if nothing was trained or there are no warm starts."""
    updates: int = 0
    """Number of updates that the networks have made, earlier runs included."""
    digest: str = ""
    """Identifies the run."""


class NetworkFit(FitResult):
    """The result of a neural learner; values and tables are computed at their first use."""

    runs: tuple[ValuedPolicy, ...]

    def __init__(
        self,
        trained: tuple[Trained, ...],
        updates: Sequence[int],
        dataset: OfflineDataset,
        key: bytes,
        architecture: Architecture,
        labels_from_scratch: int,
    ) -> None:
        """Create a result.

        Args:
            trained: the training runs.
            updates: [evaluations] the numbers of updates after which the runs are evaluated.
            dataset: the data.
            key: identifies the data and the labels that change what is learned.
            architecture: the architecture of the networks.
            labels_from_scratch: number of labels that could change what was learned when the networks were last trained
                from scratch.
        """
        runs = tuple(run.policies[-1] for run in trained)
        super().__init__(runs[0], runs=runs, dataset=dataset)
        self.trained, self.key, self._updates = trained, key, np.array(updates, np.int64)
        self._architecture, self.labels_from_scratch = architecture, labels_from_scratch

    def over_cells(self) -> "NetworkFit":
        """Return the same networks, tabulated at the states of tables."""
        cells, updates = self._data.cells, self._updates.tolist()
        return NetworkFit(self.trained, updates, cells, self.key, self._architecture, self.labels_from_scratch)

    @property
    def batch(self) -> PolicyList:
        """The policies of all evaluations, run by run."""
        return PolicyList([policy for run in self.trained for policy in run.policies])

    @property
    def updates(self) -> IntArray:
        """[evaluations] the numbers of updates after which a run is evaluated."""
        return self._updates

    @property
    def q(self) -> FloatArray:
        """[n, actions] action values, averaged over training runs."""
        return self._tables[0]

    @cached_property
    def table(self) -> FloatArray:
        """[n, actions] action probabilities at the dataset's states, averaged over training runs."""
        return self._tables[1]

    @cached_property
    def values(self) -> FloatArray:
        """[n] state values, averaged over training runs: those of the value network where the learner has one."""
        states, observations = self._states
        return self._by_state(np.mean([policy.state_values(states, observations) for policy in self.runs], axis=0))

    @property
    def _states(self) -> tuple[IntArray, NetworkInput]:
        """The numbers and the observations of all states that the networks know, those before grouping."""
        groups = self._data.groups
        states = np.arange(self._data.n_states) if groups is None else groups.cell.astype(np.int64)
        return states, self._architecture.all_states

    @cached_property
    def _tables(self) -> tuple[FloatArray, FloatArray]:
        states, observations = self._states
        found = [policy.values_and_probabilities(states, observations) for policy in self.runs]
        q, table = (np.mean(parts, axis=0) for parts in zip(*found, strict=True))
        return self._by_state(q), self._by_state(table, 1 / self._data.n_actions)

    def _by_state(self, found: FloatArray, otherwise: float = 0.0) -> FloatArray:
        """Return the means over the transitions of each state, from numbers of all states before grouping.

        Groups without transitions get ``otherwise``.
        """
        data = self._data
        if data.groups is not None:
            found = data.means_by_state(found[data.base.state])
            found[~data.labelable] = otherwise
        found.flags.writeable = False
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkLearner:
    """Trains networks from scratch: the result is a function of data, rewards and labels.

    The observations of the data decide what networks these are; see `architecture_of`.

    With ``warm_start``, `fit_from` continues the training of an earlier result instead.
    """

    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    training_runs: int = 1
    """Independent training runs whose returns are averaged."""
    checkpoints: Path | None = None
    """Directory of checkpoints to resume from; finished runs stay there."""
    watch: Watch | None = None
    """Called as training proceeds."""
    warm_start: bool = False
    """Whether `fit_from` continues from the networks of an earlier fit."""
    warm_share: float = 0.2
    """Share of the updates that it makes then."""
    warm_growth: float = 2.0
    """Growth of the number of labels after which it trains from scratch again.

    Networks that were trained on few labels, whose rewards are nearly all 0, hardly learn from more of them later.
    """
    _kept: OrderedDict[bytes, tuple[Trained, ...]] = field(default_factory=OrderedDict, init=False, repr=False)
    _architectures: dict[str, tuple[object, Architecture]] = field(default_factory=dict, init=False, repr=False)

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return 1: one label set takes minutes."""
        return 1

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> NetworkFit:
        """Learn from one label set; see `Learner.fit`.

        Raises:
            DatasetError: the dataset has no observations that networks can take.
        """
        known, key = self._known(dataset, rewards, labels)
        with _KEEPING:
            trained = self._kept.get(key)
            if trained is not None:
                self._kept.move_to_end(key)
        if trained is None:
            trained = tuple(self._trained(dataset, rewards, known, run) for run in range(self.training_runs))
            with _KEEPING:
                self._kept[key] = trained
                while len(self._kept) > max(1, KEPT // (self.training_runs * self.settings.evaluations)):
                    self._kept.popitem(last=False)
        updates = self.settings.evaluated_at
        return NetworkFit(trained, updates, dataset, key, self.architecture(dataset), int(known.sum()))

    def fit_from(
        self, previous: FitResult, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray
    ) -> NetworkFit | None:
        """Learn from one label set, continuing from the result for earlier labels.

        The result depends on ``previous``, so it is not kept, and `fit` never returns it.

        Returns:
            None if there is nothing to continue from, there are too many new labels, or there are no warm starts.
        """
        if not self.warm_start or not isinstance(previous, NetworkFit):
            return None
        known, key = self._known(dataset, rewards, labels)
        if previous.key == key:
            return previous
        begun_with = previous.labels_from_scratch
        if known.sum() >= self.warm_growth * begun_with or any(run.networks is None for run in previous.trained):
            return None
        trained = tuple(self._trained(dataset, rewards, known, i, run) for i, run in enumerate(previous.trained))
        return NetworkFit(trained, (trained[0].updates,), dataset, key, self.architecture(dataset), begun_with)

    def _known(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None) -> tuple[BoolArray, bytes]:
        """Return the labels [n] that can change what is learned, and a key that identifies them and the data."""
        check_observations(dataset)
        known = dataset.states_with_rewards(rewards) if labels is None else labels
        known = self._informative(dataset, rewards, known)
        digest = hashlib.blake2b(known.tobytes(), digest_size=16)
        digest.update(dataset.fingerprint.encode())
        if rewards is not dataset.hidden_reward:
            digest.update(np.where(known[dataset.state], rewards, np.nan).data)
        return known, digest.digest()

    def fit_many(self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> PolicyList:
        """Learn one policy per label set [sets, n], one after the other."""
        return PolicyList([self.fit(dataset, rewards, mask).policy for mask in masks])

    @abstractmethod
    def _informative(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray) -> BoolArray:
        """Return the labels [n] that can change what is learned."""

    @abstractmethod
    def _trained(
        self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray, run: int, before: Trained | None = None
    ) -> Trained:
        """Train one run, from scratch or from the networks of the run ``before``."""

    def architecture(self, dataset: OfflineDataset) -> Architecture:
        """Return the architecture of the networks for a dataset; that of the last dataset is kept."""
        observations = check_observations(dataset)
        with _PREPARING:
            known = self._architectures.get("last")
            if known is None or known[0] is not observations:
                known = self._architectures["last"] = observations, architecture_of(dataset)
        return known[1]

    def train(
        self,
        dataset: OfflineDataset,
        fresh: Run,
        pool: IntArray,
        run: int,
        *identity: object,
        labels: bytes = b"",
        before: Trained | None = None,
    ) -> Trained:
        """Train networks to the end, resuming from a checkpoint if there is one.

        Args:
            dataset: the data.
            fresh: the networks.
            pool: the transitions to draw from, by number.
            run: the number of the training run.
            *identity: what else the result depends on, ready for JSON.
            labels: the label set, as bytes.
            before: the run to continue, if any.
        """
        settings, begun, history = self.settings, 0, ""
        if before is not None and before.networks is not None:
            updates = math.ceil(self.warm_share * settings.updates)
            settings, begun, history = replace(settings, updates=updates, evaluations=1), before.updates, before.digest
            copy_networks(fresh, before.networks)
        what = [VERSION, type(fresh).__name__, dataset.fingerprint, settings.identity, int(self.seed), run]
        found = hashlib.blake2b(json.dumps([*what, self.warm_start, history, *identity]).encode(), digest_size=16)
        found.update(labels)
        digest = found.hexdigest()
        policies = train(
            fresh,
            pool,
            settings,
            self.seed,
            "learner",
            run,
            begun=begun,
            checkpoint=None if self.checkpoints is None else self.checkpoints / f"{digest}.npz",
            keep_memory=self.warm_start,
            watch=self.watch,
        )
        return Trained(policies, fresh.networks if self.warm_start else None, begun + settings.updates, digest)
