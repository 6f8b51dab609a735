"""The steps of many episodes: begin them, label one state in each, refit, and pay rewards."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.packed_tables import (
    ACTIONS,
    BUDGET,
    BY_ACTION,
    DISCLOSED,
    HAS_RETURNS,
    JUDGED,
    LABELABLE,
    LABELLED,
    LARGEST,
    LEFT,
    MARKS,
    MEAN,
    PERFORMANCE,
    REALS,
    REWARD,
    REWARD_SCALE,
    SCALE,
    SINCE_REFIT,
    SPENT,
    STALE,
    UNCOUNTED,
    VALUE_SCALE,
    Episodes,
    Tables,
    Terms,
)
from selectenv.kernels.tabular.refits import refit_each, refit_in_lanes
from selectenv.kernels.tabular.visits_in_lanes import VisitPattern
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray


class StepResult(NamedTuple):
    """What a step leads to, one column per episode; in those without a step all numbers are 0 and marks False."""

    numbers: FloatArray
    """[2, episodes] reward; performance, where it was measured."""
    marks: BoolArray
    """[4, episodes] whether the episode has ended, whether the label was wasted, whether the features that depend on
    the labels change, and whether the performance is measured."""
    revealed: FloatArray
    """[actions, episodes] mean reward of each action of the state just labelled."""
    reveals: BoolArray
    """[actions, episodes + 1] whether there is such a reward; in the last column, whether there is one at all."""


PAID, MEASURED = range(2)
"""Rows of `StepResult.numbers`."""
OVER, WASTED, REFIT, MEASURE = range(4)
"""Rows of `StepResult.marks`."""


@kernel
def label_state(
    places: IntArray,
    reals: FloatArray,
    row: int,
    labelled_at: IntArray,
    open_states: NDArray[np.int8],
    scales: FloatArray,
    features: Float32Array,
    at: int,
    state: int,
    number: int,
    budget: int,
) -> None:
    """Label a state that can be labelled, as label ``number`` of its episode, and show what it reveals.

    The arrays are those of `Tables` and `Episodes`, whose tuples would be too slow to take apart once per episode.
    """
    labelled_at[at, state] = number
    open_states[at, state] = 0
    features[LABELLED, at, state] = number / budget
    before = scales[at, REWARD_SCALE]
    scale = max(before, reals[row, places[row, REALS + LARGEST] + state])
    scales[at, REWARD_SCALE] = scale
    divisor = scale if scale > 0.0 else 1.0
    mean = places[row, REALS + MEAN]
    features[REWARD, at, state] = reals[row, mean + state] / divisor
    if scale != before:
        for s in range(labelled_at.shape[1]):
            if labelled_at[at, s] > 0:
                features[REWARD, at, s] = reals[row, mean + s] / divisor


@kernel
def begin_episodes(
    tables: Tables,
    episodes: Episodes,
    which: IntArray,
    budgets: IntArray,
    initial: IntArray,
    initial_counts: IntArray,
) -> None:
    """Begin some episodes anew; the features that depend on the labels are left as they are.

    Args:
        tables: the problems.
        episodes: the state of all episodes.
        which: [k] numbers of those that begin.
        budgets: [k] their numbers of labels.
        initial: [k, most] states to label, out of the budget.
        initial_counts: [k] how many of these.
    """
    places, _, reals, marks = tables
    labelled_at, open_states, counts, scales, features, totals = episodes
    for i in range(len(which)):
        at, budget, labels = which[i], budgets[i], initial_counts[i]
        row = at if len(places) > 1 else 0
        labelable = places[row, MARKS + LABELABLE]
        for s in range(labelled_at.shape[1]):
            labelled_at[at, s] = 0
            open_states[at, s] = 1 if marks[row, labelable + s] else 0
            features[LABELLED, at, s] = features[REWARD, at, s] = 0.0
        counts[at, BUDGET], counts[at, SPENT] = budget, labels
        counts[at, SINCE_REFIT] = counts[at, STALE] = counts[at, JUDGED] = 0
        scales[at, PERFORMANCE] = scales[at, VALUE_SCALE] = scales[at, REWARD_SCALE] = 0.0
        for j in range(labels):
            state = initial[i, j]
            label_state(places, reals, row, labelled_at, open_states, scales, features, at, state, j + 1, budget)
        totals[LEFT, at, 0] = 1.0 - labels / budget
        totals[SCALE, at, 0] = scales[at, REWARD_SCALE] / (1.0 + scales[at, REWARD_SCALE])


@kernel
def settle_labels(
    first: int,
    last: int,
    tables: Tables,
    episodes: Episodes,
    terms: Terms,
    steps: BoolArray,
    labels: int,
    result: StepResult,
) -> None:
    """Find out what so many labels lead to: a refit, the end of the episode, a reward; see `label_states`."""
    places, counts, scales, totals, marks = (
        tables.places,
        episodes.counts,
        episodes.scales,
        episodes.totals,
        result.marks,
    )
    learns = terms.occupied or terms.valued or terms.preceded
    for at in range(first, last):
        marks[OVER, at] = marks[REFIT, at] = marks[MEASURE, at] = False
        if not steps[at]:
            continue
        since = counts[at, SINCE_REFIT] + labels
        if since >= terms.refit_every:
            since %= terms.refit_every
            marks[REFIT, at] = learns and counts[at, STALE] == 1
            counts[at, STALE] = 0
        counts[at, SINCE_REFIT] = since
        totals[LEFT, at, 0] = 1.0 - counts[at, SPENT] / counts[at, BUDGET]
        totals[SCALE, at, 0] = scales[at, REWARD_SCALE] / (1.0 + scales[at, REWARD_SCALE])
        over = counts[at, SPENT] == counts[at, BUDGET]
        marks[OVER, at] = over
        marks[MEASURE, at] = (terms.marginal or over) and places[at if len(places) > 1 else 0, HAS_RETURNS] == 1


@kernel
def label_states(
    first: int,
    last: int,
    tables: Tables,
    episodes: Episodes,
    terms: Terms,
    steps: BoolArray,
    actions: IntArray,
    result: StepResult,
) -> None:
    """Label the state ``actions[i]`` in every episode i from ``first`` to ``last`` that takes a step.

    Args:
        first: the first episode.
        last: the one after the last.
        tables: their problems.
        episodes: their state.
        terms: what they share.
        steps: [episodes] which of them take a step.
        actions: [episodes] the states to label.
        result: receives everything but the performances and the rewards.
    """
    places, _, reals, _ = tables
    labelled_at, open_states, counts, scales, features, _ = episodes
    numbers, marks, revealed, reveals = result
    for at in range(first, last):
        numbers[PAID, at] = numbers[MEASURED, at] = 0.0
        marks[WASTED, at] = False
        for action in range(len(revealed)):
            revealed[action, at], reveals[action, at] = 0.0, False
        if not steps[at]:
            continue
        row = at if len(places) > 1 else 0
        state, spent = actions[at], counts[at, SPENT] + 1
        counts[at, SPENT] = spent
        if open_states[at, state] == 0:
            marks[WASTED, at] = True
            continue
        width = places[row, ACTIONS]
        means = places[row, REALS + BY_ACTION] + state * width
        for action in range(width):
            if not np.isnan(reals[row, means + action]):
                revealed[action, at] = reals[row, means + action]
                reveals[action, at] = reveals[action, -1] = True
        budget = counts[at, BUDGET]
        label_state(places, reals, row, labelled_at, open_states, scales, features, at, state, spent, budget)
        counts[at, STALE] = 1
    settle_labels(first, last, tables, episodes, terms, steps, 1, result)


@kernel
def pay_rewards(first: int, last: int, episodes: Episodes, result: StepResult) -> None:
    """Pay the change of the performance where it was measured, and count it."""
    counts, scales, numbers, marks = episodes.counts, episodes.scales, result.numbers, result.marks
    for at in range(first, last):
        if marks[MEASURE, at]:
            numbers[PAID, at] = numbers[MEASURED, at] - scales[at, PERFORMANCE]
            scales[at, PERFORMANCE] = numbers[MEASURED, at]
            judged = marks[OVER, at] and counts[at, JUDGED] == 1
            counts[at, UNCOUNTED if judged else DISCLOSED] += 1


@kernel
def step_each(
    first: int,
    last: int,
    tables: Tables,
    episodes: Episodes,
    terms: Terms,
    steps: BoolArray,
    actions: IntArray,
    result: StepResult,
) -> None:
    """Take a step in the episodes from ``first`` to ``last``: label, refit, evaluate and pay; see `label_states`."""
    label_states(first, last, tables, episodes, terms, steps, actions, result)
    refit, measure, measured = result.marks[REFIT], result.marks[MEASURE], result.numbers[MEASURED]
    refit_each(first, last, tables, episodes, terms, refit, measure, measured)
    pay_rewards(first, last, episodes, result)


@kernel
def step_in_lanes(
    first: int,
    last: int,
    tables: Tables,
    episodes: Episodes,
    terms: Terms,
    steps: BoolArray,
    actions: IntArray,
    result: StepResult,
    pattern: VisitPattern,
) -> None:
    """Do the same as `step_each` in episodes that all play the first problem, with one lane per episode."""
    label_states(first, last, tables, episodes, terms, steps, actions, result)
    refit, measure, measured = result.marks[REFIT], result.marks[MEASURE], result.numbers[MEASURED]
    refit_in_lanes(first, last, tables, episodes, terms, refit, measure, measured, pattern)
    pay_rewards(first, last, episodes, result)


@kernel
def label_batch(
    tables: Tables, episodes: Episodes, terms: Terms, states: IntArray, fresh: BoolArray, result: StepResult
) -> None:
    """Label several states of the first episode, one after the other, and mark those that were not wasted.

    Args:
        tables: the problem.
        episodes: the state of the episode.
        terms: its terms.
        states: [k] the states to label; no more than the budget allows.
        fresh: [k] receives which labels were not wasted.
        result: receives everything but the performance, the reward and what was revealed.
    """
    places, _, reals, _ = tables
    labelled_at, open_states, counts, scales, features, _ = episodes
    for i in range(len(states)):
        counts[0, SPENT] += 1
        fresh[i] = open_states[0, states[i]] == 1
        if fresh[i]:
            spent, budget = counts[0, SPENT], counts[0, BUDGET]
            label_state(places, reals, 0, labelled_at, open_states, scales, features, 0, states[i], spent, budget)
            counts[0, STALE] = 1
    result.numbers[:] = 0.0
    result.marks[:] = False
    settle_labels(0, 1, tables, episodes, terms, np.ones(1, np.bool_), len(states), result)
