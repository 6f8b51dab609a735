"""Grouping of the states of a dataset: clusters of vectors, whole episodes, or groups of the caller's own."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import as_array, check_instance, check_int, is_int, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.groups import STORED_CELLS, STORED_CENTRES, STORED_IDS, Groups, Regions
from selectenv.datasets.nearest_centre import NearestCentre
from selectenv.datasets.vector_observations import Vectors
from selectenv.errors import DatasetError, MissingExtraError, OptionError
from selectenv.options import EPISODE, STATE, check_grouping
from selectenv.streams import generator
from selectenv.typing import FloatArray, Int32Array, IntArray

EPISODE_CELLS = 200
"""Number of clusters that serve as the states of tables where groups are episodes of vector data."""
CLUSTERED_ROWS = 200_000
"""Clusters are found in at most this many states, drawn at random where there are more."""
BATCH_ROWS = 4096


@dataclass(frozen=True, eq=False)
class NearestState:
    """Regions of the caller's groups: an observation falls into that of the nearest state in standardised columns."""

    vectors: Vectors
    group: Int32Array = field(repr=False)
    """[states] the group of each state."""

    @property
    def columns(self) -> tuple[str, ...]:
        """[d] names of the columns."""
        return self.vectors.columns

    def find(self, observations: NDArray[Any]) -> Int32Array:
        """Return the numbers [count] of the groups of the states nearest to observations [count, d]."""
        found = self.vectors.check(observations)
        nearest: IntArray = self._tree.query((found - self.vectors.mean) / self.vectors.scale)[1]
        return self.group[nearest]

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree((self.vectors.values - self.vectors.mean) / self.vectors.scale)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return no arrays: the groups are stored anyway."""
        return {}


def group_states(dataset: OfflineDataset, groups: Any, *, seed: int = 0) -> OfflineDataset:
    """Return a dataset with groups of states as its states: a label on a group covers all its transitions.

    Args:
        dataset: the data.
        groups: number of clusters of the vectors (int; MiniBatchKMeans on standardised columns); "episode" for whole
            episodes; an array [states] with the group of each state, integers or strings, which become the ids; or
            "state" or None for no groups. Data in groups are taken apart first.
        seed: seed of the clustering.

    Raises:
        OptionError: groups of another kind, more clusters than states, or clusters of data without vectors.
        UnknownNameError: another name.
        MissingExtraError: clusters need scikit-learn, which is not installed.
    """
    check_instance("dataset", dataset, OfflineDataset)
    seed = check_int("seed", seed, 0)
    if dataset.groups is not None:
        base = dataset.base
        dataset = replace(base, hidden_reward=dataset.hidden_reward, _shared=base._shared)
    if groups is None or (isinstance(groups, str) and check_grouping(groups) == STATE):
        return dataset
    if isinstance(groups, str):
        return _episodes(dataset, seed)
    if is_int(groups):
        return _clusters(dataset, int(groups), seed)
    return _own_groups(dataset, groups)


def regroup(dataset: OfflineDataset, arrays: dict[str, Any]) -> OfflineDataset:
    """Return the grouped dataset of a file.

    Args:
        dataset: the dataset before grouping, with the spec of the grouped one.
        arrays: `Groups.arrays`.
    """
    cell, centres = arrays[STORED_CELLS], arrays.get(STORED_CENTRES)
    kind = dataset.spec["groups"]
    base = replace(dataset, spec={key: value for key, value in dataset.spec.items() if key != "groups"})
    regions = _own_regions(base, cell) if centres is None else _centred(base, centres)
    if kind != EPISODE:
        return _grouped(base, arrays[STORED_IDS], cell, regions, kind)
    cells = base if centres is None else _grouped(base, np.arange(len(centres)), cell, regions, len(centres))
    return _over_episodes(base, cells)


def _clusters(dataset: OfflineDataset, count: int, seed: int) -> OfflineDataset:
    """Return the dataset over clusters of its vectors."""
    vectors = dataset.vectors
    if vectors is None:
        raise OptionError(
            f"groups={count} asks for clusters of vectors, and these states have none; give an array with the group of "
            'each state, or "episode"'
        )
    if not 1 <= count <= dataset.n_states:
        raise OptionError(
            f"groups must be a number of clusters from 1 to {dataset.n_states:,} (the different states of the data), "
            f"not {count}"
        )
    centres = find_centres(vectors, count, seed)
    regions = NearestCentre.among(vectors, centres)
    return _grouped(dataset, np.arange(count), regions.find(vectors.values), regions, count)


def find_centres(vectors: Vectors, count: int, seed: int) -> FloatArray:
    """Return the centres [count, d] of clusters in standardised columns.

    They are computed by one thread, so that they do not depend on the number of cores.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError(f"clusters need scikit-learn ({error}): pip install 'selectenv[control]'") from error
    rng = generator(seed, "groups", count)
    rows = np.arange(len(vectors))
    if len(rows) > CLUSTERED_ROWS:
        rows = np.sort(rng.choice(rows, max(CLUSTERED_ROWS, count), replace=False))
    points = (vectors[rows] - vectors.mean) / vectors.scale
    means = MiniBatchKMeans(count, batch_size=BATCH_ROWS, n_init=1, random_state=int(rng.integers(2**31)))
    with threadpool_limits(1):
        found: FloatArray = means.fit(points).cluster_centers_
    return np.ascontiguousarray(found, np.float64)


def _own_groups(dataset: OfflineDataset, groups: Any) -> OfflineDataset:
    """Return the dataset over the groups of an array [states]."""
    n = dataset.n_states
    given = as_array("groups", groups, OptionError) if np.iterable(groups) else np.empty(())
    if given.dtype == object and all(isinstance(entry, str) for entry in given.ravel()):
        given = given.astype(str)
    if given.dtype.kind not in "iuU" or given.shape != (n,):
        found = f"an array of {given.dtype} with shape {given.shape}" if given.ndim else shown(groups)
        raise OptionError(
            f'groups must be None, a number of clusters, "episode" or an array of {n} integers or strings, one per '
            f"state, not {found}"
        )
    ids, number = np.unique(given, return_inverse=True)
    cell = number.astype(np.int32)
    return _grouped(dataset, ids, cell, _own_regions(dataset, cell), "own")


def _own_regions(dataset: OfflineDataset, cell: Int32Array) -> NearestState | None:
    return None if dataset.vectors is None else NearestState(dataset.vectors, cell)


def _centred(dataset: OfflineDataset, centres: FloatArray) -> NearestCentre:
    if dataset.vectors is None:
        raise DatasetError("there are centres of groups, but no vectors")
    return NearestCentre.among(dataset.vectors, centres)


def _grouped(
    dataset: OfflineDataset, ids: NDArray[Any], cell: Int32Array, regions: Regions | None, groups: int | str
) -> OfflineDataset:
    """Return the dataset over the groups ``cell`` [states]."""
    following = dataset.next_state
    return replace(
        dataset,
        ids=ids,
        state=cell[dataset.state],
        next_state=np.where(following >= 0, cell[following], np.int32(-1)),
        spec={**dataset.spec, "groups": groups},
        observations=None,
        state_columns={},
        groups=Groups(dataset.without_rewards, cell, regions),
        _shared={},
    )


def _episodes(dataset: OfflineDataset, seed: int) -> OfflineDataset:
    """Return the dataset over its episodes; tables learn on the states, or on clusters of their vectors."""
    cells = dataset
    if dataset.vectors is not None:
        cells = _clusters(dataset, min(EPISODE_CELLS, dataset.n_states), seed)
    return _over_episodes(dataset, cells)


def _over_episodes(dataset: OfflineDataset, cells: OfflineDataset) -> OfflineDataset:
    number = np.cumsum(dataset.episode_start, dtype=np.int32) - np.int32(1)
    cell = np.arange(dataset.n_states, dtype=np.int32) if cells.groups is None else cells.groups.cell
    regions = None if cells.groups is None else cells.groups.regions
    return replace(
        dataset,
        ids=np.arange(int(number[-1]) + 1),
        state=number,
        next_state=np.where(dataset.next_state >= 0, number, np.int32(-1)),
        spec={**dataset.spec, "groups": EPISODE},
        observations=None,
        state_columns={},
        groups=Groups(dataset.without_rewards, cell, regions, cells.without_rewards),
        _shared={},
    )
