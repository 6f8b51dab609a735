"""Solve a model for many label sets at once, with one SIMD lane per label set.

For labels L the optimal values satisfy, for every state s,

    V(s) = max_a  r_L(s, a) + gamma sum_s' P(s' | s, a) V(s'),    r_L = r where s is in L, else the imputed reward.

The adapted rule learns at labelled states only: V(s) = 0 outside L. A model without cycles is solved by one pass over
its states, successors first. Otherwise Gauss-Seidel sweeps come first; they reach the fixed point to the last bit if
rewards stop after finitely many steps. Policy iteration finishes the rest: each policy is evaluated by eliminating
I - gamma P_pi, which needs no pivoting because its rows are diagonally dominant, with the fill-in known in advance.
"""

from collections.abc import Iterable

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.model import Model
from selectenv.kernels.tabular.tolerances import SWITCH_GAIN, fill_scales, fill_ties
from selectenv.kernels.threads import slices
from selectenv.typing import BoolArray, FloatArray, Int32Array

LANES = 128
"""Most label sets that are solved together: the fastest of 16 to 128, where the cost of short loops has vanished."""
WARM_SWEEPS = 16
"""Sweeps before policy iteration takes over."""
IMPROVEMENTS = 1000
"""Maximum number of improvements of policy iteration; only rounding, with gamma close to 1, can reach it."""


@inlined
def choice_values(
    model: Model, choice: int, label: FloatArray, gamma: float, impute: float, values: FloatArray, q: FloatArray
) -> None:
    """Write the value of one choice into ``q`` [lanes]."""
    if model.seen[choice]:
        reward = model.reward[choice]
        for w in range(len(q)):
            q[w] = reward * label[w] + impute * (1.0 - label[w])
        for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
            weight = gamma * model.probability[k]
            beyond = values[model.next_state[k]]
            for w in range(len(q)):
                q[w] += weight * beyond[w]
    else:
        for w in range(len(q)):
            q[w] = 0.0


@kernel
def sweep(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    backwards: bool,
    values: FloatArray,
    scratch: FloatArray,
) -> float:
    """Update every state once, in place; return the largest change."""
    q = scratch[0]
    best = scratch[1]
    change = scratch[2]
    for w in range(len(q)):
        change[w] = 0.0
    n = len(model.order)
    for i in range(n):
        s = model.order[n - 1 - i] if backwards else model.order[i]
        first = model.first_choice[s]
        last = model.first_choice[s + 1]
        if first == last:
            continue
        label = labels[s]
        for w in range(len(q)):
            best[w] = -np.inf
        for choice in range(first, last):
            choice_values(model, choice, label, gamma, impute, values, q)
            for w in range(len(q)):
                best[w] = q[w] if q[w] > best[w] else best[w]
        value = values[s]
        for w in range(len(q)):
            new = best[w] * label[w] if labelled_only else best[w]
            moved = abs(new - value[w])
            change[w] = moved if moved > change[w] else change[w]
            value[w] = new
    largest = 0.0
    for w in range(len(q)):
        largest = change[w] if change[w] > largest else largest
    return largest


@kernel
def improve(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    values: FloatArray,
    margins: FloatArray,
    policy: Int32Array,
    scratch: FloatArray,
) -> bool:
    """Switch to choices that gain more than ``margins`` [lanes]; return whether any choice changed."""
    q = scratch[0]
    best = scratch[1]
    switched = False
    for s in range(len(model.first_choice) - 1):
        first = model.first_choice[s]
        label = labels[s]
        current = policy[s]
        for w in range(len(q)):
            best[w] = -np.inf
        for turn in range(2):  # the first turn values the current choices, the second compares all with them
            for choice in range(first, model.first_choice[s + 1]):
                choice_values(model, choice, label, gamma, impute, values, q)
                if turn == 0:
                    for w in range(len(q)):
                        best[w] = q[w] + margins[w] if current[w] == choice else best[w]
                else:
                    for w in range(len(q)):
                        if q[w] > best[w]:
                            best[w] = q[w]
                            current[w] = choice
                            switched = True
    return switched


@kernel
def eliminate(model: Model, matrix: FloatArray, values: FloatArray) -> None:
    """Replace the right-hand sides ``values`` [n, lanes] by the solutions; ``matrix`` [entries, lanes] is used up.

    Rows are addressed by number: an array per row would cost more than the arithmetic.
    """
    n, lanes = values.shape
    slot, order = model.slot, model.order
    for k in range(n):  # eliminate column k below the diagonal
        pivot, right = slot[k, k], order[k]
        for w in range(lanes):
            matrix[pivot, w] = 1.0 / matrix[pivot, w]
        for i in range(k + 1, n):
            factor, row = slot[i, k], order[i]
            if factor < 0:
                continue
            for w in range(lanes):
                matrix[factor, w] *= matrix[pivot, w]
            for w in range(lanes):
                values[row, w] -= matrix[factor, w] * values[right, w]
            for j in range(k + 1, n):
                upper, entry = slot[k, j], slot[i, j]
                if upper >= 0:
                    for w in range(lanes):
                        matrix[entry, w] -= matrix[factor, w] * matrix[upper, w]
    for i in range(n):  # substitute backwards
        k = n - 1 - i
        pivot, row = slot[k, k], order[k]
        for j in range(k + 1, n):
            upper, known = slot[k, j], order[j]
            if upper >= 0:
                for w in range(lanes):
                    values[row, w] -= matrix[upper, w] * values[known, w]
        for w in range(lanes):
            values[row, w] *= matrix[pivot, w]


@kernel
def evaluate(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    policy: Int32Array,
    place: Int32Array,
    matrix: FloatArray,
    values: FloatArray,
) -> None:
    """Solve (I - gamma P_pi) V = r_pi for every lane; if ``labelled_only``, unlabelled states have the row V = 0."""
    n = len(place)
    slot = model.slot
    matrix[:] = 0.0
    for s in range(n):
        row = place[s]
        matrix[slot[row, row]][:] = 1.0
        right = values[s]
        right[:] = 0.0
        label = labels[s]
        current = policy[s]
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            if not model.seen[choice]:
                continue
            reward = model.reward[choice]
            for w in range(len(right)):
                taken = 1.0 if current[w] == choice else 0.0
                taken = taken * label[w] if labelled_only else taken
                right[w] += taken * (reward * label[w] + impute * (1.0 - label[w]))
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                weight = gamma * model.probability[k]
                entry = matrix[slot[row, place[model.next_state[k]]]]
                for w in range(len(right)):
                    taken = 1.0 if current[w] == choice else 0.0
                    taken = taken * label[w] if labelled_only else taken
                    entry[w] -= taken * weight
    eliminate(model, matrix, values)


@kernel
def solve(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    scales: FloatArray,
    values: FloatArray,
    policy: Int32Array,
    place: Int32Array,
    matrix: FloatArray,
    scratch: FloatArray,
) -> None:
    """Write the optimal values [n, lanes] for ``labels`` (1.0 or 0.0, [n, lanes]) into ``values``.

    ``scales`` [lanes] are those of `fill_scales`.
    """
    values[:] = 0.0
    for i in range(WARM_SWEEPS):
        if sweep(model, labels, gamma, impute, labelled_only, i % 2 == 1, values, scratch) == 0.0:
            return
    for s in range(len(place)):
        policy[s] = model.first_choice[s]
    margins = scratch[2]
    for i in range(IMPROVEMENTS):
        for w in range(len(scales)):
            margins[w] = 0.0 if i == 0 else SWITCH_GAIN * scales[w]
        if not improve(model, labels, gamma, impute, values, margins, policy, scratch) and i > 0:
            break
        evaluate(model, labels, gamma, impute, labelled_only, policy, place, matrix, values)


@inlined
def act_greedily(
    model: Model,
    s: int,
    label: FloatArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    ties: FloatArray,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policy: FloatArray,
    best: FloatArray,
    count: FloatArray,
) -> None:
    """Write a state's action values and probabilities [actions, lanes] and its value ``best`` [lanes]."""
    first = model.first_choice[s]
    last = model.first_choice[s + 1]
    n_actions, lanes = policy.shape
    unknown = 1.0 / n_actions if first == last else 0.0
    for action in range(n_actions):
        action_q = q[action]
        share = policy[action]
        for w in range(lanes):
            action_q[w] = np.nan
            share[w] = unknown
    if first == last:
        for w in range(lanes):
            best[w] = 0.0
    else:
        for w in range(lanes):
            best[w] = -np.inf
            count[w] = 0.0
        for choice in range(first, last):
            action_q = q[model.action[choice]]
            choice_values(model, choice, label, gamma, impute, values, action_q)
            for w in range(lanes):
                best[w] = action_q[w] if action_q[w] > best[w] else best[w]
                action_q[w] = action_q[w] * label[w] if labelled_only else action_q[w]
        for w in range(lanes):
            best[w] = best[w] * label[w] if labelled_only else best[w]
        for choice in range(first, last):
            action_q = q[model.action[choice]]
            share = policy[model.action[choice]]
            for w in range(lanes):
                share[w] = 1.0 if action_q[w] >= best[w] - ties[w] else 0.0
                count[w] += share[w]
        for w in range(lanes):
            count[w] = 1.0 / count[w]
        for action in range(n_actions):
            share = policy[action]
            for w in range(lanes):
                share[w] *= count[w]
                if labelled_only:
                    share[w] = share[w] * label[w] + behaviour[action] * (1.0 - label[w])


@kernel
def greedy(
    model: Model,
    labels: FloatArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    ties: FloatArray,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policy: FloatArray,
    scratch: FloatArray,
) -> None:
    """Write action values and action probabilities [n, actions, lanes]; ties are split uniformly.

    If ``labelled_only``, states without a label have action values of 0 and follow ``behaviour``.
    """
    for s in range(len(policy)):
        act_greedily(
            model,
            s,
            labels[s],
            gamma,
            impute,
            labelled_only,
            ties,
            behaviour[s],
            values,
            q[s],
            policy[s],
            scratch[0],
            scratch[1],
        )


@inlined
def fill_labels(masks: BoolArray, first: int, labels: FloatArray) -> None:
    """Write the label sets from row ``first`` on into the lanes of ``labels`` [n, lanes]; the last set is repeated."""
    n, lanes = labels.shape
    for w in range(lanes):
        row = first + w if first + w < len(masks) else len(masks) - 1
        for s in range(n):
            labels[s, w] = 1.0 if masks[row, s] else 0.0


@kernel
def learn_acyclic(
    model: Model,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    masks: BoolArray,
    values: FloatArray,
    q: FloatArray,
    policies: FloatArray,
) -> None:
    """Learn in a model without cycles: each state once, successors first; see `learn_blocks` for the arguments."""
    blocks, n, _, lanes = policies.shape
    labels = np.empty((n, lanes))
    scratch = np.empty((4, lanes))
    best = scratch[0]
    ties = scratch[2]
    for block in range(blocks):
        fill_labels(masks, block * lanes, labels)
        fill_scales(model, labels, impute, scratch[3])
        fill_ties(scratch[3], gamma, ties)
        block_values = values[block if len(values) > 1 else 0]
        block_q = q[block if len(q) > 1 else 0]
        policy = policies[block]
        for i in range(n):
            s = model.order[i]
            act_greedily(
                model,
                s,
                labels[s],
                gamma,
                impute,
                labelled_only,
                ties,
                behaviour[s],
                block_values,
                block_q[s],
                policy[s],
                best,
                scratch[1],
            )
            value = block_values[s]
            for w in range(lanes):
                value[w] = best[w]


@kernel
def learn_cyclic(
    model: Model,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    masks: BoolArray,
    values: FloatArray,
    q: FloatArray,
    policies: FloatArray,
) -> None:
    """Learn in a model of at most `ELIMINATION_LIMIT` states; see `learn_blocks` for the arguments."""
    blocks, n, _, lanes = policies.shape
    labels = np.empty((n, lanes))
    scratch = np.empty((3, lanes))
    choices = np.empty((n, lanes), np.int32)
    matrix = np.empty((model.slot[n - 1, n - 1] + 1, lanes))  # entries are numbered row by row
    place = np.empty(n, np.int32)
    for i in range(n):
        place[model.order[i]] = i
    scales = np.empty(lanes)
    ties = np.empty(lanes)
    for block in range(blocks):
        fill_labels(masks, block * lanes, labels)
        fill_scales(model, labels, impute, scales)
        fill_ties(scales, gamma, ties)
        block_values = values[block if len(values) > 1 else 0]
        block_q = q[block if len(q) > 1 else 0]
        solve(model, labels, gamma, impute, labelled_only, scales, block_values, choices, place, matrix, scratch)
        greedy(
            model,
            labels,
            gamma,
            impute,
            labelled_only,
            ties,
            behaviour,
            block_values,
            block_q,
            policies[block],
            scratch,
        )


def learn_blocks(
    model: Model,
    masks: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policies: FloatArray,
) -> None:
    """Learn from every row of ``masks`` [sets, n], in a model without cycles or of at most `ELIMINATION_LIMIT` states.

    Args:
        model: the empirical model.
        masks: which states are labelled.
        gamma: discount.
        impute: reward of transitions out of unlabelled states.
        labelled_only: the adapted rule: value unlabelled states at 0 and follow ``behaviour`` there.
        behaviour: [n, actions] action frequencies of the data.
        values: [1 or blocks, n, lanes] receives the values; a single block is scratch space that all blocks share.
        q: [1 or blocks, n, actions, lanes] receives the action values; likewise.
        policies: [blocks, n, actions, lanes] receives the action probabilities.
    """
    learn = learn_acyclic if model.acyclic else learn_cyclic
    for part in _parts(model, masks, values, q, policies):
        learn(model, gamma, impute, labelled_only, behaviour, *part)


def _parts(
    model: Model, masks: BoolArray, values: FloatArray, q: FloatArray, policies: FloatArray
) -> Iterable[tuple[BoolArray, FloatArray, FloatArray, FloatArray]]:
    """Return the arrays of `learn_blocks`, divided into slices of blocks."""
    blocks, _, _, lanes = policies.shape
    if blocks == 1:
        return ((masks, values, q, policies),)
    cost = (1 if model.acyclic else 50) * (policies[0].size + lanes * len(model.next_state))
    return (
        (
            masks[first * lanes : last * lanes],
            values[first:last] if len(values) > 1 else values,
            q[first:last] if len(q) > 1 else q,
            policies[first:last],
        )
        for first, last in slices(blocks, cost)
    )
