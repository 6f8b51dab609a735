"""Policy iteration and visits in components that are too large for elimination.

The cost is near-linear in the number of outcomes. A policy is evaluated with `solve_system`, only as precisely as the
improvement before it deserves. Improvements are made in place, so that one pass carries a reward through many states.
"""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.linear_systems import WORK, System, solve_system
from selectenv.kernels.tabular.model import Model
from selectenv.kernels.tabular.solve import IMPROVEMENTS
from selectenv.kernels.tabular.tolerances import SWITCH_GAIN
from selectenv.kernels.threads import check_stopped
from selectenv.typing import BoolArray, FloatArray, Int32Array

EVALUATION_SHARE = 0.001
"""Error that the evaluation of a policy may have, as a share of the largest gain of the improvement before it."""
ROUNDING = 1e-14
"""Smallest gain for which a choice is changed, relative to the largest value."""


@kernel
def improve_choices(
    model: Model,
    members: Int32Array,
    label: BoolArray,
    gamma: float,
    impute: float,
    margin: float,
    backwards: bool,
    values: FloatArray,
    choices: Int32Array,
) -> float:
    """Switch ``choices`` [n] of the members to better ones and update their ``values`` [n], one state after the other.

    Returns:
        The largest gain, which exceeds ``margin``, or 0 if no choice was switched.
    """
    largest_gain = 0.0
    m = len(members)
    for i in range(m):
        s = members[m - 1 - i] if backwards else members[i]
        current = choices[s]
        best, best_choice, own = -np.inf, current, 0.0
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            q = 0.0
            if model.seen[choice]:
                q = model.reward[choice] if label[s] else impute
                for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                    q += gamma * model.probability[k] * values[model.next_state[k]]
            if choice == current:
                own = q
            if q > best:
                best, best_choice = q, choice
        if best > own + margin:
            choices[s] = best_choice
            largest_gain = max(largest_gain, best - own)
            own = best
        values[s] = own
    return largest_gain


@kernel
def fill_value_system(
    model: Model,
    members: Int32Array,
    place: Int32Array,
    label: BoolArray,
    gamma: float,
    impute: float,
    choices: Int32Array,
    values: FloatArray,
    system: System,
    right: FloatArray,
    x: FloatArray,
) -> None:
    """Write the equations of the members' values under ``choices``; the values of all other states are given.

    Transitions back to the same state are solved for. ``x`` receives the present values.
    """
    at = 0
    for i in range(len(members)):
        s = members[i]
        choice = choices[s]
        system.first[i] = at
        known, back = 0.0, 0.0
        if model.seen[choice]:
            known = model.reward[choice] if label[s] else impute
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                weight = gamma * model.probability[k]
                following = model.next_state[k]
                if following == s:
                    back += weight
                elif place[following] >= 0:
                    system.column[at] = place[following]
                    system.weight[at] = weight
                    at += 1
                else:
                    known += weight * values[following]
        for k in range(system.first[i], at):
            system.weight[k] /= 1.0 - back
        right[i] = known / (1.0 - back)
        x[i] = values[s]
    system.first[len(members)] = at


def _places(n: int, members: Int32Array) -> Int32Array:
    """Return the place of each state [n] among the members, -1 for the others."""
    place = np.full(n, -1, np.int32)
    place[members] = np.arange(len(members))
    return place


def iterate_policies(
    model: Model,
    members: Int32Array,
    label: BoolArray,
    gamma: float,
    impute: float,
    scale: float,
    values: FloatArray,
    choices: Int32Array,
) -> None:
    """Find the optimal values of a component's states, which lead to solved components only, in place.

    Args:
        model: the empirical model.
        members: the states of the component that are to be valued; each has a choice.
        label: [n] which states are labelled.
        gamma: discount.
        impute: reward of unlabelled states.
        scale: see `fill_scales`.
        values: [n] a first guess for the members, and the values of all other states.
        choices: [n] a first guess for the members.
    """
    m = len(members)
    place = _places(model.n_states, members)
    room = min(m * int(np.diff(model.first_outcome).max(initial=0)), len(model.next_state))
    system = System(np.empty(m + 1, np.int32), np.empty(room, np.int32), np.empty(room))
    right, x, work = np.empty(m), np.empty(m), np.empty((WORK, m))
    error, precise = 0.0, False
    for i in range(IMPROVEMENTS):
        check_stopped()
        size = max(scale, float(np.abs(values[members]).max(initial=0.0)))
        margin = max(ROUNDING * size, 2 * error)  # a smaller gain may be a loss, and policies could cycle
        gain = improve_choices(model, members, label, gamma, impute, margin, i % 2 == 1, values, choices)
        if precise and gain == 0.0:
            break
        finished, precise = precise, gain <= max(SWITCH_GAIN * scale, 10 * ROUNDING * size)
        error = 0.0 if precise else EVALUATION_SHARE * gain
        fill_value_system(model, members, place, label, gamma, impute, choices, values, system, right, x)
        solve_system(system, right, x, work, error * (1.0 - gamma))
        values[members] = x
        if finished and precise:  # choices are switched for the sake of rounding only
            break


@kernel
def fill_visit_system(
    model: Model,
    members: Int32Array,
    place: Int32Array,
    policy: FloatArray,
    gamma: float,
    waiting: FloatArray,
    system: System,
    right: FloatArray,
) -> None:
    """Write the equations of the members' visits under ``policy`` [n, actions], given the mass ``waiting`` [n].

    A visit adds to the visits of the states that follow, so that this is the transposed matrix of `fill_value_system`.
    """
    m = len(members)
    back = np.zeros(m)
    system.first[:] = 0
    for turn in range(2):  # the first turn counts the entries of each row, the second one writes them
        for i in range(m):
            s = members[i]
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                share = gamma * policy[s, model.action[choice]]
                if share == 0.0:
                    continue
                for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                    row = place[model.next_state[k]]
                    if row < 0:
                        continue
                    if turn == 0:
                        if row == i:
                            back[i] += share * model.probability[k]
                        else:
                            system.first[row] += 1
                    elif row != i:
                        system.first[row] -= 1
                        system.column[system.first[row]] = i
                        system.weight[system.first[row]] = share * model.probability[k] / (1.0 - back[row])
        if turn == 0:  # the ends of the ranges, which the second turn moves to the starts
            for i in range(1, m + 1):
                system.first[i] += system.first[i - 1]
    for i in range(m):
        right[i] = waiting[members[i]] / (1.0 - back[i])


@kernel
def push_out(
    model: Model,
    members: Int32Array,
    place: Int32Array,
    policy: FloatArray,
    gamma: float,
    waiting: FloatArray,
    visits: FloatArray,
) -> None:
    """Move the mass of the members' ``visits`` [n] on to states outside the component, where it is ``waiting`` [n]."""
    for i in range(len(members)):
        s = members[i]
        waiting[s] = 0.0
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            share = gamma * visits[s] * policy[s, model.action[choice]]
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                if place[model.next_state[k]] < 0:
                    waiting[model.next_state[k]] += share * model.probability[k]


def solve_visits(
    model: Model, members: Int32Array, policy: FloatArray, gamma: float, waiting: FloatArray, visits: FloatArray
) -> None:
    """Write d = waiting + gamma P_pi^T d of a component's states into ``visits`` [n] and push the mass on.

    Args:
        model: the empirical model.
        members: the states of the component.
        policy: [n, actions] weights.
        gamma: discount.
        waiting: [n] mass that entered; the members' is used up, and other states receive what leaves the component.
        visits: receives the visits.
    """
    m = len(members)
    place = _places(model.n_states, members)
    room = len(model.next_state)
    system = System(np.empty(m + 1, np.int32), np.empty(room, np.int32), np.empty(room))
    right = np.empty(m)
    fill_visit_system(model, members, place, policy, gamma, waiting, system, right)
    x = right.copy()
    solve_system(system, right, x, np.empty((WORK, m)))
    visits[members] = np.maximum(x, 0.0)  # rounding may leave a state without visits slightly below 0
    push_out(model, members, place, policy, gamma, waiting, visits)
