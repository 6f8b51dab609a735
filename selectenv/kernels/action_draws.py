"""Actions drawn from action probabilities, with random numbers that are functions of a key and of the step."""

import math

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.rng import INCREMENT, TO_UNIT, mix
from selectenv.typing import FloatArray, IntArray, UintArray


@kernel
def draw_actions(chances: FloatArray, keys: UintArray, step: int) -> IntArray:
    """Draw one action per episode; actions in unknown states are uniformly random.

    Args:
        chances: [episodes, actions] action probabilities; NaN in states that the policy does not know.
        keys: [episodes] random key of each episode; the draw is a function of the key and ``step``.
        step: step of the episodes.
    """
    count, n_actions = chances.shape
    out = np.empty(count, np.int64)
    for i in range(count):
        unit = np.float64(mix(keys[i] + np.uint64(step) * INCREMENT) >> np.uint64(11)) * TO_UNIT
        action = n_actions - 1
        if math.isnan(chances[i, 0]):
            action = min(action, np.int64(unit * n_actions))
        else:
            while action > 0 and chances[i, action] <= 0.0:  # rounding must not choose an action of probability 0
                action -= 1
            below = 0.0
            for a in range(action):
                below += chances[i, a]
                if unit < below:
                    action = a
                    break
        out[i] = action
    return out
