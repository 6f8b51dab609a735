"""Where the actions of the data lead: the matrices along which the network of `learned` passes messages."""

from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array, vstack

from agents.learned.behaviour_features import behaviour_of, moves_under
from selectenv.datasets import OfflineDataset
from selectenv.typing import Float32Array, FloatArray

MOVES = ("favoured", "random", "avoided", "before favoured", "before random")
"""Names of the matrices, in order."""
LEAST_AVOIDED, LEAST_VISITED = 1e-9, 1e-9
"""Weight of actions that are not avoided where none is, and of states that the favoured policy does not visit."""
_MOVES: WeakKeyDictionary[OfflineDataset, csr_array] = WeakKeyDictionary()
_DENSE: WeakKeyDictionary[OfflineDataset, Float32Array] = WeakKeyDictionary()


def moves_of(dataset: OfflineDataset) -> csr_array:
    """Return the matrices [moves * n, n] of a dataset, one below the other; they are computed once per dataset.

    Row s of a forward matrix has the probabilities of the states that follow s under a policy: the favoured one, the
    one that takes all actions of the data equally often, and one that prefers actions that the data avoid. Row s of a
    backward matrix has the shares of the states that precede s.
    """
    found = _MOVES.get(dataset)
    if found is None:
        found = _MOVES[dataset] = csr_array(vstack(_moves(dataset), format="csr")).astype(np.float32)
    return found


def dense_moves(dataset: OfflineDataset) -> Float32Array:
    """Return the matrices as one array [moves, n, n]; it is computed once per dataset."""
    found = _DENSE.get(dataset)
    if found is None:
        found = _DENSE[dataset] = moves_of(dataset).toarray().reshape(len(MOVES), dataset.n_states, -1)
    return found


def _moves(dataset: OfflineDataset) -> list[csr_array]:
    frequency, behaviour = dataset.action_frequencies, behaviour_of(dataset)
    taken = frequency > 0
    count = np.maximum(taken.sum(axis=1, keepdims=True), 1)
    avoided = np.where(taken, np.maximum(1 / count - frequency, 0.0) ** 2 + LEAST_AVOIDED, 0.0)
    avoided /= np.maximum(avoided.sum(axis=1, keepdims=True), 1e-300)
    favoured, random = behaviour.moves, moves_under(dataset, taken / count)
    return [
        favoured,
        random,
        moves_under(dataset, avoided),
        _before(favoured, behaviour.visits + LEAST_VISITED),
        _before(random, dataset.visits.astype(np.float64)),
    ]


def _before(moves: csr_array, visits: FloatArray) -> csr_array:
    """Return the shares [n, n] of the states that precede each state, if states are visited so often."""
    flow = csr_array(moves.multiply(visits[:, None]).T)
    total = flow.sum(axis=1)
    return csr_array(flow.multiply((1 / np.maximum(total, 1e-12))[:, None]))
