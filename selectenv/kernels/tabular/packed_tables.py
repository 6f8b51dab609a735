"""What compiled passes know of problems, and the state of the episodes that they play.

A compiled function that takes many arrays spends most of a short call on looking at its arguments. So all arrays of a
problem stand one behind the other in four long ones, and are taken out again inside of the compiled loops.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selectenv.kernels.compiled import inlined
from selectenv.kernels.tabular.model import Chain, Model
from selectenv.typing import BoolArray, Float32Array, FloatArray, Int32Array, IntArray

ACTIONS, LABELLED_ONLY, IMPUTES_MINIMUM, HAS_RETURNS, HORIZON, ONE_SWEEP, ACYCLIC = range(7)
"""The first columns of `Tables.places` are settings: the number of actions; whether the rule is the adapted one,
whether the imputed reward is the smallest one revealed, whether labels can be evaluated; the horizon of the world,
whether it has no cycle and no longer path; and, for each of the three models, whether it has no cycle."""
GAMMA, IMPUTED, DISCOUNT = range(3)
"""The first columns of `Tables.reals` are numbers: discount of learning, imputed reward, discount of the return."""
SETTINGS, NUMBERS = 9, 3
LEARNED, EMPIRICAL, WORLD = range(3)
"""The models of a problem: the one that the learner solves, the empirical one without rewards, the true one."""
WHOLE_OF_MODEL = ("first_choice", "action", "first_outcome", "next_state", "order", "slot", "component")
REALS_OF_MODEL = ("reward", "probability")
FIRST_GROUP, SUCCESSOR, PLACE, FIRST_PREDECESSOR, PREDECESSOR, N_WHOLE = range(21, 27)
"""Arrays of integers, after those of the models: those of the world's chain, and the predecessors of each state."""
START, WORLD_START, BEHAVIOUR, MEAN, BY_ACTION, SMALLEST, LARGEST, PREDECESSOR_COUNT, N_REALS = range(6, 15)
"""Arrays of real numbers, after those of the models: start distributions of the data and of the world, action
frequencies [n, actions], and what a label reveals: the mean reward of a state, that of each action [n, actions], the
smallest one, the largest magnitude; and the number of transitions from each predecessor."""
LABELABLE, N_MARKS = range(3, 5)
"""Arrays of booleans, after those of the models: the states that occur in the data."""
WHOLE, REALS, MARKS = SETTINGS, SETTINGS + N_WHOLE + 1, SETTINGS + N_WHOLE + N_REALS + 2
"""Where the places of the arrays of each type begin in `Tables.places`."""


class Tables(NamedTuple):
    """Problems over the same n states, with one row per problem; shorter rows are padded.

    Either all episodes play the first problem, or each has a problem of its own.
    """

    places: IntArray
    """[problems, columns] settings, and where each array begins in its long one."""
    whole: Int32Array
    """[problems, entries] arrays of integers."""
    reals: FloatArray
    """[problems, entries] arrays of real numbers."""
    marks: BoolArray
    """[problems, entries] arrays of booleans."""


def pack(
    settings: Sequence[int],
    numbers: Sequence[float],
    models: Sequence[Model],
    whole: Sequence[NDArray[Any]],
    reals: Sequence[NDArray[Any]],
    marks: Sequence[NDArray[Any]],
) -> Tables:
    """Return the tables of one problem; the arrays come in the order of the constants above."""
    whole = [getattr(model, name) for model in models for name in WHOLE_OF_MODEL] + list(whole)
    reals = [getattr(model, name) for model in models for name in REALS_OF_MODEL] + list(reals)
    marks = [model.seen for model in models] + list(marks)
    places: list[int] = [*settings, *(int(model.acyclic) for model in models)]
    for arrays, first in ((whole, 0), (reals, NUMBERS), (marks, 0)):
        places += (first + np.concatenate([[0], np.cumsum([array.size for array in arrays])])).tolist()

    def joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> Any:
        return np.concatenate([np.asarray(array, dtype).ravel() for array in arrays])[None]

    return Tables(
        np.array(places)[None],
        joined(whole, np.int32),
        joined([np.array(numbers), *reals], np.float64),
        joined(marks, np.bool_),
    )


@inlined
def whole_at(tables: Tables, row: int, number: int) -> Int32Array:
    """Return an array of integers."""
    return tables.whole[row, tables.places[row, WHOLE + number] : tables.places[row, WHOLE + number + 1]]


@inlined
def reals_at(tables: Tables, row: int, number: int) -> FloatArray:
    """Return an array of real numbers."""
    return tables.reals[row, tables.places[row, REALS + number] : tables.places[row, REALS + number + 1]]


@inlined
def marks_at(tables: Tables, row: int, number: int) -> BoolArray:
    """Return an array of booleans."""
    return tables.marks[row, tables.places[row, MARKS + number] : tables.places[row, MARKS + number + 1]]


@inlined
def model_at(tables: Tables, row: int, number: int) -> Model:
    """Return one of the three models of a problem."""
    at = 7 * number
    order, slot = whole_at(tables, row, at + 4), whole_at(tables, row, at + 5)
    n = len(order) if len(slot) > 0 else 0
    return Model(
        whole_at(tables, row, at),
        whole_at(tables, row, at + 1),
        reals_at(tables, row, 2 * number),
        marks_at(tables, row, number),
        whole_at(tables, row, at + 2),
        whole_at(tables, row, at + 3),
        reals_at(tables, row, 2 * number + 1),
        order,
        tables.places[row, ACYCLIC + number] == 1,
        slot.reshape((n, n)),
        whole_at(tables, row, at + 6),
    )


@inlined
def chain_at(tables: Tables, row: int) -> Chain:
    """Return the successors in the world of a problem."""
    return Chain(whole_at(tables, row, FIRST_GROUP), whole_at(tables, row, SUCCESSOR), whole_at(tables, row, PLACE))


BUDGET, SPENT, SINCE_REFIT, STALE, JUDGED, DISCLOSED, UNCOUNTED, N_COUNTS = range(8)
"""Columns of `Episodes.counts`: labels of the episode, labels spent, labels since the last refit; as 0 or 1, whether a
state was labelled since then, and whether the final return is a score; and, over all episodes, the numbers of
performances disclosed and of scores."""
PERFORMANCE, VALUE_SCALE, REWARD_SCALE = range(3)
"""Columns of `Episodes.scales`: the performance disclosed last, 0 at the start; largest magnitudes of a value and of a
revealed reward so far."""
LABELLED, ON_POLICY_VISITATION, VALUE, PREDECESSORS, REWARD = range(5)
"""Rows of `Episodes.features`."""
LEFT, SCALE = range(2)
"""Rows of `Episodes.totals`."""


class Episodes(NamedTuple):
    """The state of the episodes, one row per episode."""

    labelled_at: IntArray
    """[episodes, n] when each state was labelled, counted from 1; 0 if it is not labelled."""
    open: NDArray[np.int8]
    """[episodes, n] 1 for states that can still be labelled, else 0."""
    counts: IntArray
    """[episodes, 7]"""
    scales: FloatArray
    """[episodes, 3]"""
    features: Float32Array
    """[5, episodes, n] the features that change during an episode."""
    totals: Float32Array
    """[2, episodes, 1] share of the budget that is left; scale of the revealed rewards."""


def new_episodes(count: int, n: int) -> Episodes:
    """Return the state of ``count`` episodes over n states that have not begun."""
    return Episodes(
        np.zeros((count, n), np.int64),
        np.zeros((count, n), np.int8),
        np.zeros((count, N_COUNTS), np.int64),
        np.zeros((count, 3)),
        np.zeros((5, count, n), np.float32),
        np.zeros((2, count, 1), np.float32),
    )


class Terms(NamedTuple):
    """What is the same in all episodes."""

    refit_every: int
    """Labels between refits."""
    marginal: bool
    """Whether every step pays the change of the performance."""
    published: bool
    """Whether tied actions have the weight 1 / actions in the occupancy."""
    occupied: bool
    """Whether the observation has `on_policy_visitation`."""
    valued: bool
    """Whether it has `value`."""
    preceded: bool
    """Whether it has `predecessors`."""
