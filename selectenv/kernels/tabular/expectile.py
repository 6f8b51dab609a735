"""Learn from one label set with the expectile of the data's actions in place of the maximum, in a model of any size.

The value of a state is the expectile of its action values, weighted by how often the data took each action:

    V(s) minimises  sum_a f(a | s) |tau - 1[u < 0]| u^2,   u = Q(s, a) - V(s),
    Q(s, a) = r_L(s, a) + gamma sum_s' P(s' | s, a) V(s').

This is what implicit Q-learning approaches. With tau = 0.5 it is the value of the policy that collected the data, and
with tau near 1 the maximum over the actions that the data took. Like the maximum it is a contraction, and V(s) is a
weighted mean of Q(s, .) whose weights depend only on which action values lie above V(s). Sweeps therefore solve it
component by component, and if they take too long, policy iteration over these weights finishes the component.
"""

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.components import PAUSED, SOLVED, UNSOLVED
from selectenv.kernels.tabular.model import Model
from selectenv.kernels.tabular.single import SWEEPS
from selectenv.kernels.tabular.solve import IMPROVEMENTS, greedy
from selectenv.kernels.tabular.tolerances import fill_scales, fill_ties
from selectenv.kernels.threads import SLICE_COST, check_stopped
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray


@kernel
def expectile_of(points: FloatArray, weights: FloatArray, tau: float) -> float:
    """Return the expectile of weighted points: the mean, with weights times tau above it and 1 - tau elsewhere."""
    value = 0.0
    for turn in range(2 * len(points) + 2):  # each turn but the first corrects which points lie above
        top = bottom = 0.0
        for i in range(len(points)):
            weight = weights[i]
            if turn > 0:
                weight *= tau if points[i] > value else 1.0 - tau
            top += weight * points[i]
            bottom += weight
        before, value = value, top / bottom
        if turn > 0 and value == before:
            break
    return value


@inlined
def choice_line(
    model: Model, s: int, choice: int, label: BoolArray, gamma: float, impute: float, values: FloatArray
) -> tuple[float, float]:
    """Return the value of a choice without transitions back to its state, and the discounted share of these."""
    q, back = model.reward[choice] if label[s] else impute, 0.0
    for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
        weight = gamma * model.probability[k]
        if model.next_state[k] == s:
            back += weight
        else:
            q += weight * values[model.next_state[k]]
    return q, back


@kernel
def solve_expectiles(
    model: Model,
    behaviour: FloatArray,
    tau: float,
    label: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    enough: float,
    sweeps: int,
    max_updates: int,
    at: IntArray,
    values: FloatArray,
) -> int:
    """Solve the components one after the other, in place; see `solve_components`."""
    points, weights = np.empty(behaviour.shape[1]), np.empty(behaviour.shape[1])
    updates, made = 0, at[1]
    for component in range(at[0], len(model.component) - 1):
        low, high = model.component[component], model.component[component + 1]
        for i in range(made, sweeps):
            if updates >= max_updates:
                at[0], at[1] = component, i
                return PAUSED
            updates += high - low
            change = 0.0
            for j in range(low, high):
                s = model.order[low + high - 1 - j] if i % 2 == 1 else model.order[j]
                count = 0
                for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                    if model.seen[choice] and (label[s] or not labelled_only):
                        q, back = choice_line(model, s, choice, label, gamma, impute, values)
                        points[count] = q / (1.0 - back)  # the value of the state above which this choice lies
                        weights[count] = (1.0 - back) * behaviour[s, model.action[choice]]
                        count += 1
                new = expectile_of(points[:count], weights[:count], tau) if count else 0.0
                change = max(change, abs(new - values[s]))
                values[s] = new
            if high == low + 1 or change <= enough:
                break
        else:
            at[0], at[1] = component, sweeps
            return UNSOLVED
        made = 0
    return SOLVED


@kernel
def choice_weights(
    model: Model,
    behaviour: FloatArray,
    tau: float,
    members: Int32Array,
    label: BoolArray,
    gamma: float,
    impute: float,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Write the weights of the members' choices in the value of their state, one member after the other."""
    points, weights = np.empty(behaviour.shape[1]), np.empty(behaviour.shape[1])
    at = 0
    for s in members:
        first, count = model.first_choice[s], model.first_choice[s + 1] - model.first_choice[s]
        for i in range(count):
            q, back = choice_line(model, s, first + i, label, gamma, impute, values)
            points[i] = q + back * values[s]
            weights[i] = behaviour[s, model.action[first + i]] if model.seen[first + i] else 0.0
        value = expectile_of(points[:count], weights[:count], tau)
        for i in range(count):
            weights[i] *= tau if points[i] > value else 1.0 - tau
        out[at : at + count] = weights[:count] / weights[:count].sum()
        at += count


def learn_expectile(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    behaviour: FloatArray,
    tau: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Learn from one label set [n]; return values [n], action values and action probabilities [n, actions].

    The policy is greedy, as with the maximum. See `learn_blocks` for the other arguments.
    """
    n, actions = behaviour.shape
    values, q, policy = np.zeros((n, 1)), np.empty((n, actions, 1)), np.empty((n, actions, 1))
    labels, scale, tie = label[:, None].astype(np.float64), np.empty(1), np.empty(1)
    fill_scales(model, labels, impute, scale)
    fill_ties(scale, gamma, tie)
    enough = 0.1 * float(tie[0]) * (1.0 - gamma)  # a change of c leaves an error of at most c gamma / (1 - gamma)
    rule, at, result = (label, gamma, impute), np.zeros(2, np.int64), UNSOLVED
    slice_updates = max(1, SLICE_COST // (1 + 4 * len(model.next_state) // n))
    while result != SOLVED:
        check_stopped()
        result = solve_expectiles(
            model, behaviour, tau, *rule, labelled_only, enough, SWEEPS, slice_updates, at, values[:, 0]
        )
        if result == UNSOLVED:
            members = model.order[model.component[at[0]] : model.component[at[0] + 1]]
            if labelled_only:
                members = members[label[members]]
            _iterate_weights(model, behaviour, tau, members, *rule, enough, values[:, 0])
            at[:] = at[0] + 1, 0
    greedy(model, labels, gamma, impute, labelled_only, tie, behaviour, values, q, policy, np.empty((3, 1)))
    return values[:, 0], q[:, :, 0], policy[:, :, 0]


def _iterate_weights(
    model: Model,
    behaviour: FloatArray,
    tau: float,
    members: Int32Array,
    label: BoolArray,
    gamma: float,
    impute: float,
    enough: float,
    values: FloatArray,
) -> None:
    """Solve for the values of a component's states with the weights of their choices, until the values stay."""
    owner, choice = _within(model.first_choice, members)
    members = members[np.bincount(owner, model.seen[choice], len(members)) > 0]
    owner, choice = _within(model.first_choice, members)
    outcome_choice, outcome = _within(model.first_outcome, choice)
    place = np.full(model.n_states, -1)
    place[members] = np.arange(len(members))
    row, following = owner[outcome_choice], model.next_state[outcome]
    inside, size = place[following] >= 0, len(members)
    reward = np.where(label[members[owner]], model.reward[choice], impute)
    weights = np.empty(len(choice))
    for _ in range(IMPROVEMENTS):
        check_stopped()
        choice_weights(model, behaviour, tau, members, label, gamma, impute, values, weights)
        entry = gamma * weights[outcome_choice] * model.probability[outcome]
        chain = csc_array((entry[inside], (row[inside], place[following[inside]])), shape=(size, size))
        right = np.bincount(owner, weights * reward, size)
        right += np.bincount(row, np.where(inside, 0.0, entry * values[following]), size)
        found = splu((eye_array(size) - chain).tocsc()).solve(right)
        change = np.abs(found - values[members]).max()
        values[members] = found
        if change <= enough:
            break


def _within(first: Int32Array, items: IntArray | Int32Array) -> tuple[IntArray, IntArray]:
    """Return what belongs to the items by ranges ``first``: the place of each owner in ``items``, and the number."""
    count = np.diff(first)[items]
    owner = np.repeat(np.arange(len(items)), count)
    return owner, np.repeat(first[items] - np.cumsum(count) + count, count) + np.arange(len(owner))
