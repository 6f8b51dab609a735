"""What label sets are worth under many reward functions at once, with one SIMD lane per reward function.

For a label set L and a reward function R the learner knows R at the states of L only; see `solve` for what it learns
from that. The policy that it learns is then followed in the same model, where it earns R everywhere. All lanes share
the label set, so unlabelled states cost nothing under the adapted rule, and the policy for one label set is a first
guess for the next.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.model import Chain, Model
from selectenv.kernels.tabular.returns import average_over_starts, step_back
from selectenv.kernels.tabular.solve import IMPROVEMENTS, WARM_SWEEPS, eliminate
from selectenv.kernels.tabular.tolerances import SWITCH_GAIN, TIE, fill_ties
from selectenv.kernels.threads import in_chunks
from selectenv.typing import BoolArray, FloatArray, Int32Array

SETS_PER_CHUNK = 8
"""Label sets that are solved one after the other, each from the solution for the one before."""
LANES_PER_CHUNK = 32
"""Reward functions that are solved together if all states are labelled."""
LARGE_SWEEPS = 5000
"""Most sweeps over a large model with cycles that is solved exactly."""
ROUGHLY = 1e-4
"""Change of the values, relative to the largest reward, at which sweeps stop if a solution need not be exact."""


class Terms(NamedTuple):
    """How the learner learns, and how its policies are evaluated."""

    gamma: float
    """Discount of learning."""
    impute: float
    """Reward of unlabelled transitions."""
    minimum: bool
    """Impute the smallest reward of a label set instead; 0 if nothing is labelled."""
    labelled_only: bool
    """The adapted rule: unlabelled states are worth 0 and follow the data."""
    discount: float
    """Discount of returns; below 1 if ``horizon`` is 0 and the model has cycles."""
    horizon: int
    """Steps after which episodes are truncated; 0 for never."""
    sweeps: int
    """Most sweeps over a model with cycles, which then is not solved exactly; 0 for an exact solution."""


@inlined
def choice_in_lanes(
    model: Model, choice: int, known: FloatArray, gamma: float, values: FloatArray, q: FloatArray
) -> None:
    """Write the value of one choice into ``q`` [lanes]; ``known`` [choices, lanes] are the rewards learned from."""
    reward = known[choice]
    for w in range(len(q)):
        q[w] = reward[w]
    for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
        weight = gamma * model.probability[k]
        beyond = values[model.next_state[k]]
        for w in range(len(q)):
            q[w] += weight * beyond[w]


@kernel
def sweep_lanes(
    model: Model,
    known: FloatArray,
    active: BoolArray,
    gamma: float,
    backwards: bool,
    values: FloatArray,
    scratch: FloatArray,
) -> float:
    """Update every state that is learned once, in place; return the largest change."""
    q, best, change = scratch[0], scratch[1], scratch[2]
    lanes = len(q)
    change[:] = 0.0
    n = len(model.order)
    for i in range(n):
        s = model.order[n - 1 - i] if backwards else model.order[i]
        first, last = model.first_choice[s], model.first_choice[s + 1]
        if first == last or not active[s]:
            continue
        best[:] = -np.inf
        for choice in range(first, last):
            choice_in_lanes(model, choice, known, gamma, values, q)
            for w in range(lanes):
                best[w] = q[w] if q[w] > best[w] else best[w]
        value = values[s]
        for w in range(lanes):
            moved = abs(best[w] - value[w])
            change[w] = moved if moved > change[w] else change[w]
            value[w] = best[w]
    largest = 0.0
    for w in range(lanes):
        largest = change[w] if change[w] > largest else largest
    return largest


@kernel
def improve_lanes(
    model: Model,
    known: FloatArray,
    active: BoolArray,
    gamma: float,
    values: FloatArray,
    margins: FloatArray,
    policy: Int32Array,
    scratch: FloatArray,
) -> bool:
    """Switch to choices that gain more than ``margins`` [lanes]; return whether any choice changed."""
    best = scratch[0]
    lanes = len(best)
    switched = False
    for s in range(len(active)):
        first, last = model.first_choice[s], model.first_choice[s + 1]
        if last - first < 2 or not active[s]:
            continue
        current = policy[s]
        for choice in range(first, last):
            choice_in_lanes(model, choice, known, gamma, values, scratch[1 + choice - first])
        for w in range(lanes):
            best[w] = scratch[1 + current[w] - first, w] + margins[w]
        for choice in range(first, last):
            q = scratch[1 + choice - first]
            for w in range(lanes):
                if q[w] > best[w]:
                    best[w] = q[w]
                    current[w] = choice
                    switched = True
    return switched


@kernel
def evaluate_lanes(
    model: Model,
    known: FloatArray,
    active: BoolArray,
    gamma: float,
    policy: Int32Array,
    place: Int32Array,
    matrix: FloatArray,
    values: FloatArray,
) -> None:
    """Solve (I - gamma P_pi) V = r_pi for every lane; states that are not learned have the row V = 0."""
    slot = model.slot
    matrix[:] = 0.0
    for s in range(len(place)):
        row = place[s]
        matrix[slot[row, row]][:] = 1.0
        right = values[s]
        right[:] = 0.0
        if not active[s]:
            continue
        current = policy[s]
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            reward = known[choice]
            for w in range(len(right)):
                right[w] = reward[w] if current[w] == choice else right[w]
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                weight = gamma * model.probability[k]
                entry = matrix[slot[row, place[model.next_state[k]]]]
                for w in range(len(right)):
                    entry[w] -= weight if current[w] == choice else 0.0
    eliminate(model, matrix, values)


@kernel
def solve_lanes(
    model: Model,
    known: FloatArray,
    active: BoolArray,
    gamma: float,
    sweeps: int,
    scales: FloatArray,
    warm: bool,
    values: FloatArray,
    policy: Int32Array,
    place: Int32Array,
    matrix: FloatArray,
    scratch: FloatArray,
) -> None:
    """Write the optimal values [n, lanes] into ``values``.

    Args:
        model: the empirical model.
        known: [choices, lanes] rewards that are learned from.
        active: [n] the states that are learned; others are worth 0.
        gamma: discount.
        sweeps: see `Terms`.
        scales: [lanes] largest reward known, at least 1.
        warm: whether ``policy`` solves a similar problem; used by policy iteration.
        values: receives the values.
        policy: [n, lanes] receives the best choices of small models with cycles.
        place: [n] place of each state in `Model.order`.
        matrix: [entries, lanes] scratch space.
        scratch: [1 + actions, lanes], at least 3 rows, scratch space.
    """
    n = len(place)
    values[:] = 0.0
    if model.acyclic:
        sweep_lanes(model, known, active, gamma, False, values, scratch)
        return
    if len(model.slot) == 0 or sweeps > 0:
        enough = ROUGHLY * scales.max() if sweeps > 0 else 0.1 * TIE * scales.min() * (1.0 - gamma)
        for i in range(sweeps if sweeps > 0 else LARGE_SWEEPS):
            if sweep_lanes(model, known, active, gamma, i % 2 == 1, values, scratch) <= enough:
                break
        return
    done = False
    if warm:
        evaluate_lanes(model, known, active, gamma, policy, place, matrix, values)
    else:
        for s in range(n):
            policy[s][:] = model.first_choice[s]
        for i in range(WARM_SWEEPS):
            if sweep_lanes(model, known, active, gamma, i % 2 == 1, values, scratch) == 0.0:
                done = True  # to the last bit
                break
    margins = np.empty(len(scales))
    for i in range(IMPROVEMENTS):
        for w in range(len(scales)):
            margins[w] = 0.0 if i == 0 and not warm else SWITCH_GAIN * scales[w]
        switched = improve_lanes(model, known, active, gamma, values, margins, policy, scratch)
        if done or (not switched and (i > 0 or warm)):
            return
        evaluate_lanes(model, known, active, gamma, policy, place, matrix, values)


@inlined
def fill_known(
    model: Model, rewards: FloatArray, label: BoolArray, terms: Terms, known: FloatArray, scales: FloatArray
) -> None:
    """Write the rewards that are learned from [choices, lanes], and the largest of each lane, at least 1."""
    lanes = len(scales)
    smallest = np.empty(lanes)
    smallest[:] = np.inf
    if terms.minimum:
        for s in range(len(label)):
            if label[s]:
                for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                    if model.seen[choice]:
                        for w in range(lanes):
                            smallest[w] = min(smallest[w], rewards[choice, w])
    for w in range(lanes):
        if not terms.minimum:
            smallest[w] = terms.impute
        elif smallest[w] == np.inf:
            smallest[w] = 0.0
        scales[w] = max(1.0, abs(smallest[w]))
    for s in range(len(label)):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            row = known[choice]
            if not model.seen[choice]:
                row[:] = 0.0
            elif label[s]:
                for w in range(lanes):
                    row[w] = rewards[choice, w]
                    scales[w] = max(scales[w], abs(row[w]))
            else:
                for w in range(lanes):
                    row[w] = smallest[w]


@kernel
def act_in_lanes(
    model: Model,
    known: FloatArray,
    active: BoolArray,
    gamma: float,
    ties: FloatArray,
    behaviour: FloatArray,
    values: FloatArray,
    share: FloatArray,
    scratch: FloatArray,
) -> None:
    """Write the probability of every choice [choices, lanes]; ties are split uniformly.

    An action that the data never took leads to an unknown state: its probability goes to the actions of the data.
    """
    best, count, unseen = scratch[0], scratch[1], scratch[2]
    lanes = len(best)
    for s in range(len(active)):
        first, last = model.first_choice[s], model.first_choice[s + 1]
        if not active[s]:
            for choice in range(first, last):
                share[choice][:] = behaviour[s, model.action[choice]]
            continue
        best[:] = -np.inf
        count[:] = 0.0
        unseen[:] = 0.0
        for choice in range(first, last):
            q = share[choice]
            choice_in_lanes(model, choice, known, gamma, values, q)
            for w in range(lanes):
                best[w] = q[w] if q[w] > best[w] else best[w]
        for choice in range(first, last):
            q = share[choice]
            for w in range(lanes):
                q[w] = 1.0 if q[w] >= best[w] - ties[w] else 0.0
                count[w] += q[w]
            if not model.seen[choice]:
                for w in range(lanes):
                    unseen[w] += q[w]
                    q[w] = 0.0
        for choice in range(first, last):
            q = share[choice]
            usual = behaviour[s, model.action[choice]]
            for w in range(lanes):
                q[w] = (q[w] + unseen[w] * usual) / count[w]


@kernel
def follow_in_lanes(
    model: Model,
    chain: Chain,
    rewards: FloatArray,
    share: FloatArray,
    start: FloatArray,
    terms: Terms,
    one_pass: bool,
    place: Int32Array,
    matrix: FloatArray,
    weight: FloatArray,
    reward: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Write the return ``out`` [lanes] of policies [choices, lanes] under the rewards [choices, lanes]."""
    n = len(start)
    slot = model.slot
    eliminating = len(slot) > 0 and not one_pass and terms.horizon == 0 and terms.sweeps == 0
    reward[:] = 0.0
    if eliminating:
        matrix[:] = 0.0
    else:
        weight[:] = 0.0
    for s in range(n):
        row = place[s]
        if eliminating:
            matrix[slot[row, row]][:] = 1.0
        expected = reward[s]
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            taken = share[choice]
            paid = rewards[choice]
            for w in range(len(out)):
                expected[w] += taken[w] * paid[w]
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                p = terms.discount * model.probability[k]
                if eliminating:
                    entry = matrix[slot[row, place[model.next_state[k]]]]
                    for w in range(len(out)):
                        entry[w] -= taken[w] * p
                else:
                    entry = weight[chain.place[k]]
                    for w in range(len(out)):
                        entry[w] += taken[w] * p
    if eliminating:
        eliminate(model, matrix, reward)
        average_over_starts(start, reward, out)
        return
    values[:] = 0.0
    if one_pass:
        for i in range(n):
            s = model.order[i]
            step_back(chain, weight, reward, s, values, values[s])
        average_over_starts(start, values, out)
        return
    if terms.horizon > 0:
        now, following = values, np.empty_like(values)
        for _ in range(terms.horizon):
            for s in range(n):
                step_back(chain, weight, reward, s, now, following[s])
            now, following = following, now
        average_over_starts(start, now, out)
        return
    new = np.empty(len(out))
    enough = ROUGHLY * np.abs(reward).max() if terms.sweeps > 0 else 0.1 * TIE * (1.0 - terms.discount)
    for _ in range(2 * terms.sweeps if terms.sweeps > 0 else LARGE_SWEEPS):
        moved = 0.0
        for i in range(n):
            value = values[model.order[i]]
            step_back(chain, weight, reward, model.order[i], values, new)
            for w in range(len(out)):
                moved = max(moved, abs(new[w] - value[w]))
                value[w] = new[w]
        if moved <= enough:
            break
    average_over_starts(start, values, out)


@kernel
def returns_in_lanes(
    model: Model,
    chain: Chain,
    rewards: FloatArray,
    masks: BoolArray,
    behaviour: FloatArray,
    start: FloatArray,
    terms: Terms,
    one_pass: bool,
    out: FloatArray,
) -> None:
    """Write what each label set [sets, n] is worth under each reward function into ``out`` [sets, lanes]."""
    n, lanes = len(start), rewards.shape[1]
    one_pass = one_pass or (model.acyclic and terms.horizon == 0)
    small = len(model.slot) > 0 and terms.sweeps == 0
    matrix = np.empty((model.slot[n - 1, n - 1] + 1 if small and not model.acyclic else 0, lanes))
    weight = np.empty((0 if small and not one_pass and terms.horizon == 0 else len(chain.successor), lanes))
    place = np.empty(n, np.int32)
    for i in range(n):
        place[model.order[i]] = i
    widest = 2
    for s in range(n):
        widest = max(widest, model.first_choice[s + 1] - model.first_choice[s])
    scratch = np.empty((1 + widest, lanes))
    values, reward, followed = np.empty((n, lanes)), np.empty((n, lanes)), np.empty((n, lanes))
    policy = np.zeros((n, lanes), np.int32)
    known, share = np.empty((len(model.action), lanes)), np.empty((len(model.action), lanes))
    scales, ties = np.empty(lanes), np.empty(lanes)
    active = np.ones(n, np.bool_)
    for i in range(len(masks)):
        if terms.labelled_only:
            for s in range(n):
                if masks[i, s] and not active[s]:
                    policy[s][:] = model.first_choice[s]
                active[s] = masks[i, s]
        fill_known(model, rewards, masks[i], terms, known, scales)
        fill_ties(scales, terms.gamma, ties)
        solve_lanes(
            model, known, active, terms.gamma, terms.sweeps, scales, i > 0, values, policy, place, matrix, scratch
        )
        act_in_lanes(model, known, active, terms.gamma, ties, behaviour, values, share, scratch)
        follow_in_lanes(
            model, chain, rewards, share, start, terms, one_pass, place, matrix, weight, reward, followed, out[i]
        )


@kernel
def optimal_in_lanes(model: Model, rewards: FloatArray, gamma: float, sweeps: int, q: FloatArray) -> None:
    """Write the optimal action values [choices, lanes] if all rewards [choices, lanes] are known."""
    n, lanes = len(model.order), rewards.shape[1]
    small = len(model.slot) > 0 and sweeps == 0
    matrix = np.empty((model.slot[n - 1, n - 1] + 1 if small and not model.acyclic else 0, lanes))
    place = np.empty(n, np.int32)
    for i in range(n):
        place[model.order[i]] = i
    widest = 2
    for s in range(n):
        widest = max(widest, model.first_choice[s + 1] - model.first_choice[s])
    scales, values = np.empty(lanes), np.empty((n, lanes))
    active = np.ones(n, np.bool_)
    fill_known(model, rewards, active, Terms(gamma, 0.0, False, False, 1.0, 0, sweeps), q, scales)
    policy, scratch = np.zeros((n, lanes), np.int32), np.empty((1 + widest, lanes))
    solve_lanes(model, q, active, gamma, sweeps, scales, False, values, policy, place, matrix, scratch)
    for s in range(n):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                beyond = values[model.next_state[k]]
                for w in range(lanes):
                    q[choice, w] += gamma * model.probability[k] * beyond[w]


def imagined_returns(
    model: Model,
    chain: Chain,
    rewards: FloatArray,
    masks: BoolArray,
    behaviour: FloatArray,
    start: FloatArray,
    terms: Terms,
    *,
    one_pass: bool,
) -> FloatArray:
    """Return what label sets are worth [sets, rewards] under many reward functions; the same for any thread count.

    Args:
        model: the empirical model.
        chain: its successors.
        rewards: [choices, rewards] expected reward of every choice under every reward function.
        masks: [sets, n] the label sets.
        behaviour: [n, actions] action frequencies of the data.
        start: [n] start distribution.
        terms: rule, discounts and horizon.
        one_pass: whether the model has no cycle and no path longer than the horizon.
    """
    out = np.empty((len(masks), rewards.shape[1]))

    def work(first: int, last: int) -> None:
        returns_in_lanes(model, chain, rewards, masks[first:last], behaviour, start, terms, one_pass, out[first:last])

    in_chunks(work, len(masks), SETS_PER_CHUNK)
    return out


def optimal_values(model: Model, rewards: FloatArray, gamma: float, sweeps: int = 0) -> FloatArray:
    """Return the optimal action values [choices, rewards] under reward functions [choices, rewards].

    See `Terms` for ``sweeps``.
    """
    q = np.empty_like(rewards)
    lanes = rewards.shape[1]

    def work(first: int, last: int) -> None:
        part = np.empty((len(rewards), last - first))
        optimal_in_lanes(model, np.ascontiguousarray(rewards[:, first:last]), gamma, sweeps, part)
        q[:, first:last] = part

    in_chunks(work, lanes, LANES_PER_CHUNK)
    return q
