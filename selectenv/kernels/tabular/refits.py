"""Refit the learner in many episodes: values, occupancy, predecessors and returns, into the arrays of the episodes.

Episodes of one problem are refitted in lanes, see `refit_in_lanes`; episodes with a problem of their own, or a single
one, are refitted one after the other in `refit_each`. Both give the same bits.
"""

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.learn_in_lanes import learn_in_lanes
from selectenv.kernels.tabular.model import Chain, Model
from selectenv.kernels.tabular.occupancy import eliminate_visits
from selectenv.kernels.tabular.one_set import learn_set, return_of_policy
from selectenv.kernels.tabular.packed_tables import (
    ACTIONS,
    BEHAVIOUR,
    DISCOUNT,
    EMPIRICAL,
    FIRST_PREDECESSOR,
    GAMMA,
    HORIZON,
    IMPUTED,
    IMPUTES_MINIMUM,
    LABELLED_ONLY,
    LEARNED,
    ON_POLICY_VISITATION,
    ONE_SWEEP,
    PREDECESSOR,
    PREDECESSOR_COUNT,
    PREDECESSORS,
    SMALLEST,
    START,
    VALUE,
    VALUE_SCALE,
    WORLD,
    WORLD_START,
    Episodes,
    Tables,
    Terms,
    chain_at,
    model_at,
    reals_at,
    whole_at,
)
from selectenv.kernels.tabular.returns import returns_after_steps, returns_by_one_sweep
from selectenv.kernels.tabular.solve import LANES
from selectenv.kernels.tabular.tolerances import TIE
from selectenv.kernels.tabular.visits_in_lanes import VisitPattern, eliminate_in_lanes, short_sums
from selectenv.typing import BoolArray, Float32Array, FloatArray, Int32Array, IntArray

VISIT_FLOATS = 1 << 15
"""Numbers in the matrices of those policies whose occupancy is computed together: so many stay in the cache."""


@inlined
def put_rows(lanes: Float32Array, members: IntArray, out: Float32Array) -> None:
    """Write each lane of ``lanes`` [n, lanes] into the row of its episode."""
    n, count = lanes.shape
    for w in range(count):
        row = out[members[w]]
        for s in range(n):
            row[s] = lanes[s, w]


@kernel
def show_values(values: FloatArray, members: IntArray, scales: FloatArray, out: Float32Array) -> None:
    """Write values [n, lanes], scaled by the largest magnitude so far, for the episodes ``members`` [k].

    Args:
        values: one lane per episode.
        members: numbers of the episodes.
        scales: see `Episodes.scales`.
        out: [episodes, n] receives the values.
    """
    n, count = len(values), len(members)
    scale, shown = np.empty(count), np.empty((n, count), np.float32)
    for w in range(count):
        scale[w] = scales[members[w], VALUE_SCALE]
    for s in range(n):
        for w in range(count):
            magnitude = abs(values[s, w])
            scale[w] = magnitude if magnitude > scale[w] else scale[w]
    for w in range(count):
        scales[members[w], VALUE_SCALE] = scale[w]
        scale[w] = scale[w] if scale[w] > 0.0 else 1.0
    for s in range(n):
        for w in range(count):
            shown[s, w] = values[s, w] / scale[w]
    put_rows(shown, members, out)


@kernel
def show_shares(visits: FloatArray, members: IntArray, out: Float32Array) -> None:
    """Write visits [n, lanes], scaled to sum to 1, for the episodes ``members`` [lanes]; see `show_values`."""
    n, count = visits.shape
    total, shown = np.empty(count), np.empty((n, count), np.float32)
    short_sums(visits, total)
    for s in range(n):
        for w in range(count):
            shown[s, w] = visits[s, w] / total[w]
    put_rows(shown, members, out)


@kernel
def show_predecessors(
    first: Int32Array,
    predecessor: Int32Array,
    count: FloatArray,
    values: FloatArray,
    masks: BoolArray,
    members: IntArray,
    out: Float32Array,
) -> None:
    """Write the distributions of `best_predecessors` for the episodes ``members`` [k].

    Args:
        first: [n + 1] range of predecessors of each state.
        predecessor: the predecessors.
        count: how often each of them led to the state.
        values: [n, lanes] values of the states, one lane per episode.
        masks: [lanes, n] which states are labelled.
        members: numbers of the episodes.
        out: [episodes, n] receives the distributions.
    """
    n = len(values)
    chosen, spread = np.empty(n, np.int64), np.zeros(n)
    for w in range(len(members)):
        at = members[w]
        labelled = 0
        for s in range(n):
            out[at, s] = 0.0
            chosen[labelled] = s
            labelled += 1 if masks[w, s] else 0
        best = -np.inf
        for i in range(labelled):
            s = chosen[i]
            if values[s, w] > best:
                for k in range(first[s], first[s + 1]):
                    if not masks[w, predecessor[k]]:
                        best = values[s, w]
                        break
        total = 0.0
        for i in range(labelled):
            s = chosen[i]
            if abs(values[s, w] - best) <= TIE:
                for k in range(first[s], first[s + 1]):
                    if not masks[w, predecessor[k]]:
                        spread[predecessor[k]] += count[k]
                        total += count[k]
        for i in range(labelled):
            s = chosen[i]
            if abs(values[s, w] - best) <= TIE:
                for k in range(first[s], first[s + 1]):
                    if spread[predecessor[k]] > 0.0:
                        out[at, predecessor[k]] = spread[predecessor[k]] / total
                        spread[predecessor[k]] = 0.0


@inlined
def imputed_by(tables: Tables, row: int, labels: BoolArray) -> float:
    """Return the reward that is imputed with a label set [n]."""
    impute: float = tables.reals[row, IMPUTED]
    if tables.places[row, IMPUTES_MINIMUM] == 1:
        smallest = reals_at(tables, row, SMALLEST)
        impute = np.inf
        for s in range(len(labels)):
            if labels[s]:
                impute = min(impute, smallest[s])
        if impute == np.inf:
            impute = 0.0
    return impute


@kernel
def refit_each(
    first: int,
    last: int,
    tables: Tables,
    episodes: Episodes,
    terms: Terms,
    refit: BoolArray,
    measure: BoolArray,
    measured: FloatArray,
) -> None:
    """Refit the episodes from ``first`` to ``last``, one after the other.

    Args:
        first: the first episode.
        last: the one after the last.
        tables: their problems.
        episodes: their state; the features that depend on the labels are updated.
        terms: what they share.
        refit: [episodes] whose features to update.
        measure: [episodes] whose labels to evaluate.
        measured: [episodes] receives the performances.
    """
    n = episodes.labelled_at.shape[1]
    masks, values, visits = np.empty((1, n), np.bool_), np.empty((n, 1)), np.empty((n, 1))
    labels, member, matrix = masks[0], np.empty(1, np.int64), np.empty((n, n))
    for at in range(first, last):
        if not (refit[at] or measure[at]):
            continue
        row = at if len(tables.places) > 1 else 0
        gamma, actions = tables.reals[row, GAMMA], tables.places[row, ACTIONS]
        labelled_only = tables.places[row, LABELLED_ONLY] == 1
        for s in range(n):
            labels[s] = episodes.labelled_at[at, s] > 0
        q, policy = np.empty((n, actions)), np.empty((n, actions))
        behaviour = reals_at(tables, row, BEHAVIOUR).reshape((n, actions))
        impute = imputed_by(tables, row, labels)
        learn_set(
            model_at(tables, row, LEARNED),
            labels,
            gamma,
            impute,
            labelled_only,
            behaviour,
            values.reshape(n),
            q,
            policy,
        )
        if measure[at]:
            measured[at] = return_of_policy(
                model_at(tables, row, WORLD),
                chain_at(tables, row),
                reals_at(tables, row, WORLD_START),
                tables.places[row, HORIZON],
                tables.reals[row, DISCOUNT],
                tables.places[row, ONE_SWEEP] == 1,
                policy,
            )
        if not refit[at]:
            continue
        member[0] = at
        if terms.valued:
            show_values(values, member, episodes.scales, episodes.features[VALUE])
        if terms.preceded:
            show_predecessors(
                whole_at(tables, row, FIRST_PREDECESSOR),
                whole_at(tables, row, PREDECESSOR),
                reals_at(tables, row, PREDECESSOR_COUNT),
                values,
                masks,
                member,
                episodes.features[PREDECESSORS],
            )
        if terms.occupied:
            if terms.published:
                for s in range(n):
                    if labels[s] or not labelled_only:
                        for action in range(actions):
                            policy[s, action] = 1.0 / actions if policy[s, action] > 0.0 else 0.0
            matrix[:] = 0.0
            visits[:, 0] = reals_at(tables, row, START)
            eliminate_visits(model_at(tables, row, EMPIRICAL), policy, gamma, matrix, visits.reshape(n))
            show_shares(visits, member, episodes.features[ON_POLICY_VISITATION])


@kernel
def returns_in_lanes(
    tables: Tables, world: Model, chain: Chain, policies: FloatArray, members: IntArray, measured: FloatArray
) -> None:
    """Write the returns of policies [1, n, actions, lanes] for the episodes ``members`` [lanes]."""
    _, n, _, lanes = policies.shape
    discount, out = tables.reals[0, DISCOUNT], np.empty((1, lanes))
    start = reals_at(tables, 0, WORLD_START)
    if tables.places[0, ONE_SWEEP] == 1:
        returns_by_one_sweep(world, chain, start, discount, policies, out)
    else:
        horizon, values = tables.places[0, HORIZON], np.empty((1, n, lanes))
        returns_after_steps(world, chain, start, discount, horizon, True, policies, values, out)
    for w in range(lanes):
        measured[members[w]] = out[0, w]


@inlined
def lanes_of(policies: FloatArray, first: int, last: int) -> FloatArray:
    """Return the lanes from ``first`` to ``last`` of policies [1, n, actions, lanes]."""
    _, n, actions, _ = policies.shape
    some = np.empty((1, n, actions, last - first))
    for s in range(n):
        for action in range(actions):
            for w in range(last - first):
                some[0, s, action, w] = policies[0, s, action, first + w]
    return some


@kernel
def occupy_in_lanes(
    tables: Tables,
    pattern: VisitPattern,
    policies: FloatArray,
    masks: BoolArray,
    published: bool,
    members: IntArray,
    episodes: Episodes,
) -> None:
    """Write the occupancy of policies [1, n, actions, lanes or more] for the episodes ``members`` [lanes]."""
    _, n, actions, lanes = policies.shape
    labelled_only = tables.places[0, LABELLED_ONLY] == 1
    empirical, start = model_at(tables, 0, EMPIRICAL), reals_at(tables, 0, START)
    entries = pattern.slot[n - 1, n - 1] + 1  # they are numbered row by row
    width = min(max(VISIT_FLOATS // entries, 16), LANES)
    for first in range(0, len(members), width):
        last = min(first + width, len(members))
        weights = policies if last - first == lanes and not published else lanes_of(policies, first, last)
        if published:
            for s in range(n):
                for w in range(last - first):
                    if masks[first + w, s] or not labelled_only:
                        for action in range(actions):
                            weights[0, s, action, w] = 1.0 / actions if weights[0, s, action, w] > 0.0 else 0.0
        visits = np.empty((n, last - first))
        for s in range(n):
            visits[s] = start[s]
        matrix = np.empty((entries, last - first))
        eliminate_in_lanes(empirical, pattern, weights[0], tables.reals[0, GAMMA], matrix, visits)
        show_shares(visits, members[first:last], episodes.features[ON_POLICY_VISITATION])


@inlined
def sort_members(
    first: int, last: int, refit: BoolArray, measure: BoolArray, members: IntArray
) -> tuple[int, int, int]:
    """List the episodes that are to be refitted only, those that are also measured, and those that are only measured.

    Returns:
        The numbers of episodes in the first list, in the first two, and in all three.
    """
    count = only_refit = refitted = 0
    for kind in range(3):
        for at in range(first, last):
            if (refit[at] or measure[at]) and kind == (2 if not refit[at] else int(measure[at])):
                members[count] = at
                count += 1
        if kind == 0:
            only_refit = count
        elif kind == 1:
            refitted = count
    return only_refit, refitted, count


@kernel
def refit_in_lanes(
    first: int,
    last: int,
    tables: Tables,
    episodes: Episodes,
    terms: Terms,
    refit: BoolArray,
    measure: BoolArray,
    measured: FloatArray,
    pattern: VisitPattern,
) -> None:
    """Refit the episodes from ``first`` to ``last``, which all play the first problem, with one lane per episode.

    The imputed reward must be the same for all label sets. See `refit_each` for the arguments.
    """
    labelled_at = episodes.labelled_at
    n = labelled_at.shape[1]
    members = np.empty(last - first, np.int64)
    only_refit, refitted, count = sort_members(first, last, refit, measure, members)
    gamma, impute, actions = tables.reals[0, GAMMA], tables.reals[0, IMPUTED], tables.places[0, ACTIONS]
    labelled_only = tables.places[0, LABELLED_ONLY] == 1
    learned, world, chain = model_at(tables, 0, LEARNED), model_at(tables, 0, WORLD), chain_at(tables, 0)
    behaviour = reals_at(tables, 0, BEHAVIOUR).reshape((n, actions))
    for begin in range(0, count, LANES):
        lanes = min(LANES, count - begin)
        block = members[begin : begin + lanes]
        masks = np.empty((lanes, n), np.bool_)
        for w in range(lanes):
            mask, row = masks[w], labelled_at[block[w]]
            for s in range(n):
                mask[s] = row[s] > 0
        values, policies = np.empty((1, n, lanes)), np.empty((1, n, actions, lanes))
        learn_in_lanes(learned, gamma, impute, labelled_only, behaviour, masks, values, policies)
        featured = min(max(refitted - begin, 0), lanes)
        if terms.valued:
            show_values(values[0], block[:featured], episodes.scales, episodes.features[VALUE])
        if terms.preceded:
            show_predecessors(
                whole_at(tables, 0, FIRST_PREDECESSOR),
                whole_at(tables, 0, PREDECESSOR),
                reals_at(tables, 0, PREDECESSOR_COUNT),
                values[0],
                masks,
                block[:featured],
                episodes.features[PREDECESSORS],
            )
        if terms.occupied and featured > 0:
            occupy_in_lanes(tables, pattern, policies, masks, terms.published, block[:featured], episodes)
        unmeasured = min(max(only_refit - begin, 0), lanes)
        if unmeasured < lanes:
            some = policies if unmeasured == 0 else lanes_of(policies, unmeasured, lanes)
            returns_in_lanes(tables, world, chain, some, block[unmeasured:], measured)
