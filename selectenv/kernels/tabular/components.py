"""Large models piece by piece: states that lead back to each other form a component, and components have an order.

A component depends only on those its states lead into. Solved one after the other, each has to be swept by itself
alone: most components of data from long games are single states, which take one look.
"""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Model
from selectenv.typing import BoolArray, FloatArray, Int32Array


@kernel
def state_value(
    model: Model, s: int, label: BoolArray, gamma: float, impute: float, values: FloatArray, margin: float, kept: int
) -> tuple[float, int]:
    """Return the value of the best choice at a state and the choice; transitions back to the state are solved for.

    ``kept`` stays the choice unless another gains more than ``margin``; -1 keeps none.
    """
    best, best_choice = -np.inf, kept
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
        if choice == kept:
            q += margin
        if q > best:
            best = q
            best_choice = choice
    return best, best_choice


@kernel
def solve_components(
    model: Model,
    label: BoolArray,
    gamma: float,
    impute: float,
    truncated: bool,
    enough: float,
    sweeps: int,
    first: int,
    values: FloatArray,
) -> int:
    """Solve component after component, from number ``first`` on, in place.

    Returns:
        The number of a component that ``sweeps`` sweeps did not bring to changes of at most ``enough``, or -1.
    """
    for component in range(first, len(model.component) - 1):
        low = model.component[component]
        high = model.component[component + 1]
        for i in range(sweeps):
            change = 0.0
            for j in range(low, high):
                s = model.order[low + high - 1 - j] if i % 2 == 1 else model.order[j]
                new = 0.0
                if model.first_choice[s] < model.first_choice[s + 1] and (label[s] or not truncated):
                    new = state_value(model, s, label, gamma, impute, values, 0.0, -1)[0]
                change = max(change, abs(new - values[s]))
                values[s] = new
            if high == low + 1 or change <= enough:
                break
        else:
            return component
    return -1


@kernel
def best_choices(
    model: Model,
    members: Int32Array,
    label: BoolArray,
    gamma: float,
    impute: float,
    values: FloatArray,
    margin: float,
    choices: Int32Array,
) -> bool:
    """Switch ``choices`` [members] to better ones where they gain more than ``margin``; return whether any was."""
    switched = False
    for i in range(len(members)):
        choice = state_value(model, members[i], label, gamma, impute, values, margin, choices[i])[1]
        switched |= choice != choices[i]
        choices[i] = choice
    return switched


@kernel
def pushed_visits(model: Model, policy: FloatArray, start: FloatArray, gamma: float, left: float) -> FloatArray:
    """Return d with d = start + gamma P_pi^T d, by pushing mass on in the order of the components.

    What goes round in a component is pushed until less than ``left`` of what came into it is still under way.
    """
    waiting = start.copy()
    visits = np.zeros(len(start))
    for component in range(len(model.component) - 2, -1, -1):
        low = model.component[component]
        high = model.component[component + 1]
        came = 0.0
        for i in range(low, high):
            came += waiting[model.order[i]]
        under_way = came
        while under_way > left * came:
            under_way = 0.0
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
            for i in range(low, high):
                under_way += waiting[model.order[i]]
    return visits
