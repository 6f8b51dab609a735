"""The steps of many episodes: begin them, label one state in each, refit, and pay rewards."""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.refits import refit_each, refit_in_lanes
from selectenv.kernels.tabular.tables import (
    ACTIONS,
    BUDGET,
    BY_ACTION,
    DISCLOSED,
    HAS_RETURNS,
    JUDGED,
    LABELABLE,
    LABELLED,
    LARGEST,
    MEAN,
    PERFORMANCE,
    REWARD,
    REWARD_SCALE,
    SINCE_REFIT,
    SPENT,
    STALE,
    UNCOUNTED,
    Episodes,
    Tables,
    Terms,
    marks_at,
    reals_at,
)
from selectenv.kernels.tabular.visits_in_lanes import VisitPattern
from selectenv.typing import BoolArray, FloatArray, IntArray


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


@inlined
def label_state(tables: Tables, row: int, episodes: Episodes, at: int, state: int, number: int) -> None:
    """Label a state that can be labelled, as label ``number`` of its episode, and show what it reveals."""
    episodes.labelled_at[at, state] = number
    episodes.open[at, state] = 0
    episodes.features[LABELLED, at, state] = number / episodes.counts[at, BUDGET]
    before = episodes.scales[at, REWARD_SCALE]
    scale = max(before, reals_at(tables, row, LARGEST)[state])
    episodes.scales[at, REWARD_SCALE] = scale
    episodes.totals[1, at, 0] = scale / (1.0 + scale)
    divisor = scale if scale > 0.0 else 1.0
    mean, out = reals_at(tables, row, MEAN), episodes.features[REWARD, at]
    if scale == before:
        out[state] = mean[state] / divisor
    else:
        for s in range(len(out)):
            out[s] = mean[s] / divisor if episodes.labelled_at[at, s] > 0 else 0.0


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
    for i in range(len(which)):
        at = which[i]
        row = at if len(tables.places) > 1 else 0
        labelable = marks_at(tables, row, LABELABLE)
        for s in range(len(labelable)):
            episodes.labelled_at[at, s] = 0
            episodes.open[at, s] = 1 if labelable[s] else 0
            episodes.features[LABELLED, at, s] = episodes.features[REWARD, at, s] = 0.0
        episodes.counts[at, BUDGET] = budgets[i]
        episodes.counts[at, SPENT] = initial_counts[i]
        episodes.counts[at, SINCE_REFIT] = episodes.counts[at, STALE] = episodes.counts[at, JUDGED] = 0
        episodes.scales[at] = 0.0
        episodes.totals[0, at, 0] = 1.0 - initial_counts[i] / budgets[i]
        episodes.totals[1, at, 0] = 0.0
        for j in range(initial_counts[i]):
            label_state(tables, row, episodes, at, initial[i, j], j + 1)


@inlined
def clear(at: int, result: StepResult) -> None:
    """Set everything in the column of an episode to 0 or False."""
    result.numbers[:, at] = 0.0
    result.marks[:, at] = False
    result.revealed[:, at] = 0.0
    result.reveals[:, at] = False


@inlined
def settle(
    tables: Tables, row: int, episodes: Episodes, terms: Terms, at: int, labels: int, result: StepResult
) -> None:
    """Find out what so many labels lead to: a refit, the end of the episode, a reward."""
    counts = episodes.counts[at]
    counts[SINCE_REFIT] += labels
    if counts[SINCE_REFIT] >= terms.refit_every:
        counts[SINCE_REFIT] %= terms.refit_every
        result.marks[REFIT, at] = counts[STALE] == 1 and (terms.occupied or terms.valued or terms.preceded)
        counts[STALE] = 0
    episodes.totals[0, at, 0] = 1.0 - counts[SPENT] / counts[BUDGET]
    over = counts[SPENT] == counts[BUDGET]
    result.marks[OVER, at] = over
    result.marks[MEASURE, at] = (terms.marginal or over) and tables.places[row, HAS_RETURNS] == 1


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
    for at in range(first, last):
        clear(at, result)
        if not steps[at]:
            continue
        row = at if len(tables.places) > 1 else 0
        state, counts = actions[at], episodes.counts[at]
        counts[SPENT] += 1
        if episodes.open[at, state] == 0:
            result.marks[WASTED, at] = True
        else:
            width = tables.places[row, ACTIONS]
            means = reals_at(tables, row, BY_ACTION)[state * width : (state + 1) * width]
            for action in range(width):
                if not np.isnan(means[action]):
                    result.revealed[action, at] = means[action]
                    result.reveals[action, at] = result.reveals[action, -1] = True
            label_state(tables, row, episodes, at, state, counts[SPENT])
            counts[STALE] = 1
        settle(tables, row, episodes, terms, at, 1, result)


@kernel
def pay_rewards(first: int, last: int, episodes: Episodes, result: StepResult) -> None:
    """Pay the change of the performance where it was measured, and count it."""
    for at in range(first, last):
        if result.marks[MEASURE, at]:
            measured = result.numbers[MEASURED, at]
            result.numbers[PAID, at] = measured - episodes.scales[at, PERFORMANCE]
            episodes.scales[at, PERFORMANCE] = measured
            judged = result.marks[OVER, at] and episodes.counts[at, JUDGED] == 1
            episodes.counts[at, UNCOUNTED if judged else DISCLOSED] += 1


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
    clear(0, result)
    counts = episodes.counts[0]
    for i in range(len(states)):
        counts[SPENT] += 1
        fresh[i] = episodes.open[0, states[i]] == 1
        if fresh[i]:
            label_state(tables, 0, episodes, 0, states[i], counts[SPENT])
            counts[STALE] = 1
    settle(tables, 0, episodes, terms, 0, len(states), result)
