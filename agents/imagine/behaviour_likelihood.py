"""How plausible a reward function makes the actions that the data took.

The data are taken to mix near-optimal actions (a share kappa that nobody states) with random ones:

    P(a | s) = kappa softmax_a(Q(s, a) / tau_s) + (1 - kappa) / |A|,

where tau_s is a small share of what wrong actions cost: the harmonic mean of best minus other values, which a single
disastrous action does not change much.

kappa is estimated for every reward function by matching moments. The log likelihood is counted relative to random
actions, as if every state had been visited at most a few times: the model of the behaviour is never quite right.
"""

from functools import cached_property

import numpy as np

from agents.imagine.imagined_model import ImaginedModel
from selectenv.typing import FloatArray, IntArray

SOFTNESS, FLOOR = 0.05, 0.01
"""tau_s: share of what a wrong action usually costs in the state, and of the mean of that over all states."""
SHARES = (0.0, 0.95)
"""Smallest and largest kappa."""
LAPSES = 0.2
"""Share of the states in which all actions may be random: no expert is perfect."""
MEANINGLESS = -50.0
"""Log likelihood of reward functions under which all policies earn the same."""


class Behaviour:
    """The actions of the data as evidence about the rewards."""

    def __init__(self, world: ImaginedModel, observations: float, bonus: float) -> None:
        """Prepare the evidence.

        Args:
            world: the empirical model.
            observations: number of observations that a state counts for at most.
            bonus: weight of what favoured actions earn more than random ones, relative to what both earn.
        """
        self.world, self.bonus = world, bonus
        data = world.data
        visits = data.visits[data.labelable].astype(np.float64)
        self._first = world.model.first_choice[:-1][data.labelable]
        """Where the pairs of each visited state begin."""
        self._row = np.cumsum(data.labelable)[world.state] - 1
        self._weight = (observations * visits / np.maximum(visits + observations, 1e-300))[self._row] * world.frequency
        self._random, self._difference = world.random_visits, world.favoured_visits - world.random_visits

    def log_likelihood(self, rewards: FloatArray) -> FloatArray:
        """Return the log likelihood [particles] of the behaviour under rewards [particles, pairs]."""
        q = self.world.optimal(rewards).T
        first, row, actions = self._first, self._row, self.world.data.n_actions
        worse = np.maximum.reduceat(q, first)[row] - q
        span = worse.max(axis=0)
        wrong = worse > 1e-9 * span
        inverse = np.add.reduceat(np.divide(1.0, worse, out=np.zeros_like(worse), where=wrong), first)
        usual_cost = np.add.reduceat(wrong.astype(np.float64), first) / np.maximum(inverse, 1e-300)
        tau = SOFTNESS * usual_cost + FLOOR * usual_cost.mean(axis=0) + 1e-300
        soft = np.exp(-worse / tau[row])
        soft /= np.add.reduceat(soft, first)[row]
        weight = self._weight[:, None]
        total = max(float(weight.sum()), 1e-300)  # 0 if behaviour is ignored
        followed = (weight * soft).sum(axis=0) / total
        certain = (np.add.reduceat(soft * soft, first)[row] * weight).sum(axis=0) / total
        share = np.clip((followed - 1 / actions) / np.maximum(certain - 1 / actions, 1e-9), *SHARES)
        by_state = np.add.reduceat(weight * np.log1p(share * (actions * soft - 1)), first)
        found = np.log(LAPSES + (1 - LAPSES) * np.exp(by_state)).sum(axis=0)
        gained = rewards @ self._difference
        usual = rewards @ self._random
        scale = np.abs(usual) + np.abs(usual + gained) + 1e-12
        found += self.bonus * gained / scale
        return np.where(span > 1e-9, found, MEANINGLESS)

    def importance(self, rewards: FloatArray, weights: FloatArray) -> FloatArray:
        """Return how much each state [n] seems to matter: in what it pays, and in what better actions there gain.

        Args:
            rewards: [particles, pairs] reward functions.
            weights: [particles] their probabilities.
        """
        world = self.world
        q = world.optimal(rewards).T
        best = np.maximum.reduceat(q, self._first)
        lost = (best[self._row] - q) * world.data_visits[:, None]
        paid = np.abs(rewards.T) * world.data_visits[:, None]
        found = np.zeros(world.data.n_states)
        for part in (lost, paid):
            by_state = np.add.reduceat(part, self._first)
            found[world.state[self._first]] += (by_state / (by_state.max(axis=0) + 1e-300)) @ weights
        return found

    @cached_property
    def _state_likelihoods(self) -> FloatArray:
        """[shares, pairs] log likelihood of a state's actions if only this action is optimal there, per share."""
        actions, kappas = self.world.data.n_actions, np.linspace(0.05, 0.95, 10)[:, None]
        right, wrong = np.log1p(kappas * (actions - 1)), np.log1p(-kappas)
        total = np.add.reduceat(self._weight, self._first)[self._row]
        return np.asarray(self._weight * right + (total - self._weight) * wrong)

    @cached_property
    def _explained(self) -> tuple[float, FloatArray]:
        """The evidence that some policy explains the behaviour, and the probability [pairs] of each action in it."""
        every = self._state_likelihoods
        count = np.diff(np.append(self._first, len(self._row)))
        top = np.maximum.reduceat(every, self._first, axis=1)
        weight = np.exp(every - top[:, self._row])
        total = np.add.reduceat(weight, self._first, axis=1)
        evidence = (top + np.log(total / count)).sum(axis=1)
        best = int(evidence.argmax())
        return max(float(evidence[best]), 0.0), weight[best] / total[best][self._row]

    @property
    def evidence_of_any_policy(self) -> float:
        """Log likelihood of the behaviour, averaged over all deterministic policies."""
        return self._explained[0]

    def draw_policies(self, count: int, rng: np.random.Generator) -> IntArray:
        """Return policies [count, n] that explain the behaviour, as the number of the action among those of a state."""
        chance = self._explained[1]
        wanted = np.zeros((count, self.world.data.n_states), np.int64)
        keys = np.log(chance + 1e-300) + rng.gumbel(size=(count, len(chance)))
        top = keys == np.maximum.reduceat(keys, self._first, axis=1)[:, self._row]
        row, pair = np.nonzero(top)
        wanted[row, self.world.state[pair]] = pair - self._first[self._row[pair]]
        return wanted
