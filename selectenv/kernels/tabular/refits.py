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
from selectenv.kernels.tabular.returns import returns_after_steps, returns_by_one_sweep
from selectenv.kernels.tabular.solve import LANES
from selectenv.kernels.tabular.tables import (
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
from selectenv.kernels.tabular.tolerances import TIE
from selectenv.kernels.tabular.visits_in_lanes import VisitPattern, eliminate_in_lanes, short_sum
from selectenv.typing import BoolArray, Float32Array, FloatArray, Int32Array, IntArray

VISIT_LANES = 32
"""Policies whose occupancy is computed together: the matrices of so many stay in the cache."""


@inlined
def write_values(values: FloatArray, at: int, episodes: Episodes) -> None:
    """Write the values [n] of an episode, scaled by the largest magnitude so far."""
    scale = episodes.scales[at, VALUE_SCALE]
    for s in range(len(values)):
        scale = max(scale, abs(values[s]))
    episodes.scales[at, VALUE_SCALE] = scale
    divisor = scale if scale > 0.0 else 1.0
    out = episodes.features[VALUE, at]
    for s in range(len(values)):
        out[s] = values[s] / divisor


@inlined
def write_shares(visits: FloatArray, out: Float32Array) -> None:
    """Write visits [n], scaled to sum to 1."""
    total = short_sum(visits)
    for s in range(len(visits)):
        out[s] = visits[s] / total


@inlined
def write_predecessors(
    first: Int32Array,
    predecessor: Int32Array,
    count: FloatArray,
    values: FloatArray,
    labels: BoolArray,
    spread: FloatArray,
    chosen: IntArray,
    out: Float32Array,
) -> None:
    """Write the distribution of `best_predecessors`; ``spread`` [n], which must be 0 and is 0 afterwards, is scratch.

    Args:
        first: [n + 1] range of predecessors of each state.
        predecessor: the predecessors.
        count: how often each of them led to the state.
        values: [n] values of the states.
        labels: [n] which states are labelled.
        spread: see above.
        chosen: [n] scratch space.
        out: [n] receives the distribution.
    """
    labelled = 0
    for s in range(len(values)):
        out[s] = 0.0
        chosen[labelled] = s
        labelled += 1 if labels[s] else 0
    best = -np.inf
    for i in range(labelled):
        s = chosen[i]
        if values[s] > best:
            for k in range(first[s], first[s + 1]):
                if not labels[predecessor[k]]:
                    best = values[s]
                    break
    total = 0.0
    for i in range(labelled):
        s = chosen[i]
        if abs(values[s] - best) <= TIE:
            for k in range(first[s], first[s + 1]):
                if not labels[predecessor[k]]:
                    spread[predecessor[k]] += count[k]
                    total += count[k]
    if total > 0.0:
        for i in range(labelled):
            s = chosen[i]
            if abs(values[s] - best) <= TIE:
                for k in range(first[s], first[s + 1]):
                    if spread[predecessor[k]] > 0.0:
                        out[predecessor[k]] = spread[predecessor[k]] / total
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
    labels = np.empty(n, np.bool_)
    chosen = np.empty(n, np.int64)
    values, visits, spread = np.empty(n), np.empty(n), np.zeros(n)
    matrix = np.empty((n, n))
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
        learn_set(model_at(tables, row, LEARNED), labels, gamma, impute, labelled_only, behaviour, values, q, policy)
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
        if terms.valued:
            write_values(values, at, episodes)
        if terms.preceded:
            write_predecessors(
                whole_at(tables, row, FIRST_PREDECESSOR),
                whole_at(tables, row, PREDECESSOR),
                reals_at(tables, row, PREDECESSOR_COUNT),
                values,
                labels,
                spread,
                chosen,
                episodes.features[PREDECESSORS, at],
            )
        if terms.occupied:
            if terms.published:
                for s in range(n):
                    if labels[s] or not labelled_only:
                        for action in range(actions):
                            policy[s, action] = 1.0 / actions if policy[s, action] > 0.0 else 0.0
            matrix[:] = 0.0
            visits[:] = reals_at(tables, row, START)
            eliminate_visits(model_at(tables, row, EMPIRICAL), policy, gamma, matrix, visits)
            write_shares(visits, episodes.features[ON_POLICY_VISITATION, at])


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
    _, n, actions, _ = policies.shape
    labelled_only = tables.places[0, LABELLED_ONLY] == 1
    empirical, start = model_at(tables, 0, EMPIRICAL), reals_at(tables, 0, START)
    row = np.empty(n)
    for first in range(0, len(members), VISIT_LANES):
        last = min(first + VISIT_LANES, len(members))
        weights = lanes_of(policies, first, last)
        if published:
            for s in range(n):
                for w in range(last - first):
                    if masks[first + w, s] or not labelled_only:
                        for action in range(actions):
                            weights[0, s, action, w] = 1.0 / actions if weights[0, s, action, w] > 0.0 else 0.0
        visits = np.empty((n, last - first))
        for s in range(n):
            visits[s] = start[s]
        matrix = np.empty((pattern.slot[n - 1, n - 1] + 1, last - first))  # entries are numbered row by row
        eliminate_in_lanes(empirical, pattern, weights[0], tables.reals[0, GAMMA], matrix, visits)
        for w in range(last - first):
            for s in range(n):
                row[s] = visits[s, w]
            write_shares(row, episodes.features[ON_POLICY_VISITATION, members[first + w]])


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
    n = episodes.labelled_at.shape[1]
    members = np.empty(last - first, np.int64)
    only_refit, refitted, count = sort_members(first, last, refit, measure, members)
    gamma, impute, actions = tables.reals[0, GAMMA], tables.reals[0, IMPUTED], tables.places[0, ACTIONS]
    labelled_only = tables.places[0, LABELLED_ONLY] == 1
    learned, world, chain = model_at(tables, 0, LEARNED), model_at(tables, 0, WORLD), chain_at(tables, 0)
    behaviour = reals_at(tables, 0, BEHAVIOUR).reshape((n, actions))
    first_predecessor, predecessor = whole_at(tables, 0, FIRST_PREDECESSOR), whole_at(tables, 0, PREDECESSOR)
    predecessor_count = reals_at(tables, 0, PREDECESSOR_COUNT)
    row, spread, chosen = np.empty(n), np.zeros(n), np.empty(n, np.int64)
    for begin in range(0, count, LANES):
        lanes = min(LANES, count - begin)
        block = members[begin : begin + lanes]
        masks = np.empty((lanes, n), np.bool_)
        for w in range(lanes):
            for s in range(n):
                masks[w, s] = episodes.labelled_at[block[w], s] > 0
        values, q = np.empty((1, n, lanes)), np.empty((1, n, actions, lanes))
        policies = np.empty((1, n, actions, lanes))
        learn_in_lanes(learned, gamma, impute, labelled_only, behaviour, masks, values, q, policies)
        featured = min(max(refitted - begin, 0), lanes)
        for w in range(featured if terms.valued or terms.preceded else 0):
            for s in range(n):
                row[s] = values[0, s, w]
            if terms.valued:
                write_values(row, block[w], episodes)
            if terms.preceded:
                write_predecessors(
                    first_predecessor,
                    predecessor,
                    predecessor_count,
                    row,
                    masks[w],
                    spread,
                    chosen,
                    episodes.features[PREDECESSORS, block[w]],
                )
        if terms.occupied and featured > 0:
            occupy_in_lanes(tables, pattern, policies, masks, terms.published, block[:featured], episodes)
        unmeasured = min(max(only_refit - begin, 0), lanes)
        if unmeasured < lanes:
            some = policies if unmeasured == 0 else lanes_of(policies, unmeasured, lanes)
            returns_in_lanes(tables, world, chain, some, block[unmeasured:], measured)
