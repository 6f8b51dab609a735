"""The infos of vector environments in Gymnasium's format: an array and a mask ``_key`` per key."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.datasets.reward_summary import RewardSummary
from selectenv.kernels.tabular.episode_steps import MEASURE, MEASURED, OVER, WASTED, StepResult
from selectenv.observation import Observation
from selectenv.typing import BoolArray, IntArray

Info = dict[Any, Any]


def put(info: Info, key: Any, array: Any, mask: BoolArray, *, every: bool = False) -> None:
    """Add the values of a key for the environments in ``mask``; the values of the others become 0, or None for objects.

    Args:
        info: the info to add to.
        key: the key.
        array: [environments, ...] the values, or a dict of arrays.
        mask: [environments] which environments have a value.
        every: whether all of them do.
    """
    if not every and isinstance(array, np.ndarray):
        array[~mask] = None if array.dtype == object else np.zeros((), array.dtype)
    info[key], info[f"_{key}"] = array, mask.copy()


def put_step(info: Info, result: StepResult, states: NDArray[Any], mask: BoolArray, *, every: bool, ends: bool) -> None:
    """Add what a step returns for the environments in ``mask``.

    Args:
        info: the info to add to.
        result: the result of the step.
        states: [environments] ids of the labelled states.
        mask: [environments] which environments took the step.
        every: whether all of them did; then the info may keep the arrays of the result.
        ends: whether any of their episodes has ended.
    """
    wasted, means = result.marks[WASTED], result.revealed
    if not every:
        wasted, means = wasted.copy(), means.copy()
    put(info, "state", states, mask, every=every)
    put(info, "wasted", wasted, mask, every=every)
    revealed: Info = {}
    for action, found in enumerate(result.reveals[:, -1].tolist()):
        mine = result.reveals[action, :-1] if every else result.reveals[action, :-1] & mask
        if found and (every or mine.any()):
            put(revealed, action, means[action], mine, every=every)
    put(info, "revealed", revealed, mask, every=every)
    if ends:
        ended = result.marks[OVER] & result.marks[MEASURE] & mask
        if ended.any():
            put(info, "performance", result.numbers[MEASURED].copy(), ended)


def put_begin(
    info: Info, states: NDArray[Any], budgets: IntArray, initial_revealed: Info, mask: BoolArray, *, every: bool
) -> None:
    """Add what a reset returns for the environments in ``mask``.

    Args:
        info: the info to add to.
        states: [environments, n] ids of the states.
        budgets: [environments] number of labels of each episode.
        initial_revealed: see `initially_revealed`.
        mask: [environments] which environments were reset.
        every: whether all of them were.
    """
    put(info, "states", states, mask, every=every)
    put(info, "budget", budgets, mask, every=every)
    put(info, "initial_revealed", initial_revealed, mask)


def initially_revealed(labelled: BoolArray, summaries: Sequence[RewardSummary]) -> Info:
    """Return what the labels at reset reveal: state number -> action -> mean reward.

    Args:
        labelled: [environments, n] the states labelled at reset.
        summaries: what labels reveal; one for all environments, or one each.
    """
    found: Info = {}
    for state in np.flatnonzero(labelled.any(axis=0)).tolist():
        where = labelled[:, state]
        if len(summaries) == 1:
            means = np.repeat(summaries[0].by_action[state][None], len(labelled), axis=0)
        else:
            width = max(summary.by_action.shape[1] for summary in summaries)
            means = np.full((len(labelled), width), np.nan)
            for number in np.flatnonzero(where).tolist():
                row = summaries[number].by_action[state]
                means[number, : len(row)] = row
        actions: Info = {}
        for action in range(means.shape[1]):
            mine = where & ~np.isnan(means[:, action])
            if mine.any():
                put(actions, action, means[:, action].copy(), mine)
        put(found, state, actions, where)
    return found


def put_final(info: Info, observation: Observation, final_info: Info, mask: BoolArray) -> None:
    """Add the last observations and infos of the environments in ``mask``, which ended and were reset.

    In Gymnasium's format every environment has an observation of its own, so that dicts are made one by one; their
    arrays are rows of copies that are made at once.
    """
    final = np.full(len(mask), None, dtype=object)
    rows = zip(*(array[mask] for array in observation.values()), strict=True)
    final[mask] = [dict(zip(observation, row, strict=True)) for row in rows]
    info["final_obs"], info["_final_obs"] = final, mask.copy()
    put(info, "final_info", final_info, mask)


def ragged(rows: IntArray, counts: IntArray) -> NDArray[Any]:
    """Return the first ``counts[i]`` entries of every row as objects."""
    found = np.full(len(rows), None, dtype=object)
    for number, count in enumerate(counts.tolist()):
        found[number] = rows[number, :count].copy()
    return found
