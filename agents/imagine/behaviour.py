"""How plausible a reward function makes the actions that the data took.

The data are taken to mix near-optimal actions (a share kappa that nobody states) with random ones:

    P(a | s) = kappa softmax_a(Q(s, a) / tau_s) + (1 - kappa) / |A|,    tau_s a small share of the range of Q(s, .).

kappa is estimated for every reward function by matching moments. The log likelihood is counted relative to random
actions, as if every state had been visited at most a few times: the model of the behaviour is never quite right.
"""

import numpy as np

from agents.imagine.imagined_model import ImaginedModel
from selectenv.typing import FloatArray

SOFTNESS, FLOOR = 0.05, 0.002
"""tau_s: share of the range of the state's action values, and of the range of all of them."""
SHARES = (0.0, 0.95)
"""Smallest and largest kappa."""
MEANINGLESS = -50.0
"""Log likelihood of reward functions under which all policies earn the same."""


class Behaviour:
    """The actions of the data as evidence about the rewards."""

    def __init__(self, world: ImaginedModel, observations: float, bonus: float) -> None:
        """Prepare the evidence.

        Args:
            world: the empirical model.
            observations: number of observations that a state counts for at most.
            bonus: weight of what the data's policy earns more than a random one, relative to what both earn.
        """
        self.world, self.bonus = world, bonus
        data = world.data
        visits = data.visits[data.labelable].astype(np.float64)
        self._first = world.model.first_choice[:-1][data.labelable]
        """Where the pairs of each visited state begin."""
        self._row = np.cumsum(data.labelable)[world.state] - 1
        self._weight = (observations * visits / (visits + observations))[self._row] * world.frequency
        self._random, self._difference = world.random_visits, world.data_visits - world.random_visits

    def log_likelihood(self, rewards: FloatArray) -> FloatArray:
        """Return the log likelihood [particles] of the behaviour under rewards [particles, pairs]."""
        q = self.world.optimal(rewards).T
        first, row, actions = self._first, self._row, self.world.data.n_actions
        best = np.maximum.reduceat(q, first)
        spread = best - np.minimum.reduceat(q, first)
        span = spread.max(axis=0)
        tau = SOFTNESS * spread + FLOOR * span + 1e-300
        soft = np.exp((q - best[row]) / tau[row])
        soft /= np.add.reduceat(soft, first)[row]
        weight = self._weight[:, None]
        total = weight.sum()
        followed = (weight * soft).sum(axis=0) / total
        certain = (np.add.reduceat(soft * soft, first)[row] * weight).sum(axis=0) / total
        share = np.clip((followed - 1 / actions) / np.maximum(certain - 1 / actions, 1e-9), *SHARES)
        found = (weight * np.log1p(share * (actions * soft - 1))).sum(axis=0)
        gained = rewards @ self._difference
        usual = rewards @ self._random
        scale = np.abs(usual) + np.abs(usual + gained) + 1e-12
        found += self.bonus * gained / scale
        return np.where(span > 1e-9, found, MEANINGLESS)
