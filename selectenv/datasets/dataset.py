"""An offline dataset: transitions whose rewards stay hidden until a state is labelled."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selectenv.checks import (
    LARGEST_REWARD,
    as_array,
    as_ints,
    as_reals,
    check_flag,
    check_instance,
    check_int,
    check_real,
    shown,
)
from selectenv.datasets.column_types import check_columns
from selectenv.datasets.dataframe_export import to_frame
from selectenv.datasets.endings import Endings, split_by_ending
from selectenv.datasets.groups import Groups
from selectenv.datasets.images import Images
from selectenv.datasets.naming import check_action_names, check_state_columns, stored_columns, summary, unknown_state
from selectenv.datasets.reward_summary import RewardSummary, summarise_rewards
from selectenv.datasets.shared_property import shared_property
from selectenv.datasets.state_observations import StateObservations
from selectenv.datasets.unique_transitions import (
    UniqueTransitions,
    find_predecessors,
    find_successors,
    find_unique_transitions,
)
from selectenv.datasets.vector_observations import Vectors
from selectenv.errors import DatasetError, LabelError, NoEvaluatorError, OptionTypeError, UnknownStateError
from selectenv.kernels.tabular.model import Model, build_model
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray


@dataclass(frozen=True, eq=False)
class OfflineDataset:
    """Transitions over states numbered 0..n-1; build one with `from_arrays` or collect it from a world.

    The rewards are part of the dataset but hidden from strategies, which get `without_rewards`; `reveal` returns the
    rewards of labelled states.
    """

    ids: NDArray[Any]
    """[n] the world's own id of each state (integers or strings)."""
    n_actions: int
    state: Int32Array
    """[size] state number of each transition."""
    action: Int32Array
    """[size]"""
    next_state: Int32Array
    """[size] state number, or -1 where the episode terminated or the next state is unknown."""
    terminated: BoolArray
    """[size] whether the transition terminated its episode."""
    truncated: BoolArray
    """[size] whether the episode was truncated after the transition; learners still bootstrap there."""
    episode_start: BoolArray
    """[size] whether the transition is the first of its episode."""
    hidden_reward: FloatArray | None = field(repr=False)
    """[size] the rewards that labels reveal; None if the data have no rewards."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the data were made: world, mixture, size, seed."""
    observations: StateObservations | None = field(default=None, repr=False)
    """The observation of each state, if there are any: `Images`, with hashes as ids, or `Vectors`."""
    action_names: NDArray[Any] | None = None
    """[actions] the log's own name of each action (integers or strings); None if actions have only numbers."""
    state_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """Column -> [n] its value in each state, if states were made of several columns of a log."""
    groups: Groups | None = field(default=None, repr=False)
    """What the states consist of, if they are groups of the states of another dataset; see `group_states`."""
    endings: Endings | None = field(default=None, repr=False)
    """Where transitions led that entered no state of the dataset, as far as the log says so."""
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, kw_only=True)
    """Cached values that do not depend on rewards; a dataset shares them with its reward-free copy."""

    def __post_init__(self) -> None:
        """Reject arrays that the compiled loops cannot handle."""
        actions = check_int("n_actions", self.n_actions, 1, 2**31 - 1, DatasetError)
        object.__setattr__(self, "n_actions", actions)  # compiled loops count in the type they are given
        check_instance("spec", self.spec, Mapping)  # type: ignore[type-abstract]
        if self.observations is not None and not isinstance(self.observations, Images | Vectors):
            raise OptionTypeError(f"observations must be Images or Vectors, not {shown(self.observations)}")
        if self.groups is not None:
            check_instance("groups", self.groups, Groups)
        if self.action_names is not None:
            check_action_names(self.action_names, actions)
        check_columns(self)
        size, n = len(self.state), len(self.ids)
        if size == 0 or n == 0:
            raise DatasetError("the dataset is empty: it needs at least one transition")
        columns = (self.action, self.next_state, self.terminated, self.truncated, self.episode_start)
        rewards = () if self.hidden_reward is None else (self.hidden_reward,)
        if any(column.shape != (size,) for column in (self.state, *columns, *rewards)):
            raise DatasetError(f"all columns must have the {size} entries of `state`")
        if self.state.min() < 0 or self.state.max() >= n or self.next_state.min() < -1 or self.next_state.max() >= n:
            raise DatasetError(f"state numbers must lie in 0..{n - 1} (next states may be -1)")
        if self.action.min() < 0 or self.action.max() >= self.n_actions:
            raise DatasetError(f"actions must lie in 0..{self.n_actions - 1}")
        if rewards and not (np.abs(rewards[0]) <= LARGEST_REWARD).all():
            limits = f"{-LARGEST_REWARD:g} to {LARGEST_REWARD:g}"
            raise DatasetError(f"rewards must be numbers from {limits}, or sums of them could overflow")
        if self.ids.dtype.kind not in "iuU" or (self.ids[1:] <= self.ids[:-1]).any():
            raise DatasetError("ids must be integers or strings, sorted and without duplicates")
        if (self.terminated & (self.next_state >= 0)).any():
            raise DatasetError("a transition that terminates its episode has no next state: it must be -1")
        if self.observations is not None and len(self.observations) != n:
            raise DatasetError(f"there are {len(self.observations)} observations of {n} states")
        check_state_columns(self.state_columns, n)
        if self.endings is not None:
            check_instance("endings", self.endings, Endings).check(self)

    def __len__(self) -> int:
        """Return the number of transitions."""
        return len(self.state)

    def __repr__(self) -> str:
        """Return one line: the world, the number of transitions and states, and whether there are rewards."""
        rewards = "hidden rewards" if self.has_rewards else "no rewards"
        units = "states" if self.groups is None else f"{self.groups.unit}s"
        source = self.spec.get("world", self.spec.get("source", "unknown source"))
        return f"<OfflineDataset of {source}: {len(self):,} transitions, {self.n_states:,} {units}, {rewards}>"

    @property
    def summary(self) -> str:
        """One line: the source, and the number of transitions, episodes, states and actions."""
        return summary(self)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with one row per transition; `from_dataframe` makes the dataset from it again.

        Its columns are ``episode``, ``step``, ``state`` (or the columns that make up a state), ``action``,
        ``next_state`` (or the same columns after ``next_``; missing where it is not known), ``terminated``,
        ``truncated`` and, if the data have rewards, ``reward``.

        Args:
            library: "pandas" or "polars".
        """
        return to_frame(self, library)

    @property
    def n_states(self) -> int:
        """Number of states, seen or not."""
        return len(self.ids)

    @property
    def images(self) -> Images | None:
        """The image of each state, if states are images."""
        return self.observations if isinstance(self.observations, Images) else None

    @property
    def vectors(self) -> Vectors | None:
        """The vector of each state, if states are vectors."""
        return self.observations if isinstance(self.observations, Vectors) else None

    @property
    def base(self) -> "OfflineDataset":
        """The same transitions over the states before grouping, without rewards; the dataset itself without groups."""
        return self if self.groups is None else self.groups.base

    @property
    def cells(self) -> "OfflineDataset":
        """The same transitions over the states of tables: the dataset itself, unless its groups are episodes."""
        return self if self.groups is None or self.groups.cells is None else self.groups.cells

    def labelled_cells(self, labels: BoolArray) -> BoolArray:
        """Return which cells have a labelled transition, from the labels [n] on states or groups."""
        if self.cells is self:
            return labels
        labelled = np.zeros(self.cells.n_states, bool)
        labelled[self.cells.state[labels[self.state]]] = True
        return labelled

    def locate(self, observations: NDArray[Any]) -> Int32Array:
        """Return the numbers [count] of the cells that observations [count, ...] fall into, -1 where there is none."""
        if self.groups is not None:
            return self.groups.locate(observations)
        if self.observations is None:
            raise DatasetError("these data have no observations, so no observation falls into one of their states")
        return self.observations.find(self.ids, observations)

    def means_by_state(self, values: FloatArray) -> FloatArray:
        """Return the means [n, ...] over each state's transitions of ``values`` [size, ...]; 0 without transitions."""
        columns = values.reshape(len(self), -1).T
        sums = np.stack([np.bincount(self.state, column, self.n_states) for column in columns], axis=1)
        return np.asarray(sums / np.maximum(self.visits, 1)[:, None]).reshape(-1, *values.shape[1:])

    @property
    def has_rewards(self) -> bool:
        """Whether the data have rewards for labels to reveal."""
        return self.hidden_reward is not None

    @cached_property
    def without_rewards(self) -> "OfflineDataset":
        """The same transitions without rewards: what a strategy may see."""
        return replace(self, hidden_reward=None, _shared=self._shared) if self.has_rewards else self

    @cached_property
    def all_rewards(self) -> FloatArray:
        """[size] the rewards that labels would reveal; all NaN if the data have none. For learners, not strategies."""
        return np.full(len(self), np.nan) if self.hidden_reward is None else self.hidden_reward

    @shared_property
    def visits(self) -> IntArray:
        """[n] number of transitions out of each state."""
        return np.bincount(self.state, minlength=self.n_states)

    @shared_property
    def labelable(self) -> BoolArray:
        """[n] the states that occur in the data: only they can be labelled."""
        seen: BoolArray = self.visits > 0
        return seen

    @cached_property
    def revealable(self) -> BoolArray:
        """[n] the states whose label reveals a reward: the labelable ones, or none if the data have no rewards."""
        return self.labelable if self.has_rewards else np.zeros(self.n_states, bool)

    @shared_property
    def visitation(self) -> FloatArray:
        """[n] share of the transitions that leave each state."""
        share: FloatArray = self.visits / len(self)
        return share

    @shared_property
    def termination(self) -> FloatArray:
        """[n] share of a state's transitions that terminate an episode."""
        ends: FloatArray = np.bincount(self.state[self.terminated], minlength=self.n_states) / np.maximum(
            self.visits, 1
        )
        return ends

    @shared_property
    def start(self) -> FloatArray:
        """[n] share of the episodes that start in each state; a truncated episode is followed by a start too."""
        starts = np.bincount(self.state[self.episode_start], minlength=self.n_states)
        share: FloatArray = starts / starts.sum()
        return share

    @shared_property
    def action_frequencies(self) -> FloatArray:
        """[n, actions] how often each action was taken; uniform in states that the data never visit."""
        pair = self.state.astype(np.int64) * self.n_actions + self.action
        count = np.bincount(pair, minlength=self.n_states * self.n_actions).reshape(self.n_states, self.n_actions)
        share: FloatArray = np.where(
            self.labelable[:, None], count / np.maximum(self.visits, 1)[:, None], 1 / self.n_actions
        )
        return share

    @shared_property
    def unique_transitions(self) -> UniqueTransitions:
        """The distinct transitions (state, action, next state) and their counts."""
        return find_unique_transitions(self)

    @shared_property
    def outcomes(self) -> UniqueTransitions:
        """The distinct transitions that people judge: those with different endings are different."""
        return (
            self.unique_transitions if self.endings is None else split_by_ending(self.unique_transitions, self.endings)
        )

    def empirical_model(
        self, rewards: FloatArray | None = None, *, exclude_unseen: bool = False, unknown: float = 0.0
    ) -> Model:
        """Return the maximum-likelihood model of the data.

        Args:
            rewards: [size] with NaN where unknown; the expected reward of an action is the mean of its known rewards.
                Without rewards they are all 0.
            exclude_unseen: leave out actions that were never taken instead of valuing them at 0.
            unknown: expected reward of actions none of whose rewards is known.
        """
        model = self._excluding_model if check_flag("exclude_unseen", exclude_unseen) else self._plain_model
        if rewards is None:
            return model
        hidden = rewards is self.hidden_reward
        if hidden and exclude_unseen in self._models:
            return self._models[exclude_unseen]
        rewards, unknown = self._check_rewards(rewards), check_real("unknown", unknown, "(-inf, inf)")
        model = model._replace(reward=self._expected_rewards(rewards, exclude_unseen, unknown))
        if hidden:
            self._models[exclude_unseen] = model
        return model

    @cached_property
    def _models(self) -> dict[bool, Model]:
        """The models with the hidden rewards, by whether unseen actions are excluded."""
        return {}

    @shared_property
    def _plain_model(self) -> Model:
        return self._build_model(False)

    @shared_property
    def _excluding_model(self) -> Model:
        return self._build_model(True)

    def _build_model(self, exclude_unseen: bool) -> Model:
        unique = self.unique_transitions
        return build_model(
            self.n_states,
            self.n_actions,
            unique.state,
            unique.action,
            unique.next_state,
            unique.count.astype(np.float64),
            np.zeros(len(unique.count)),
            exclude_unseen=exclude_unseen,
        )

    def _expected_rewards(self, rewards: FloatArray, exclude_unseen: bool, unknown: float) -> FloatArray:
        """Return the mean known reward of each choice of the empirical model."""
        unique = self.unique_transitions
        mean, count = unique.mean_rewards(rewards)
        pair, n_pairs = unique.state * self.n_actions + unique.action, self.n_states * self.n_actions
        total = np.bincount(pair, count, n_pairs)
        expected = np.bincount(pair, count * mean, n_pairs) / np.where(total > 0, total, 1.0)
        taken = np.bincount(pair, minlength=n_pairs) > 0
        expected = np.where(taken & (total == 0), unknown, expected)
        return expected[taken] if exclude_unseen else expected

    @shared_property
    def predecessors(self) -> tuple[Int32Array, Int32Array, FloatArray]:
        """The predecessors of each state: (first [n + 1], state [m], count [m]), sorted by the state entered."""
        return find_predecessors(self)

    @shared_property
    def successors(self) -> tuple[Int32Array, Int32Array]:
        """The successors of each state, itself included: (first [n + 1], state [m]), sorted by the state left."""
        return find_successors(self)

    @shared_property
    def _by_state(self) -> tuple[IntArray, IntArray]:
        """The transitions of each state: (first [n + 1], transition [size])."""
        return np.concatenate([[0], np.cumsum(self.visits)]), np.argsort(self.state, kind="stable")

    def transitions_of(self, states: IntArray) -> IntArray:
        """Return the numbers of the transitions out of states [k], state by state in the order they happened.

        Raises:
            LabelError: they are not state numbers.
        """
        states = as_ints("states", states)
        if states.ndim != 1 or (states.size and int(states.view(np.uint64).max()) >= self.n_states):
            raise LabelError(f"states must be a list of state numbers in 0..{self.n_states - 1}, not {shown(states)}")
        first, transition = self._by_state
        if len(states) == 1:
            where: slice | IntArray = slice(int(first[states[0]]), int(first[states[0] + 1]))
        else:
            count = self.visits[states]
            where = np.repeat(first[states] - (np.cumsum(count) - count), count) + np.arange(count.sum())
        found: IntArray = transition[where]
        return found

    @cached_property
    def _rewards_by_state(self) -> FloatArray:
        """[size] the rewards that labels would reveal, in the order of `_by_state`."""
        return self.all_rewards[self._by_state[1]]

    def revealed_by(self, states: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the transitions whose rewards labels on ``states`` [k] reveal, and these rewards.

        The rewards are a copy: nothing leads from them to the other rewards.
        """
        if len(states) != 1:
            transitions = self.transitions_of(states)
            return transitions, self.all_rewards[transitions]
        first, transition = self._by_state
        where = slice(first[states[0]], first[states[0] + 1])
        return transition[where], self._rewards_by_state[where].copy()

    def reward_summary(self, rewards: FloatArray) -> RewardSummary:
        """Return mean and range of the known ``rewards`` [size] of each state; that of `all_rewards` is cached.

        Raises:
            DatasetError: the rewards do not belong to this dataset.
        """
        if rewards is self.all_rewards:
            return self._summary
        return summarise_rewards(self, self._check_rewards(rewards))

    @cached_property
    def _summary(self) -> RewardSummary:
        """The summary of `all_rewards`."""
        return summarise_rewards(self, self.all_rewards)

    @cached_property
    def smallest_reward(self) -> float:
        """The smallest reward in the data, labelled or not."""
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

    def states_with_rewards(self, rewards: FloatArray) -> BoolArray:
        """Return the states [n] with at least one known reward among ``rewards`` [size], NaN where unknown.

        Raises:
            DatasetError: the rewards do not belong to this dataset.
        """
        known = np.zeros(self.n_states, bool)
        known[self.state[~np.isnan(self._check_rewards(rewards))]] = True
        return known

    def _check_rewards(self, rewards: Any) -> FloatArray:
        """Return rewards as an array [size].

        Raises:
            DatasetError: they do not belong to this dataset.
        """
        if self.hidden_reward is not None and rewards is self.hidden_reward:
            return self.hidden_reward
        found = as_reals("rewards", rewards, DatasetError)
        if found.shape != (len(self),):
            raise DatasetError(f"rewards must have shape ({len(self)},), one per transition, not {found.shape}")
        if np.isinf(found).any():
            raise DatasetError("rewards must be finite, or NaN where they are unknown")
        return found

    def numbers(self, ids: ArrayLike) -> IntArray:
        """Return the state numbers of ids.

        Raises:
            UnknownStateError: an id that is not among the dataset's states.
        """
        wanted = np.atleast_1d(as_array("ids", ids, UnknownStateError))
        if wanted.ndim != 1:
            raise UnknownStateError(f"ids must be one id or a list of ids, not an array of shape {wanted.shape}")
        if len(wanted) == 0:
            return np.empty(0, np.int64)
        same_kind = (wanted.dtype.kind == "U") == (self.ids.dtype.kind == "U") and wanted.dtype.kind in "iuU"
        number = ids_to_numbers(self.ids, wanted) if same_kind else np.full(len(wanted), -1)
        wrong = np.flatnonzero(number < 0)
        if len(wrong):
            raise UnknownStateError(unknown_state(wanted[wrong[0]], self.ids))
        return number.astype(np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content."""
        digest = hashlib.blake2b(str(self.n_actions).encode(), digest_size=16)
        for name, array in self.arrays().items():
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        if self.groups is not None:
            digest.update(self.state.data)  # as many episodes as cells have the same arrays
        return digest.hexdigest()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, as they are stored; those of the base and the groups if there are groups."""
        if self.groups is not None:
            rewards = {} if self.hidden_reward is None else {"hidden_reward": self.hidden_reward}
            return self.base.arrays() | rewards | self.groups.arrays(self.ids)
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
        if self.observations is not None:
            columns |= self.observations.arrays()
        if self.action_names is not None:
            columns["action_names"] = self.action_names
        endings = {} if self.endings is None else self.endings.arrays()
        return columns | stored_columns(self.state_columns) | endings

    def _rewards(self) -> FloatArray:
        if self.hidden_reward is None:
            raise NoEvaluatorError("this dataset has no rewards to reveal: build it with `rewards=`")
        return self.hidden_reward


def ids_to_numbers(ids: NDArray[Any], column: NDArray[Any]) -> Int32Array:
    """Return the numbers of a column of ids, -1 for those not among the sorted ``ids``."""
    place = np.minimum(np.searchsorted(ids, column), len(ids) - 1)
    return np.where(ids[place] == column, place, -1).astype(np.int32)
