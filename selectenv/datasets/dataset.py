"""An offline dataset: transitions whose rewards stay hidden until a state is labelled."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selectenv.checks import as_array, check_int
from selectenv.datasets.images import Pictures
from selectenv.domains.tabular.world import TabularWorld, truth_values
from selectenv.errors import DatasetError, LabelError, NoEvaluatorError, UnknownStateError
from selectenv.kernels.tabular.model import Model, build_model
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray

DENSE_KEYS = 1 << 24
"""Transitions are counted by direct addressing up to so many possible keys, by sorting beyond."""


@dataclass(frozen=True, eq=False)
class OfflineDataset:
    """Transitions over states numbered 0..n-1; build one with `from_arrays` or collect it from a world.

    Rewards are inside but for the labeller only: `reveal` hands them out for labelled states. Learners use `kinds`; a
    strategy that reads it without labels has looked behind the curtain.
    """

    ids: NDArray[Any]
    """[n] the world's own id of each state (integers or strings)."""
    n_actions: int
    state: Int32Array
    """[size] state number of each transition."""
    action: Int32Array
    """[size]"""
    next_state: Int32Array
    """[size] state number, or -1 where the episode ended or nothing is known of the state entered."""
    terminated: BoolArray
    """[size] whether the episode ended by itself."""
    truncated: BoolArray
    """[size] whether it was cut; the transition still counts as going on."""
    episode_start: BoolArray
    """[size] whether the transition is the first of its episode."""
    hidden_reward: FloatArray | None = field(repr=False)
    """[size] what labels reveal; None if there are no rewards at all."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the data came about: world, mixture, size, seed."""
    pictures: Pictures | None = field(default=None, repr=False)
    """What each state looks like, where states are pictures; their ids are hashes of them."""

    def __post_init__(self) -> None:
        """Refuse arrays that compiled loops could stumble over."""
        size, n = len(self.state), len(self.ids)
        if size == 0 or n == 0:
            raise DatasetError("the dataset is empty: it needs at least one transition")
        columns = (self.action, self.next_state, self.terminated, self.truncated, self.episode_start)
        rewards = () if self.hidden_reward is None else (self.hidden_reward,)
        if any(column.shape != (size,) for column in (self.state, *columns, *rewards)):
            raise DatasetError(f"all columns must have the {size} entries of `state`")
        numbers, flags = (
            (self.state, self.action, self.next_state),
            (self.terminated, self.truncated, self.episode_start),
        )
        if any(c.dtype != np.int32 for c in numbers) or any(c.dtype != np.bool_ for c in flags):
            raise DatasetError("states, actions and next states must be int32, the other columns boolean")
        if self.state.min() < 0 or self.state.max() >= n or self.next_state.min() < -1 or self.next_state.max() >= n:
            raise DatasetError(f"state numbers must lie in 0..{n - 1} (next states may be -1)")
        if self.action.min() < 0 or self.action.max() >= self.n_actions:
            raise DatasetError(f"actions must lie in 0..{self.n_actions - 1}")
        if rewards and not np.isfinite(rewards[0]).all():
            raise DatasetError("rewards must be finite")
        if self.ids.dtype.kind not in "iuU" or (self.ids[1:] <= self.ids[:-1]).any():
            raise DatasetError("ids must be integers or strings, sorted and without repetition")
        if (self.terminated & (self.next_state >= 0)).any():
            raise DatasetError("a transition that ended its episode has no next state: it must be -1")
        if self.pictures is not None and len(self.pictures) != n:
            raise DatasetError(f"there are {len(self.pictures)} pictures of {n} states")

    def __len__(self) -> int:
        """Return the number of transitions."""
        return len(self.state)

    @property
    def n_states(self) -> int:
        """Number of states, seen or not."""
        return len(self.ids)

    @property
    def has_rewards(self) -> bool:
        """Whether there is anything to reveal."""
        return self.hidden_reward is not None

    @cached_property
    def visits(self) -> IntArray:
        """[n] number of transitions out of each state."""
        return np.bincount(self.state, minlength=self.n_states)

    @cached_property
    def labelable(self) -> BoolArray:
        """[n] the states the data saw: only they can be labelled."""
        return self.visits > 0

    @cached_property
    def visitation(self) -> FloatArray:
        """[n] share of the transitions out of each state."""
        return self.visits / len(self)

    @cached_property
    def termination(self) -> FloatArray:
        """[n] share of a state's transitions that end an episode."""
        ends: FloatArray = np.bincount(self.state[self.terminated], minlength=self.n_states) / np.maximum(
            self.visits, 1
        )
        return ends

    @cached_property
    def start(self) -> FloatArray:
        """[n] share of the episodes that start in each state; cut episodes are followed by a start too."""
        starts = np.bincount(self.state[self.episode_start], minlength=self.n_states)
        share: FloatArray = starts / starts.sum()
        return share

    @cached_property
    def action_frequencies(self) -> FloatArray:
        """[n, actions] how often each action was taken; uniform where the data never were."""
        pair = self.state.astype(np.int64) * self.n_actions + self.action
        count = np.bincount(pair, minlength=self.n_states * self.n_actions).reshape(self.n_states, self.n_actions)
        share: FloatArray = np.where(
            self.labelable[:, None], count / np.maximum(self.visits, 1)[:, None], 1 / self.n_actions
        )
        return share

    @cached_property
    def kinds(self) -> "TransitionKinds":
        """The distinct transitions, counted, with their mean rewards: for learners, not for strategies."""
        n, actions = self.n_states, self.n_actions
        key = (self.state.astype(np.int64) * actions + self.action) * (n + 1) + self.next_state + 1
        if n * actions * (n + 1) <= DENSE_KEYS:
            count = np.bincount(key, minlength=1)
            distinct = np.flatnonzero(count)
            place = np.zeros(len(count), np.int32)
            place[distinct] = np.arange(len(distinct))
            kind = place[key]
            count = count[distinct]
        else:
            distinct, kind, count = np.unique(key, return_inverse=True, return_counts=True)
        pair, following = np.divmod(distinct, n + 1)
        mean = _mean_rewards(kind, count, self.hidden_reward)
        return TransitionKinds(kind.astype(np.int32), pair // actions, pair % actions, following - 1, count, mean)

    def empirical_model(self, *, exclude_unseen: bool = False) -> Model:
        """Return the empirical model; actions never taken are worth 0, or left out."""
        return self._excluding_model if exclude_unseen else self._plain_model

    @cached_property
    def _plain_model(self) -> Model:
        return self._build_model(False)

    @cached_property
    def _excluding_model(self) -> Model:
        return self._build_model(True)

    def _build_model(self, exclude_unseen: bool) -> Model:
        kinds = self.kinds
        return build_model(
            self.n_states, self.n_actions, kinds.state, kinds.action, kinds.next_state,
            kinds.count.astype(np.float64), kinds.reward, exclude_unseen=exclude_unseen,
        )  # fmt: skip

    @cached_property
    def predecessors(self) -> tuple[Int32Array, Int32Array, FloatArray]:
        """Who leads where: (first [n + 1], state [m], count [m]), sorted by the state entered."""
        kinds = self.kinds
        inside = kinds.next_state >= 0
        key = kinds.next_state[inside] * self.n_states + kinds.state[inside]
        distinct, where = np.unique(key, return_inverse=True)
        count = np.bincount(where, kinds.count[inside].astype(np.float64), len(distinct)).astype(np.float64)
        entered, source = np.divmod(distinct, self.n_states)
        first = np.searchsorted(entered, np.arange(self.n_states + 1))
        return first.astype(np.int32), source.astype(np.int32), count

    @cached_property
    def successors(self) -> tuple[Int32Array, Int32Array]:
        """Where states lead: (first [n + 1], state [m]), sorted by the state left; one's own self included."""
        kinds = self.kinds
        inside = kinds.next_state >= 0
        left, entered = np.divmod(
            np.unique(kinds.state[inside] * self.n_states + kinds.next_state[inside]), self.n_states
        )
        first = np.searchsorted(left, np.arange(self.n_states + 1))
        return first.astype(np.int32), entered.astype(np.int32)

    @cached_property
    def smallest_reward(self) -> float:
        """The smallest reward in the data, which some learners impute."""
        return float(self._rewards().min())

    def reveal(self, labels: BoolArray) -> FloatArray:
        """Return the rewards [size] of transitions out of labelled states, NaN elsewhere.

        Args:
            labels: [n] which states are labelled.
        """
        labels = as_array("labels", labels)
        if labels.dtype != np.bool_ or labels.shape != (self.n_states,):
            raise LabelError(
                f"labels must be a boolean array of shape ({self.n_states},), not {labels.dtype}{labels.shape}"
            )
        return np.where(labels[self.state], self._rewards(), np.nan)

    def numbers(self, ids: ArrayLike) -> IntArray:
        """Return the state numbers of ids.

        Raises:
            UnknownStateError: an id that is not among the dataset's states.
        """
        wanted = np.atleast_1d(np.asarray(ids))
        if len(wanted) == 0:
            return np.empty(0, np.int64)
        same_kind = (wanted.dtype.kind == "U") == (self.ids.dtype.kind == "U") and wanted.dtype.kind in "iuU"
        number = ids_to_numbers(self.ids, wanted) if same_kind else np.full(len(wanted), -1)
        wrong = np.flatnonzero(number < 0)
        if len(wrong):
            shown = ", ".join(map(str, self.ids[:12])) + (", ..." if self.n_states > 12 else "")
            raise UnknownStateError(f"there is no state with id {wanted[wrong[0]]}; the ids are {shown}")
        return number.astype(np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content."""
        digest = hashlib.blake2b(str(self.n_actions).encode(), digest_size=16)
        for name, array in self.arrays().items():
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, as they are stored."""
        columns: dict[str, NDArray[Any]] = {
            "ids": self.ids,
            "state": self.state,
            "action": self.action,
            "next_state": self.next_state,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "episode_start": self.episode_start,
        }
        if self.hidden_reward is not None:
            columns["hidden_reward"] = self.hidden_reward
        if self.pictures is not None:
            columns["pictures"] = self.pictures.words
            columns["picture_shape"] = np.array([*self.pictures.shape, self.pictures.salt])
        return columns

    def _rewards(self) -> FloatArray:
        if self.hidden_reward is None:
            raise NoEvaluatorError("this dataset has no rewards to reveal: build it with `rewards=`")
        return self.hidden_reward


@dataclass(frozen=True, eq=False)
class TransitionKinds:
    """Distinct transitions (state, action, next state) of a dataset."""

    kind: Int32Array
    """[size] the kind of each transition."""
    state: IntArray
    """[kinds]"""
    action: IntArray
    """[kinds]"""
    next_state: IntArray
    """[kinds] -1 for none."""
    count: IntArray
    """[kinds]"""
    reward: FloatArray
    """[kinds] mean reward."""


def _mean_rewards(kind: NDArray[Any], count: IntArray, reward: FloatArray | None) -> FloatArray:
    """Return the mean reward of each kind, free of summation error where all its rewards are the same."""
    if reward is None:
        return np.zeros(len(count))
    sample = np.zeros(len(count))
    sample[kind] = reward
    noisy = np.zeros(len(count), bool)
    noisy[kind[reward != sample[kind]]] = True
    return np.where(noisy, np.bincount(kind, reward, len(count)) / count, sample)


def from_arrays(
    states: ArrayLike,
    actions: ArrayLike,
    next_states: ArrayLike,
    ends: ArrayLike,
    rewards: ArrayLike | None = None,
    *,
    truncated: ArrayLike | None = None,
    n_actions: int | None = None,
    world: TabularWorld | None = None,
) -> OfflineDataset:
    """Make a dataset from own arrays, transition by transition in the order they happened.

    An episode is also taken to be cut wherever a transition does not go on where the one before it led.

    Args:
        states: [size] id of the state acted in: integers or strings.
        actions: [size] action, 0..n_actions-1.
        next_states: [size] id of the state entered; of no meaning where the episode ended.
        ends: [size] whether the transition ended the episode.
        rewards: [size] optional rewards, hidden until their state is labelled.
        truncated: [size] optional: whether the episode was cut after the transition.
        n_actions: number of actions; the world's, or the largest taken plus 1, if left out.
        world: number the states as this world does, instead of by the unique ids of the data.

    Raises:
        DatasetError: the arrays do not fit together.
        UnknownStateError: a state that ``world`` has not got.
    """
    s, following, a = _plain("states", states), _plain("next_states", next_states), _plain("actions", actions)
    if {s.dtype.kind, following.dtype.kind} not in ({"i"}, {"u"}, {"i", "u"}, {"U"}):
        raise DatasetError(f"state ids must be integers or strings, all alike, not {s.dtype} and {following.dtype}")
    if a.dtype.kind not in "iu":
        raise DatasetError(f"actions must be integers, not {a.dtype}")
    ended = truth_values("ends", ends, DatasetError)
    cut = np.zeros(len(s), bool) if truncated is None else truth_values("truncated", truncated, DatasetError).copy()
    if s.ndim != 1 or len({x.shape for x in (s, a, following, ended, cut)}) != 1:
        raise DatasetError("states, actions, next_states, ends and truncated must be one-dimensional and equally long")
    if len(s) == 0:
        raise DatasetError("the dataset is empty: it needs at least one transition")
    ids = np.unique(s) if world is None else world.ids
    if n_actions is None:
        n_actions = int(a.max()) + 1 if world is None else world.n_actions
    check_int("n_actions", n_actions, 1, 2**31 - 1, DatasetError)
    if a.min() < 0 or a.max() >= n_actions:
        raise DatasetError(f"actions must lie in 0..{n_actions - 1}")
    jump = np.append(following[:-1] != s[1:], True)
    cut |= jump & ~ended
    columns = {name: ids_to_numbers(ids, column) for name, column in (("state", s), ("next", following))}
    if (columns["state"] < 0).any():
        raise UnknownStateError(f"the world has no state {s[columns['state'] < 0][0]}")
    lost = (columns["next"] < 0) & ~ended
    if world is not None and lost.any():
        raise UnknownStateError(f"the world has no state {following[lost][0]}")
    return OfflineDataset(
        ids=ids,
        n_actions=int(n_actions),
        state=columns["state"],
        action=a.astype(np.int32),
        next_state=np.where(ended, np.int32(-1), columns["next"]),
        terminated=ended,
        truncated=cut & ~ended,
        episode_start=np.concatenate([[True], (ended | cut)[:-1]]),
        hidden_reward=None if rewards is None else np.asarray(rewards, np.float64),
        spec={"source": "arrays"}
        | ({} if world is None else {"world": world.name, "world_fingerprint": world.fingerprint}),
    )


def _plain(name: str, column: ArrayLike) -> NDArray[Any]:
    """Return a column as an array; one of Python strings becomes an array of strings."""
    found = as_array(name, column, DatasetError)
    if found.dtype == object and all(isinstance(entry, str) for entry in found.ravel()):
        found = found.astype(str)
    return found


def ids_to_numbers(ids: NDArray[Any], column: NDArray[Any]) -> Int32Array:
    """Return the numbers of a column of ids, -1 for those not among the sorted ``ids``."""
    place = np.minimum(np.searchsorted(ids, column), len(ids) - 1)
    return np.where(ids[place] == column, place, -1).astype(np.int32)
