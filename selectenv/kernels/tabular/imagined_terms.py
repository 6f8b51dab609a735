"""How imagined rewards are learned from, and what policies earn under them, with one SIMD lane per reward function."""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Chain, Model
from selectenv.kernels.tabular.returns import average_over_starts, step_back
from selectenv.kernels.tabular.solve import eliminate
from selectenv.kernels.tabular.tolerances import TIE
from selectenv.typing import FloatArray, Int32Array

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
