"""Construction of datasets from arrays."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selectenv.checks import as_array, as_ints, as_reals, check_instance, check_int, shown
from selectenv.datasets.dataset import OfflineDataset, ids_to_numbers
from selectenv.domains.tabular.world import TabularWorld, truth_values
from selectenv.errors import DatasetError, UnknownStateError


def from_arrays(
    states: ArrayLike,
    actions: ArrayLike,
    next_states: ArrayLike,
    terminated: ArrayLike,
    rewards: ArrayLike | None = None,
    *,
    truncated: ArrayLike | None = None,
    n_actions: int | None = None,
    world: TabularWorld | None = None,
) -> OfflineDataset:
    """Make a dataset from arrays with one entry per transition, in the order in which they were observed.

    An episode is also considered truncated wherever the next transition does not start in the state that was entered.

    Args:
        states: [size] id of the state acted in: integers or strings.
        actions: [size] action, 0..n_actions-1.
        next_states: [size] id of the state entered; ignored where the episode terminated.
        terminated: [size] whether the transition terminated the episode.
        rewards: [size] optional rewards, each hidden until its state is labelled.
        truncated: [size] optional; whether the episode was truncated after the transition.
        n_actions: number of actions; defaults to that of ``world``, or to the largest action plus 1.
        world: use the state numbers of this world; by default, states are the sorted unique ids of the data.

    Raises:
        DatasetError: the arrays are not consistent.
        UnknownStateError: the data contain a state that ``world`` does not have.
    """
    if world is not None:
        check_instance("world", world, TabularWorld)
    s, following, a = _plain("states", states), _plain("next_states", next_states), _plain("actions", actions)
    if {s.dtype.kind, following.dtype.kind} not in ({"i"}, {"u"}, {"i", "u"}, {"U"}):
        raise DatasetError(f"state ids must be all integers or all strings, not {s.dtype} and {following.dtype}")
    if {s.dtype.kind, following.dtype.kind} == {"i", "u"}:
        s, following = as_ints("states", s, DatasetError), as_ints("next_states", following, DatasetError)
    if a.dtype.kind not in "iu":
        raise DatasetError(f"actions must be integers, not {a.dtype}")
    ended = truth_values("terminated", terminated, DatasetError)
    cut = np.zeros(len(s), bool) if truncated is None else truth_values("truncated", truncated, DatasetError).copy()
    if s.ndim != 1 or len({x.shape for x in (s, a, following, ended, cut)}) != 1:
        raise DatasetError(
            "states, actions, next_states, terminated and truncated must be one-dimensional and equally long"
        )
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
        raise UnknownStateError(f"the world has no state {shown(s[columns['state'] < 0][0])}")
    lost = (columns["next"] < 0) & ~ended
    if world is not None and lost.any():
        raise UnknownStateError(f"the world has no state {shown(following[lost][0])}")
    return OfflineDataset(
        ids=ids,
        n_actions=int(n_actions),
        state=columns["state"],
        action=a.astype(np.int32),
        next_state=np.where(ended, np.int32(-1), columns["next"]),
        terminated=ended,
        truncated=cut & ~ended,
        episode_start=np.concatenate([[True], (ended | cut)[:-1]]),
        hidden_reward=None if rewards is None else as_reals("rewards", rewards, DatasetError),
        spec={"source": "arrays"}
        | ({} if world is None else {"world": world.name, "world_fingerprint": world.fingerprint}),
    )


def _plain(name: str, column: ArrayLike) -> NDArray[Any]:
    """Return a column as an array; an object array of Python strings becomes a string array."""
    found = as_array(name, column, DatasetError)
    if found.dtype == object and all(isinstance(entry, str) for entry in found.ravel()):
        found = found.astype(str)
    return found
