"""Learners with networks, for states that are pictures: implicit Q-learning by both rules, and behaviour cloning.

UDS: unlabelled transitions get a made-up reward and are learned from like the others. Adapted: only transitions out of
labelled states are learned from, an unlabelled next state is worth 0, and where there is no label a second network acts
as the data do.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Protocol, runtime_checkable

import numpy as np

from selectenv.checks import check_name
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.images import Pictures
from selectenv.errors import DatasetError
from selectenv.kernels.network.cnn import SIDE, Layers
from selectenv.kernels.network.patches import Patches, find_patches
from selectenv.kernels.network.updates import Transitions
from selectenv.learners.base import Learned
from selectenv.learners.training_run import VERSION, CloningRun, IqlRun, Run, Settings, Watch, train
from selectenv.policies import CloningPlayer, GreedyPlayer, LabelledPlayer, Player, RandomPlayer, greedy
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray, IntArray

RULES = ("uds", "adapted", "none")
KEPT = 16
"""Label sets whose networks are kept, so that looking again costs nothing."""
PICTURES_AT_ONCE = 4096
CHANNELS = 14
"""Of a picture at most: a patch must fit into 128 bits."""
_KEEPING, _CLONING = Lock(), Lock()


@runtime_checkable
class PlayerLearner(Protocol):
    """A learner whose policies act on pictures."""

    def players(self, labels: BoolArray) -> Sequence[Player]:
        """Return what was learned from one label set [n], a player a training run."""


@dataclass(frozen=True, eq=False)
class PictureLearner:
    """Trains the small network for any label set, from scratch: what comes out is a function of the labels alone.

    Where the labels show no reward at all there is nothing to learn, and no time is spent: every action is worth the
    same, in all pictures with UDS, in labelled ones by the adapted rule.
    """

    dataset: OfflineDataset
    rule: str = "uds"
    """"uds", "adapted", or "none": behaviour cloning, which needs no labels."""
    settings: Settings = field(default_factory=Settings)
    gamma: float = 0.99
    impute: float = 0.0
    seed: int = 0
    runs: int = 1
    """Training runs that are averaged."""
    checkpoints: Path | None = None
    """Folder of training runs to go on with; finished ones stay there."""
    likeliest: bool = False
    """Behaviour cloning: take the likeliest action instead of drawing one."""
    watch: Watch | None = None
    """Looks at training as it goes."""
    _kept: OrderedDict[bytes, tuple[Player, ...]] = field(default_factory=OrderedDict, init=False, repr=False)
    _clones: dict[int, Layers] = field(default_factory=dict, init=False, repr=False)

    sets_per_chunk = 1

    def __post_init__(self) -> None:
        """Refuse data without pictures that the network can take."""
        check_name("rule", self.rule, RULES)
        if self.dataset.pictures is None:
            raise DatasetError("networks learn from pictures: this dataset has none, its learners are uds and adapted")
        shape = self.dataset.pictures.shape
        if len(shape) != 3 or shape[:2] != (SIDE, SIDE) or not 1 <= shape[2] <= CHANNELS:
            raise DatasetError(
                f"networks take pictures of {SIDE} x {SIDE} cells and 1 to {CHANNELS} channels, not {shape}"
            )

    @property
    def adapted(self) -> bool:
        """Whether the rule is the adapted one."""
        return self.rule == "adapted"

    @property
    def only_rewards_matter(self) -> bool:
        """Whether labelling a state without a reward changes nothing."""
        return self.rule == "uds" and self.impute == 0

    def learn(self, labels: BoolArray) -> Learned:
        """Learn from one label set [n], and say what it means for the states of the data."""
        shape = self.dataset.n_states, self.dataset.n_actions
        q, policy = np.zeros(shape), np.zeros(shape)
        players = self.players(labels)
        for player in players:
            for first in range(0, shape[0], PICTURES_AT_ONCE):
                part = slice(first, first + PICTURES_AT_ONCE)
                pictures = self._pictures[part]
                if isinstance(player, GreedyPlayer):
                    values = player.values(pictures)
                    q[part] += values
                    policy[part] += greedy(values)
                    continue
                if isinstance(player, LabelledPlayer) and isinstance(player.valued, GreedyPlayer):
                    q[part] += np.where(labels[part, None], player.valued.values(pictures), 0.0)
                policy[part] += player.probabilities(pictures)
        q /= len(players)
        return Learned(q, q.max(axis=1), policy / len(players))

    def players(self, labels: BoolArray) -> Sequence[Player]:
        """Return what was learned from one label set [n], a player a training run."""
        labels = self._telling(labels)
        key = hashlib.blake2b(labels.data, digest_size=16).digest()
        with _KEEPING:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        players = tuple(self._player(labels, run) for run in range(self.runs))
        with _KEEPING:
            self._kept[key] = players
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return players

    def learn_policies(self, masks: BoolArray) -> FloatArray:
        """Learn from many label sets [sets, n]; see `Learner.learn_policies`."""
        return np.stack([self.learn(mask).policy for mask in masks])[..., None]

    def _telling(self, labels: BoolArray) -> BoolArray:
        """Return the labels [n] that teach something: UDS knows already that a reward is the one it makes up."""
        if self.rule == "none":
            return np.zeros_like(labels)
        return labels & self._surprising if self.rule == "uds" else labels

    def _player(self, labels: BoolArray, run: int) -> Player:
        if self.rule == "none":
            return CloningPlayer(self._cloned(run), self.likeliest)
        data, pool = self._transitions(labels)
        valued: GreedyPlayer | RandomPlayer = RandomPlayer(self.dataset.n_actions)
        if len(pool) and data.reward[pool].any():
            valued = GreedyPlayer(self._valued(data, pool, labels, run))
        if not self.adapted:
            return valued
        return LabelledPlayer(valued, CloningPlayer(self._cloned(run)), labels.copy(), self.dataset.ids, self._pictures)

    def _transitions(self, labels: BoolArray) -> tuple[Transitions, IntArray]:
        """Return the data as the rule sees them, and the transitions to learn from."""
        data = self.dataset
        known = labels[data.state]
        reward = np.nan_to_num(data.reveal(labels), nan=self.impute) if known.any() else np.full(len(data), self.impute)
        following = data.next_state
        if self.adapted:
            following = np.where((following >= 0) & labels[following], following, np.int32(-1))
        pool = np.flatnonzero(known) if self.adapted else np.arange(len(data))
        return Transitions(data.state, data.action, following, reward.astype(np.float32)), pool

    def _valued(self, data: Transitions, pool: IntArray, labels: BoolArray, run: int) -> tuple[Layers, ...]:
        rng = generator(self.seed, "learner", run, "weights")
        fresh = IqlRun(data, self._patches, *self._sizes, self.gamma, self.settings, rng)
        self._train(fresh, pool, labels, run)
        return fresh.action_values

    def _cloned(self, run: int) -> Layers:
        """Return the network that acts as the data do; it does not depend on labels."""
        with _CLONING:
            if run not in self._clones:
                data = self.dataset
                everything = Transitions(data.state, data.action, data.next_state, np.zeros(len(data), np.float32))
                rng = generator(self.seed, "learner", run, "cloning")
                fresh = CloningRun(everything, self._patches, *self._sizes, self.settings, rng)
                self._train(fresh, np.arange(len(data)), None, run)
                self._clones[run] = fresh.logits
        return self._clones[run]

    def _train(self, fresh: Run, pool: IntArray, labels: BoolArray | None, run: int) -> None:
        path = None
        if self.checkpoints is not None:
            what = [VERSION, type(fresh).__name__, self.dataset.fingerprint, asdict(self.settings), self.seed, run]
            if labels is not None:
                what += [self.rule, self.gamma, self.impute]
            digest = hashlib.blake2b(json.dumps(what).encode(), digest_size=16)
            digest.update(b"" if labels is None else labels.data)
            path = self.checkpoints / f"{digest.hexdigest()}.npz"
        train(fresh, pool, self.settings, self.seed, "learner", run, checkpoint=path, watch=self.watch)

    @cached_property
    def _surprising(self) -> BoolArray:
        """The states [n] with a reward that is not the one UDS makes up."""
        found = np.zeros(self.dataset.n_states, bool)
        if self.dataset.hidden_reward is not None:
            found[self.dataset.state[self.dataset.hidden_reward != self.impute]] = True
        return found

    @cached_property
    def _patches(self) -> Patches:
        return find_patches(self._pictures.words, self._pictures.shape)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Channels and actions."""
        return self._pictures.shape[2], self.dataset.n_actions

    @property
    def _pictures(self) -> Pictures:
        assert self.dataset.pictures is not None
        return self.dataset.pictures
