"""A tabular decision process as flat arrays: what the compiled loops solve and evaluate.

A state has choices (one per action), a choice has an expected reward and outcomes. Outcomes that terminate an episode,
or enter a state of which nothing is known, are left out: what follows them is worth 0.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from selectenv.kernels.compiled import kernel
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray

ELIMINATION_LIMIT = 128
"""Policies of models with at most this many states are evaluated by dense elimination in lanes, others sparsely."""


class Model(NamedTuple):
    """Flat arrays; `first_*[i]` to `first_*[i + 1]` is the range that belongs to item i."""

    first_choice: Int32Array
    """[n + 1] range of choices of each state."""
    action: Int32Array
    """[choices] the action of each choice."""
    reward: FloatArray
    """[choices] expected reward."""
    seen: BoolArray
    """[choices] False for an action that was never taken: it is worth 0 whatever is labelled."""
    first_outcome: Int32Array
    """[choices + 1] range of outcomes of each choice."""
    next_state: Int32Array
    """[outcomes] the state entered."""
    probability: FloatArray
    """[outcomes]"""
    order: Int32Array
    """[n] the order of sweeps: successors first if the model has no cycle, else by distance to termination."""
    acyclic: bool
    """Whether the model has no cycle, so that one sweep in `order` is exact."""
    slot: Int32Array
    """[n, n] by place in `order`: the number of each entry that elimination may touch, else -1; empty if n is large."""
    component: Int32Array
    """[components + 1] ranges of `order`: strongly connected states, successors first; one range if n is small."""

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.first_choice) - 1


class Chain(NamedTuple):
    """The successors of each state under any policy, in groups of four, the width that vectorises best."""

    first_group: Int32Array
    """[n + 1] range of groups of each state."""
    successor: Int32Array
    """[4 groups] successors; unused places refer to state 0 and keep the weight 0."""
    place: Int32Array
    """[outcomes] the place that each outcome of the model adds its weight to."""


@kernel
def solving_order(
    open_successors: IntArray,
    first_predecessor: IntArray,
    predecessor: Int32Array,
    terminates: BoolArray,
    reached: BoolArray,
    order: Int32Array,
) -> bool:
    """Write the order of sweeps into ``order`` and return whether the graph has no cycle.

    Args:
        open_successors: [n] number of successors of each state; used up.
        first_predecessor: [n + 1] range of predecessors of each state.
        predecessor: [edges] predecessors.
        terminates: [n] whether episodes terminate in a state.
        reached: [n] scratch space; must be False.
        order: [n] receives the order.
    """
    n = len(terminates)
    found = 0
    for s in range(n):
        if open_successors[s] == 0:
            order[found] = s
            found += 1
    done = 0
    while done < found:  # next are states all of whose successors are done
        for i in range(first_predecessor[order[done]], first_predecessor[order[done] + 1]):
            s = predecessor[i]
            open_successors[s] -= 1
            if open_successors[s] == 0:
                order[found] = s
                found += 1
        done += 1
    if found == n:
        return True
    found = 0
    for s in range(n):  # breadth first, backwards from where episodes terminate
        if terminates[s]:
            order[found] = s
            found += 1
            reached[s] = True
    done = 0
    while done < found:
        for i in range(first_predecessor[order[done]], first_predecessor[order[done] + 1]):
            s = predecessor[i]
            if not reached[s]:
                reached[s] = True
                order[found] = s
                found += 1
        done += 1
    for s in range(n):
        if not reached[s]:
            order[found] = s
            found += 1
    return False


def _ranges(keys: IntArray, n: int) -> IntArray:
    """Return where each of 0..n-1 starts in the sorted ``keys``."""
    return np.searchsorted(keys, np.arange(n + 1))


def _slots(order: Int32Array, source: IntArray, target: IntArray) -> Int32Array:
    """Number the matrix entries that elimination in ``order`` may touch, fill-in included."""
    n = len(order)
    if n > ELIMINATION_LIMIT:
        return np.empty((0, 0), np.int32)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    touched = np.eye(n, dtype=bool)
    touched[place[source], place[target]] = True
    for k in range(n):
        rows = k + 1 + np.flatnonzero(touched[k + 1 :, k])
        touched[rows, k + 1 :] |= touched[k, k + 1 :]
    slot = np.full((n, n), -1, np.int32)
    slot[touched] = np.arange(touched.sum())
    return slot


def _by_component(order: Int32Array, source: IntArray, target: IntArray) -> tuple[Int32Array, Int32Array]:
    """Return the order sorted by component, successors first, and where each component starts."""
    n = len(order)
    graph = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(n, n))
    number = connected_components(graph, directed=True, connection="strong")[1]
    if (number[source] < number[target]).any():  # SciPy does not document this order of the numbers
        number[:] = 0
    order = order[np.argsort(number[order], kind="stable")]
    return order, np.append(np.flatnonzero(np.diff(number[order], prepend=-1)), n).astype(np.int32)


def build_model(
    n_states: int,
    n_actions: int,
    state: IntArray,
    action: IntArray,
    next_state: IntArray,
    weight: FloatArray,
    reward: FloatArray,
    *,
    exclude_unseen: bool = False,
) -> Model:
    """Build a model from weighted transitions: probabilities of a world, or counts of a dataset.

    Args:
        n_states: number of states.
        n_actions: number of actions.
        state: [m] state of each transition.
        action: [m] action of each transition.
        next_state: [m] next state, or -1 if the episode terminates or nothing is known of it.
        weight: [m] positive weight.
        reward: [m] reward.
        exclude_unseen: leave out actions with no transition instead of valuing them 0.

    Returns:
        The model; its states keep their numbers.
    """
    pair = state.astype(np.int64) * n_actions + action
    n_pairs = n_states * n_actions
    total = np.bincount(pair, weight, n_pairs)
    mean_reward = np.bincount(pair, weight * reward, n_pairs) / np.where(total > 0, total, 1.0)
    seen = total > 0
    kept = np.flatnonzero(seen) if exclude_unseen else np.arange(n_pairs)

    continues = next_state >= 0
    key, where = np.unique(pair[continues] * n_states + next_state[continues], return_inverse=True)
    outcome_pair, outcome_next = np.divmod(key, n_states)
    probability = np.bincount(where, weight[continues], len(key)) / total[outcome_pair]

    edges = np.unique(outcome_pair // n_actions * n_states + outcome_next)
    source, target = np.divmod(edges, n_states)
    backwards = np.argsort(target, kind="stable")
    terminates = np.zeros(n_states, bool)
    terminates[state[~continues]] = True
    first_predecessor, order = _ranges(target[backwards], n_states), np.empty(n_states, np.int32)
    acyclic = solving_order(
        np.bincount(source, minlength=n_states),
        first_predecessor,
        source[backwards].astype(np.int32),
        terminates,
        np.zeros(n_states, bool),
        order,
    )
    component = np.array([0, n_states], np.int32)
    if n_states > ELIMINATION_LIMIT:
        order, component = _by_component(order, source, target)
    return Model(
        first_choice=_ranges(kept // n_actions, n_states).astype(np.int32),
        action=(kept % n_actions).astype(np.int32),
        reward=mean_reward[kept],
        seen=seen[kept],
        first_outcome=np.append(np.searchsorted(outcome_pair, kept), len(key)).astype(np.int32),
        next_state=outcome_next.astype(np.int32),
        probability=probability,
        order=order,
        acyclic=bool(acyclic),
        slot=_slots(order, source, target),
        component=component,
    )


def build_chain(model: Model) -> Chain:
    """Return the successor structure that every policy's chain in ``model`` shares."""
    n = model.n_states
    choice_state = np.repeat(np.arange(n), np.diff(model.first_choice))
    outcome_state = np.repeat(choice_state, np.diff(model.first_outcome))
    key, where = np.unique(outcome_state * n + model.next_state, return_inverse=True)
    state, successor = np.divmod(key, n)
    groups = -(-np.bincount(state, minlength=n) // 4)
    first_group = np.concatenate([[0], np.cumsum(groups)])
    rank = np.arange(len(key)) - _ranges(state, n)[state]
    place = 4 * first_group[state] + rank
    padded = np.zeros(4 * first_group[-1], np.int32)
    padded[place] = successor
    return Chain(first_group.astype(np.int32), padded, place[where].astype(np.int32))
