"""Sparse: a random world of any size in which every action leads to one of three random states.

It serves to measure how the cost of a computation grows with the number of states. Every state has four actions. An
action pays a reward that is drawn once, from a standard normal distribution, and leads to one of three states; these
are drawn uniformly from all states, and their probabilities uniformly from the simplex. One state in fifty (2 %) is
terminal: its actions pay like all others and terminate the episode. Episodes start in every state with the same
probability and are truncated after 100 steps. The same ``n_states`` and ``world_seed`` make the same world.
"""

import numpy as np

from selectenv.checks import check_int
from selectenv.domains.tabular.world import TabularWorld, from_outcomes
from selectenv.errors import WorldError
from selectenv.streams import generator

HORIZON = 100
ACTIONS, SUCCESSORS = 4, 3
STATES_PER_TERMINAL = 50
FEWEST, MOST = 2, 1_000_000
"""Smallest and largest number of states."""


def sparse(n_states: int = 1_000, world_seed: int = 0) -> TabularWorld:
    """Return the Sparse world.

    Args:
        n_states: number of states, 2 to 1,000,000.
        world_seed: seed with which the world is drawn.
    """
    n = check_int("n_states", n_states, FEWEST, MOST, WorldError)
    rng = generator(check_int("world_seed", world_seed, 0), "world", "Sparse", n)
    shape = n, ACTIONS, SUCCESSORS
    terminal = np.zeros(n, bool)
    terminal[rng.choice(n, max(1, n // STATES_PER_TERMINAL), replace=False)] = True
    following = rng.integers(n, size=shape)
    probability = rng.dirichlet(np.ones(SUCCESSORS), shape[:2])
    reward = rng.normal(size=shape[:2])
    state, action, outcome = (axis.ravel() for axis in np.indices(shape))
    kept = ~terminal[state] | (outcome == 0)
    state, action, outcome = state[kept], action[kept], outcome[kept]
    return from_outcomes(
        "Sparse",
        state=state,
        action=action,
        probability=np.where(terminal[state], 1.0, probability[state, action, outcome]),
        next_state=following[state, action, outcome],
        reward=reward[state, action],
        terminated=terminal[state],
        start=np.full(n, 1 / n),
        horizon=HORIZON,
    )
