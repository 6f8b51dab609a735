"""Solve large models component by component: strongly connected states form a component, and components have an order.

A component depends only on the components that its states lead into. Solved in this order, each component needs sweeps
over its own states only. Most components of data from long games are single states, which need one update.
"""

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.tabular.model import Model
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray

SOLVED, UNSOLVED, PAUSED = 0, 1, 2
"""What `solve_components` returns."""


@kernel
def state_value(model: Model, s: int, label: BoolArray, gamma: float, impute: float, values: FloatArray) -> float:
    """Return the value of the best choice at a state; transitions back to the state are solved for."""
    best = -np.inf
    for choice in range(model.first_choice[s], model.first_choice[s + 1]):
        q = 0.0
        if model.seen[choice]:
            q = model.reward[choice] if label[s] else impute
            back = 0.0
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                weight = gamma * model.probability[k]
                if model.next_state[k] == s:
                    back += weight
                else:
                    q += weight * values[model.next_state[k]]
            q /= 1.0 - back
        best = max(best, q)
    return best


@kernel
def solve_components(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    enough: float,
    sweeps: int,
    most_members: int,
    max_updates: int,
    at: IntArray,
    values: FloatArray,
) -> int:
    """Solve the components one after the other, in place.

    ``at`` [2], the current component and the sweeps made over it, carries the position from call to call.

    Returns:
        `SOLVED` after the last component; `UNSOLVED` if the current component has more than ``most_members`` states, or
        if ``sweeps`` sweeps did not bring the changes in it down to ``enough``; `PAUSED` after about ``max_updates``
        updates of states.
    """
    updates = 0
    made = at[1]
    for component in range(at[0], len(model.component) - 1):
        low = model.component[component]
        high = model.component[component + 1]
        if high - low > most_members:
            at[0], at[1] = component, 0
            return UNSOLVED
        for i in range(made, sweeps):
            if updates >= max_updates:
                at[0], at[1] = component, i
                return PAUSED
            updates += high - low
            change = 0.0
            for j in range(low, high):
                s = model.order[low + high - 1 - j] if i % 2 == 1 else model.order[j]
                new = 0.0
                if model.first_choice[s] < model.first_choice[s + 1] and (label[s] or not labelled_only):
                    new = state_value(model, s, label, gamma, impute, values)
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
def greedy_one(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    labelled_only: bool,
    tie: float,
    behaviour: FloatArray,
    values: FloatArray,
    q: FloatArray,
    policy: FloatArray,
) -> None:
    """Write the action values and action probabilities [n, actions] of a single label set; see `solve.greedy`."""
    n, n_actions = policy.shape
    for s in range(n):
        first = model.first_choice[s]
        last = model.first_choice[s + 1]
        q[s] = np.nan
        policy[s] = 1.0 / n_actions if first == last else 0.0
        best, count = -np.inf, 0.0
        for choice in range(first, last):
            value = 0.0
            if (label[s] or not labelled_only) and model.seen[choice]:
                value = model.reward[choice] if label[s] else impute
                for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                    value += gamma * model.probability[k] * values[model.next_state[k]]
            q[s, model.action[choice]] = value
            best = max(best, value)
        for choice in range(first, last):
            if q[s, model.action[choice]] >= best - tie:
                policy[s, model.action[choice]] = 1.0
                count += 1.0
        for choice in range(first, last):
            policy[s, model.action[choice]] *= 1.0 / count
        if labelled_only and not label[s] and first < last:
            policy[s] = behaviour[s]


@inlined
def mass_in(order: Int32Array, low: int, high: int, waiting: FloatArray) -> float:
    """Return the mass that waits in the states order[low] to order[high - 1]."""
    total = 0.0
    for i in range(low, high):
        total += waiting[order[i]]
    return total


@kernel
def push_visits(
    model: Model,
    policy: FloatArray,
    gamma: float,
    left: float,
    most_members: int,
    max_updates: int,
    component: int,
    entered: float,
    waiting: FloatArray,
    visits: FloatArray,
) -> tuple[int, float]:
    """Add up d in ``visits`` [n], with d = start + gamma P_pi^T d, by pushing mass along in the order of components.

    Mass that cycles within a component is pushed until less than the share ``left`` of what entered it remains. A
    component of more than ``most_members`` states is left to the caller.

    Args:
        model: the empirical model.
        policy: [n, actions] weights.
        gamma: discount.
        left: see above.
        most_members: see above.
        max_updates: updates of states after which to return.
        component: where to resume; the last component at the start.
        entered: the mass that entered this component, -1 if no mass was pushed in it so far.
        waiting: [n] mass still to be pushed: the start distribution at the start.
        visits: 0 at the start.

    Returns:
        ``component``, -1 if all are done, and ``entered`` of the next call.
    """
    updates = 0
    while component >= 0:
        low = model.component[component]
        high = model.component[component + 1]
        if high - low > most_members:
            return component, entered
        remaining = mass_in(model.order, low, high, waiting)
        if entered < 0.0:
            entered = remaining
        while remaining > left * entered:
            if updates >= max_updates:
                return component, entered
            updates += high - low
            for i in range(high - 1, low - 1, -1):
                s = model.order[i]
                mass = waiting[s]
                if mass == 0.0:
                    continue
                waiting[s] = 0.0
                back = 0.0
                for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                    share = gamma * policy[s, model.action[choice]]
                    for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                        if model.next_state[k] == s:
                            back += share * model.probability[k]
                mass /= 1.0 - back
                visits[s] += mass
                for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                    share = gamma * mass * policy[s, model.action[choice]]
                    if share > 0.0:
                        for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                            if model.next_state[k] != s:
                                waiting[model.next_state[k]] += share * model.probability[k]
            remaining = mass_in(model.order, low, high, waiting)
        component -= 1
        entered = -1.0
    return component, entered
