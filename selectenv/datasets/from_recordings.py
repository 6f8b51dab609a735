"""Datasets from recorded episodes: lists of dicts, Minari datasets, and Gymnasium environments played by a policy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from selectenv.checks import check_callable, check_flag, check_instance, check_int, check_name, shown
from selectenv.datasets.arrow_columns import require
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.from_tables import Bins
from selectenv.datasets.log_columns import Column, NumberColumn, cut_column, list_column, list_numbers
from selectenv.datasets.log_dataset import Log, log_dataset
from selectenv.datasets.vector_columns import vector_columns
from selectenv.errors import DatasetFileError, LogError, OptionError, OptionTypeError
from selectenv.options import LARGEST_SIZE
from selectenv.streams import generator

KEYS = ("states", "actions", "rewards", "terminated", "truncated")
OBSERVATION = "observation"
FLAT_SPACES = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box, spaces.Text)


@dataclass(frozen=True, eq=False)
class RecordedEpisode:
    """One recorded episode."""

    states: dict[str, Sequence[Any]]
    """Column -> its entry at each step and, optionally, in the state in which the episode ended."""
    actions: Sequence[Any]
    rewards: Sequence[Any] | None
    terminated: bool | None
    """Whether the last step terminated the episode; None if that is not known."""
    truncated: bool | None

    @property
    def rows(self) -> int:
        """Number of states."""
        return len(next(iter(self.states.values())))


def from_episodes(
    episodes: Iterable[Mapping[str, Any]], *, bins: Bins | None = None, vectors: bool = False
) -> OfflineDataset:
    """Make a dataset from a list of episodes, and print a one-line summary to stderr.

    An episode is a dict with the following keys:

    - ``states``: the state at each step and, optionally, the one in which the episode ended. A state is a whole number
      or a string; for states of several columns, give a dict of such lists by column. For vectors, give an array
      [steps, columns], or a dict of lists of numbers together with ``vectors=True``.
    - ``actions``: the action at each step, whole numbers or strings.
    - ``rewards`` (optional): the reward of each step, hidden until its state is labelled.
    - ``terminated`` (optional): whether the last step terminated the episode. Without it, the last step counts as
      terminal unless it leads to a state for which any episode has an action.
    - ``truncated`` (optional): whether the recording of the episode stopped after the last step.

    Args:
        episodes: the episodes; all of them have the same keys.
        bins: intervals of continuous columns; see `from_dataframe`. States of one column are the column "state".
        vectors: whether the columns of states are numbers that make up a vector.

    Raises:
        LogError: an entry that cannot be used; the message names its episode, its step and its column.
        UnknownNameError: a key that does not exist.
    """
    is_list = isinstance(episodes, Iterable) and not isinstance(episodes, str | Mapping | np.ndarray)
    if not is_list:
        raise OptionTypeError(f"episodes must be a list of dicts, not {shown(episodes)}")
    check_flag("vectors", vectors)
    given = list(episodes)
    vectors = vectors or any(isinstance(one, Mapping) and _is_matrix(one.get("states")) for one in given)
    found = [_episode(number, one, vectors) for number, one in enumerate(given)]
    return _episodes_dataset(found, None, bins, {"source": "episodes"}, vectors)


def from_minari(dataset: Any, *, bins: Bins | None = None) -> OfflineDataset:
    """Make a dataset from a Minari dataset with discrete actions, and print a one-line summary to stderr.

    Discrete observations are the states. Observations of several entries are states of several columns, named
    "observation_0", "observation_1" and so on, or by the keys of a Dict space. Continuous observations are vectors
    (flattened if need be), or with ``bins`` states of several columns. Rewards stay hidden until their state is
    labelled.

    Args:
        dataset: a `minari.MinariDataset`, or the id of one that is stored on this computer.
        bins: intervals of continuous columns; see `from_dataframe`.

    Raises:
        DatasetFileError: no dataset of this id is stored on this computer.
        LogError: observations or actions that cannot be used.
        MissingExtraError: Minari is not installed.
    """
    minari = require("minari")
    if isinstance(dataset, str):
        try:
            dataset = minari.load_dataset(dataset)
        except Exception as error:  # ids that are not valid, files that are missing or damaged
            reason = str(error).partition(" Use download=True")[0]
            raise DatasetFileError(
                f"no Minari dataset {shown(dataset)} on this computer can be loaded ({shown(reason)}); `minari list "
                f"local` shows those that can, and `minari download {dataset}` fetches a published one"
            ) from None
    check_instance("dataset", dataset, minari.MinariDataset)
    space, names = dataset.observation_space, _action_names(dataset.action_space)
    found = [
        RecordedEpisode(
            _columns(OBSERVATION, space, episode.observations),
            episode.actions,
            episode.rewards,
            bool(len(episode.terminations) and episode.terminations[-1]),
            bool(len(episode.truncations) and episode.truncations[-1]),
        )
        for episode in dataset.iterate_episodes()
    ]
    spec = {"source": str(dataset.spec.dataset_id)}
    return _episodes_dataset(found, names, bins, spec, bins is None and _is_continuous(space))


def from_gymnasium(
    env: gym.Env[Any, Any],
    policy: Callable[[Any], int] | None,
    steps: int,
    *,
    seed: int = 0,
    bins: Bins | None = None,
) -> OfflineDataset:
    """Play a policy in a Gymnasium environment with discrete actions and return the transitions as a dataset.

    Observations become states as in `from_minari`; rewards stay hidden until their state is labelled. A one-line
    summary is printed to stderr.

    Args:
        env: the environment; it is not closed.
        policy: observation -> action; None for uniformly random actions.
        steps: number of transitions; the last episode is truncated there.
        seed: seed of the environment and of random actions.
        bins: intervals of continuous columns; see `from_dataframe`.

    Raises:
        LogError: observations or actions that cannot be used.
    """
    check_instance("env", env, gym.Env)
    names = _action_names(env.action_space)
    check_int("steps", steps, 1, LARGEST_SIZE)
    rng = generator(check_int("seed", seed, 0), "recording")
    if policy is not None:
        check_callable("policy", policy, "observation")
    found: list[RecordedEpisode] = []
    recorded, first_seed = 0, int(rng.integers(2**31))
    while recorded < steps:
        observation, _ = env.reset(seed=None if found else first_seed)
        observations, actions, rewards, terminated, truncated = [deepcopy(observation)], [], [], False, False
        while recorded < steps and not (terminated or truncated):
            action = names[rng.integers(len(names))] if policy is None else policy(observation)
            if not env.action_space.contains(action):
                raise LogError(f"the policy returned {shown(action)}, which is not an action of {env.action_space}")
            observation, reward, terminated, truncated, _ = env.step(action)
            observations.append(deepcopy(observation))  # an environment may return the same array at every step
            actions.append(int(action))  # policies may return arrays without axes, as Stable-Baselines3 does
            rewards.append(reward)
            recorded += 1
        states = _columns(OBSERVATION, env.observation_space, _batched(env.observation_space, observations))
        found.append(RecordedEpisode(states, actions, rewards, bool(terminated), not terminated))
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    spec = {"source": name, "steps": int(steps), "seed": int(seed)}
    return _episodes_dataset(found, names, bins, spec, bins is None and _is_continuous(env.observation_space))


def _is_continuous(space: Any) -> bool:
    """Return whether a space has entries that are not whole numbers."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return any(_is_continuous(part) for part in parts)
    return isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind == "f"


def _is_matrix(states: Any) -> bool:
    """Return whether states are given as vectors: an array with two axes, or a list of lists of numbers."""
    if isinstance(states, np.ndarray):
        return states.ndim >= 2
    return isinstance(states, Sequence) and len(states) > 0 and isinstance(states[0], np.ndarray | list | tuple)


def _vector_entries(number: int, states: Any) -> dict[str, Sequence[Any]]:
    """Return the columns of the vectors of an episode.

    Raises:
        LogError: vectors of different lengths, or something else among them.
    """
    rows = [_as_row(row) for row in states]
    for step, row in enumerate(rows):
        if row.ndim != 1 or row.size == 0 or row.dtype.kind not in "fiub":
            hint = ": flatten it, as in states.reshape(len(states), -1)" if row.ndim > 1 else ""
            raise LogError(
                f"episode {number}, step {step}: a state must be a vector of numbers, not {shown(states[step])}{hint}"
            )
        if len(row) != len(rows[0]):
            raise LogError(
                f"episode {number}, step {step}: the vector has {len(row)} numbers, that of step 0 has {len(rows[0])}"
            )
    if not rows:
        raise LogError(f"episode {number} has no states")
    entries = np.stack(rows).T
    entries = entries.astype(np.int8) if entries.dtype.kind == "b" else entries
    return {f"x{i}": column.tolist() for i, column in enumerate(entries)}


def _as_row(entries: Any) -> NDArray[Any]:
    """Return a vector as an array; an empty one if its entries do not form one."""
    try:
        return np.asarray(entries)
    except ValueError:  # entries of different lengths
        return np.empty(0)


def _episode(number: int, given: Any, vectors: bool) -> RecordedEpisode:
    """Return an episode of a list of dicts, after checking its keys and lengths."""
    if not isinstance(given, Mapping):
        raise OptionTypeError(f"episode {number} must be a dict with the keys {', '.join(KEYS)}, not {shown(given)}")
    for key in given:
        check_name(f"key of episode {number}:", key, KEYS)
    for key in KEYS[:2]:
        if key not in given:
            raise LogError(f"episode {number} has no {key}")
    states = given["states"] if isinstance(given["states"], Mapping) else {"state": given["states"]}
    if vectors and not isinstance(given["states"], Mapping):
        if not _is_matrix(given["states"]):
            raise LogError(
                f"episode {number}: states must be an array [steps, columns] of vectors, as in other episodes"
            )
        states = _vector_entries(number, given["states"])
    columns: dict[str, Sequence[Any]] = {
        check_instance("a column of states", name, str): _entries(number, name, column)
        for name, column in states.items()
    }
    actions = _entries(number, "actions", given["actions"])
    rewards = None if given.get("rewards") is None else _entries(number, "rewards", given["rewards"])
    for name, column in columns.items():
        if len(column) not in (len(actions), len(actions) + 1):
            raise LogError(
                f"episode {number}, column {name!r}: {len(column)} states and {len(actions)} actions do not fit; there "
                "must be as many states as actions, or one more"
            )
    if not columns or len({len(column) for column in columns.values()}) > 1:
        raise LogError(f"episode {number}: the columns of states must be equally long, and there must be at least one")
    if rewards is not None and len(rewards) != len(actions):
        raise LogError(f"episode {number}: {len(rewards)} rewards and {len(actions)} actions do not fit")
    terminated, truncated = (
        None if given.get(key) is None else check_flag(f"{key} of episode {number}", given[key], LogError)
        for key in ("terminated", "truncated")
    )
    return RecordedEpisode(columns, actions, rewards, terminated, truncated)


def _entries(number: int, name: str, entries: Any) -> list[Any]:
    """Return the entries of a column of an episode as a list."""
    if isinstance(entries, np.ndarray) and entries.ndim:
        found: list[Any] = entries.tolist()
        return found
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Sequence):
        raise LogError(f"episode {number}, column {name!r} must be a list or an array, not {shown(entries)}")
    return list(entries)


def _action_names(space: Any) -> NDArray[np.int64]:
    """Return the actions of a discrete space.

    Raises:
        LogError: the space is not discrete.
    """
    if not isinstance(space, spaces.Discrete):
        raise LogError(f"column 'action': actions must be discrete, not of the space {shown(space)}")
    return np.arange(space.start, space.start + space.n, dtype=np.int64)


def _batched(space: Any, observations: list[Any]) -> Any:
    """Return a list of observations in the form in which Minari stores them: arrays, and tuples and dicts of arrays."""
    if isinstance(space, spaces.Tuple):
        return tuple(_batched(part, [one[i] for one in observations]) for i, part in enumerate(space.spaces))
    if isinstance(space, spaces.Dict):
        return {key: _batched(part, [one[key] for one in observations]) for key, part in space.spaces.items()}
    return np.asarray(observations)


def _columns(name: str, space: Any, observations: Any) -> dict[str, Sequence[Any]]:
    """Return batched observations as columns.

    Raises:
        LogError: observations of this space have no columns.
    """
    if isinstance(space, spaces.Tuple):
        parts = [(f"{name}_{i}", inner, observations[i]) for i, inner in enumerate(space.spaces)]
    elif isinstance(space, spaces.Dict):
        parts = [
            (key if name == OBSERVATION else f"{name}_{key}", space[key], observations[key]) for key in space.spaces
        ]
    else:
        entries = np.asarray(observations)
        if entries.ndim > 2 and _is_continuous(space):
            entries = entries.reshape(len(entries), -1)
        if not isinstance(space, FLAT_SPACES) or entries.ndim > 2:
            raise LogError(f"column {name!r}: observations of the space {shown(space)} cannot be states")
        if entries.ndim == 1:
            return {name: entries.tolist()}
        return {f"{name}_{i}": column.tolist() for i, column in enumerate(entries.T)}
    return {key: entries for part in parts for key, entries in _columns(*part).items()}


def _check_alike(episodes: Sequence[RecordedEpisode], vectors: bool) -> None:
    """Raise `LogError` unless all episodes have states, and the same parts."""
    for number, episode in enumerate(episodes):
        if episode.rows == 0:
            raise LogError(f"episode {number} has no states")
        if vectors and len(episode.states) != len(episodes[0].states):
            raise LogError(
                f"episode {number} has vectors of {len(episode.states)} numbers, and episode 0 of "
                f"{len(episodes[0].states)}"
            )
        if _parts(episode) != _parts(episodes[0]):
            raise LogError(f"episode {number} has {_parts(episode)}, but episode 0 has {_parts(episodes[0])}")


def _episodes_dataset(
    episodes: Sequence[RecordedEpisode],
    names: NDArray[np.int64] | None,
    bins: Bins | None,
    spec: dict[str, Any],
    vectors: bool,
) -> OfflineDataset:
    """Return the dataset of recorded episodes.

    Args:
        episodes: the episodes.
        names: [actions] all actions, if they are known; defaults to those that were taken.
        bins: intervals of continuous columns.
        spec: where the episodes come from.
        vectors: whether the columns of states make up vectors.
    """
    if not episodes:
        raise LogError("there are no episodes")
    bins = {} if bins is None else check_instance("bins", bins, Mapping)  # type: ignore[type-abstract]
    for name in bins:
        check_name("column in bins", name, episodes[0].states)
    _check_alike(episodes, vectors)
    if vectors and bins:
        raise OptionError("bins make states of intervals, and vectors=True vectors of numbers: give only one of them")
    first = np.cumsum([0, *(episode.rows for episode in episodes)])

    def where(row: int) -> str:
        number = int(np.searchsorted(first, row, side="right")) - 1
        return f"episode {number}, step {row - first[number]}"

    edges, state, numbers, known = {}, [], [], None
    for name in episodes[0].states:
        entries = [entry for episode in episodes for entry in episode.states[name]]
        if vectors:
            numbers.append(NumberColumn(name, list_numbers(name, entries, where)))
            continue
        if name in bins:
            column, edges[name] = cut_column(name, list_numbers(name, entries, where), bins[name], where)
        else:
            column = list_column(name, entries, where)
        state.append(column)
    if vectors:
        column, _, known = vector_columns(numbers, (), where)
        state.append(column)

    def per_step(part: str) -> list[Any]:
        """Return the entries of all steps, None in the states in which episodes ended."""
        return [
            entry
            for episode in episodes
            for entry in (*getattr(episode, part), *[None] * (episode.rows - len(episode.actions)))
        ]

    def flags(part: str) -> Column | None:
        if getattr(episodes[0], part) is None:
            return None
        code = np.zeros(first[-1], np.int32)
        code[first[1:] - 1] = [getattr(episode, part) for episode in episodes]
        return Column(part, code, np.array(["false", "true"]))

    action = list_column("actions", per_step("actions"), where)
    if names is not None:
        action = Column(
            "actions", np.append(np.searchsorted(names, action.values), -1).astype(np.int32)[action.code], names
        )
    return log_dataset(
        Log(
            state=tuple(state),
            vectors=known,
            action=action,
            episode=Column(
                "episode", np.repeat(np.arange(len(episodes), dtype=np.int32), np.diff(first)), np.arange(len(episodes))
            ),
            terminated=flags("terminated"),
            truncated=flags("truncated"),
            reward=None
            if episodes[0].rewards is None
            else NumberColumn("rewards", list_numbers("rewards", per_step("rewards"), where)),
            where=where,
            spec=spec | ({"bins": {name: found.tolist() for name, found in edges.items()}} if edges else {}),
        )
    )


def _parts(episode: RecordedEpisode) -> list[str]:
    """Return the names of the parts that an episode has."""
    return [*episode.states, *(part for part in KEYS[1:] if getattr(episode, part) is not None)]
