"""Datasets from arrays of vector observations, recorded in several lanes."""

from typing import Any

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.vector_observations import Vectors, as_bytes
from selectenv.typing import BoolArray, Float32Array, FloatArray, Int32Array, IntArray


def distinct_vectors(rows: Float32Array) -> tuple[Float32Array, Int32Array]:
    """Return the distinct rows [n, d] in the order in which they occur first, and the number [rows] of each row."""
    _, first, inverse = np.unique(as_bytes(rows), return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    return np.ascontiguousarray(rows[first[order]]), place[inverse.ravel()]


class VectorEpisodes:
    """The transitions of several lanes: columns of shape [lanes, steps].

    The observation after a terminal transition is not kept. The one after a truncated transition is a state that has no
    transitions of its own: learners bootstrap from it.
    """

    def __init__(self, lanes: int, steps: int, width: int) -> None:
        """Make room for ``lanes`` times ``steps`` transitions between vectors of ``width`` columns."""
        shape = lanes, steps
        self._vectors: Float32Array = np.empty((*shape, width), np.float32)
        self._action: Int32Array = np.empty(shape, np.int32)
        self._reward = np.empty(shape)
        self._terminated, self._truncated = np.zeros(shape, bool), np.zeros(shape, bool)
        self._last: Float32Array = np.empty((lanes, width), np.float32)
        self._final: dict[int, Float32Array] = {}
        """Flat index of a truncated transition -> the observation after it."""

    def before(self, step: int, observations: Float32Array, actions: IntArray) -> None:
        """Record the observations [lanes, d] and the actions [lanes]."""
        self._vectors[:, step], self._action[:, step] = observations, actions

    def after(
        self, step: int, reward: FloatArray, terminated: BoolArray, truncated: BoolArray, entered: Float32Array
    ) -> None:
        """Record the outcomes [lanes] and, where they are needed, the observations after the step [lanes, d]."""
        self._reward[:, step], self._terminated[:, step], self._truncated[:, step] = reward, terminated, truncated
        for lane in np.flatnonzero(truncated).tolist():
            self._final[lane * self._action.shape[1] + step] = entered[lane].copy()
        self._last[:] = entered

    def dataset(self, size: int, n_actions: int, columns: tuple[str, ...], spec: dict[str, Any]) -> OfflineDataset:
        """Return the first ``size`` transitions, lane by lane; episodes in progress are truncated."""
        steps = self._action.shape[1]
        vectors = self._vectors.reshape(-1, self._vectors.shape[2])
        terminated, truncated = self._terminated.ravel()[:size].copy(), self._truncated.ravel()[:size].copy()
        for lane, last in enumerate(range(steps - 1, size, steps)):
            if not (terminated[last] or truncated[last]):
                truncated[last] = True
                self._final[last] = self._last[lane]
        if not (terminated[-1] or truncated[-1]):  # the last lane is shortened to the requested size
            truncated[-1] = True
            self._final[size - 1] = vectors[size]
        cut = np.flatnonzero(truncated)
        rows = np.concatenate([vectors[:size], *(self._final[index][None] for index in cut.tolist())])
        known, number = distinct_vectors(rows)
        following: Int32Array = np.append(number[1:size], np.int32(-1))
        following[cut] = number[size:]
        following[terminated] = -1
        return OfflineDataset(
            ids=np.arange(len(known)),
            n_actions=n_actions,
            state=number[:size],
            action=self._action.ravel()[:size],
            next_state=following,
            terminated=terminated,
            truncated=truncated,
            episode_start=np.concatenate([[True], (terminated | truncated)[:-1]]),
            hidden_reward=self._reward.ravel()[:size].copy(),
            spec=spec,
            observations=Vectors(known, columns),
        )
