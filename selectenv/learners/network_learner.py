"""Base class of neural learners: training runs with checkpoints, and a cache of the last few networks."""

import hashlib
import json
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.images import Images
from selectenv.errors import DatasetError
from selectenv.kernels.network.cnn import SIDE
from selectenv.kernels.network.patches import Patches, find_patches
from selectenv.learners.base import STATES_AT_ONCE, FitResult
from selectenv.learners.training_run import VERSION, Run, Settings, Watch, train
from selectenv.policies import PolicyList, ValuedPolicy
from selectenv.typing import BoolArray, FloatArray, IntArray

KEPT = 16
"""Policies that are kept in memory, and those of the last label set in any case."""
CHANNELS = 14
"""Maximum number of channels of an image: a patch must fit into 128 bits."""
Curves = tuple[tuple[ValuedPolicy, ...], ...]
"""The policies [runs][evaluations] of training runs."""
_KEEPING, _PREPARING = Lock(), Lock()


class NetworkFit(FitResult):
    """The result of a neural learner; values and tables are computed at their first use."""

    runs: tuple[ValuedPolicy, ...]

    def __init__(self, policies: Curves, updates: Sequence[int], dataset: OfflineDataset) -> None:
        """Create a result from the policies [runs][evaluations] after the given numbers of updates [evaluations]."""
        runs = tuple(curve[-1] for curve in policies)
        super().__init__(runs[0], runs=runs, dataset=dataset)
        self._policies, self._updates = policies, np.array(updates, np.int64)

    @property
    def batch(self) -> PolicyList:
        """The policies of all evaluations, run by run."""
        return PolicyList([policy for curve in self._policies for policy in curve])

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
        values = np.zeros(self._data.n_states)
        for states, images in self._parts():
            for policy in self.runs:
                values[states] += policy.state_values(states, images)
        values /= len(self.runs)
        values.flags.writeable = False
        return values

    def _parts(self) -> Iterator[tuple[IntArray, BoolArray]]:
        """Yield the numbers and the images of all states, some at a time."""
        n, images = self._data.n_states, images_of(self._data)
        for first in range(0, n, STATES_AT_ONCE):
            states = np.arange(first, min(first + STATES_AT_ONCE, n))
            yield states, images[states]

    @cached_property
    def _tables(self) -> tuple[FloatArray, FloatArray]:
        data = self._data
        q, table = np.zeros((data.n_states, data.n_actions)), np.zeros((data.n_states, data.n_actions))
        for states, images in self._parts():
            for policy in self.runs:
                values, probabilities = policy.values_and_probabilities(states, images)
                q[states] += values
                table[states] += probabilities
        q, table = q / len(self.runs), table / len(self.runs)
        q.flags.writeable = table.flags.writeable = False
        return q, table


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkLearner:
    """Trains the small convolutional network from scratch: the result is a function of data, rewards and labels."""

    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    training_runs: int = 1
    """Independent training runs whose returns are averaged."""
    checkpoints: Path | None = None
    """Directory of checkpoints to resume from; finished runs stay there."""
    watch: Watch | None = None
    """Called as training proceeds."""
    _kept: OrderedDict[bytes, Curves] = field(default_factory=OrderedDict, init=False, repr=False)
    _patches: dict[str, tuple[Images, Patches]] = field(default_factory=dict, init=False, repr=False)

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return 1: one label set takes minutes."""
        return 1

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> NetworkFit:
        """Learn from one label set; see `Learner.fit`.

        Raises:
            DatasetError: the dataset has no images that the network can take.
        """
        images_of(dataset)
        known = dataset.states_with_rewards(rewards) if labels is None else labels
        known = self._informative(dataset, rewards, known)
        digest = hashlib.blake2b(known.data, digest_size=16)
        digest.update(dataset.fingerprint.encode())
        if rewards is not dataset.hidden_reward:
            digest.update(np.where(known[dataset.state], rewards, np.nan).data)
        key = digest.digest()
        with _KEEPING:
            policies = self._kept.get(key)
            if policies is not None:
                self._kept.move_to_end(key)
        if policies is None:
            policies = tuple(self._policies(dataset, rewards, known, run) for run in range(self.training_runs))
            with _KEEPING:
                self._kept[key] = policies
                while len(self._kept) > max(1, KEPT // (self.training_runs * self.settings.evaluations)):
                    self._kept.popitem(last=False)
        return NetworkFit(policies, self.settings.evaluated_at, dataset)

    def fit_many(self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> PolicyList:
        """Learn one policy per label set [sets, n], one after the other."""
        return PolicyList([self.fit(dataset, rewards, mask).policy for mask in masks])

    @abstractmethod
    def _informative(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray) -> BoolArray:
        """Return the labels [n] that can change what is learned."""

    @abstractmethod
    def _policies(
        self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray, run: int
    ) -> tuple[ValuedPolicy, ...]:
        """Train one run and return its policies [evaluations]."""

    def patches(self, dataset: OfflineDataset) -> Patches:
        """Return the distinct image patches of a dataset; those of the last dataset are kept."""
        images = images_of(dataset)
        with _PREPARING:
            known = self._patches.get("last")
            if known is None or known[0] is not images:
                found = find_patches(images.words, images.shape, dataset.visits)
                known = self._patches["last"] = images, found
        return known[1]

    def train(
        self, dataset: OfflineDataset, fresh: Run, pool: IntArray, run: int, *identity: object, labels: bytes = b""
    ) -> tuple[ValuedPolicy, ...]:
        """Train fresh networks to the end, resuming from a checkpoint if there is one; return the policies of `train`.

        Args:
            dataset: the data.
            fresh: the networks.
            pool: the transitions to draw from, by number.
            run: the number of the training run.
            *identity: what else the result depends on, ready for JSON.
            labels: the label set, as bytes.
        """
        path = None
        if self.checkpoints is not None:
            what = [VERSION, type(fresh).__name__, dataset.fingerprint, asdict(self.settings), self.seed, run]
            digest = hashlib.blake2b(json.dumps([*what, *identity]).encode(), digest_size=16)
            digest.update(labels)
            path = self.checkpoints / f"{digest.hexdigest()}.npz"
        return train(fresh, pool, self.settings, self.seed, "learner", run, checkpoint=path, watch=self.watch)


def images_of(dataset: OfflineDataset) -> Images:
    """Return the images of a dataset.

    Raises:
        DatasetError: there are none, or none that the network can take.
    """
    images = dataset.images
    if images is None:
        raise DatasetError("neural learners need images, and this dataset has none; its learners are uds and adapted")
    shape = images.shape
    if len(shape) != 3 or shape[:2] != (SIDE, SIDE) or not 1 <= shape[2] <= CHANNELS:
        raise DatasetError(
            f"neural learners take images of {SIDE} x {SIDE} cells and 1 to {CHANNELS} channels, not of shape {shape}"
        )
    return images
