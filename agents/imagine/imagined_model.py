"""The empirical model in which imagined rewards are solved, and what label sets are worth in it."""

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from selectenv.datasets import OfflineDataset
from selectenv.domains.tabular.world import longest_path
from selectenv.kernels.tabular.imagined_terms import Terms
from selectenv.kernels.tabular.model import Model, build_chain
from selectenv.kernels.tabular.reward_lanes import imagined_returns, optimal_values
from selectenv.options import MINIMA
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.view import SelectionView

SHORT_HORIZON = 32
"""Returns are truncated at horizons up to this one; longer ones are replaced by a discount, which is faster."""
FAVOURED = 0.3
"""Actions are favoured if their frequency is this share of the way from the rarest to the most frequent action."""
LARGE = 150
"""Number of states of the largest world that is not large."""
SWEEPS, COSTLY = 40, 8
"""Sweeps over models whose exact solution is costly: more than so many operations per possible transition."""


class ImaginedModel:
    """What the data say about the world: everything about it that an imagined reward function does not change.

    A *pair* is a state and an action that the data took there. Rewards have the shape [particles, pairs].
    """

    def __init__(self, view: SelectionView) -> None:
        """Prepare the models that inference and planning use."""
        self.data: OfflineDataset = view.dataset
        data = self.data
        self.model = data.empirical_model(exclude_unseen=True)
        """The model without actions that the data never took: its choices are the pairs."""
        self.state: IntArray = np.repeat(np.arange(data.n_states), np.diff(self.model.first_choice))
        """[pairs]"""
        self.action = self.model.action
        self.frequency: FloatArray = data.action_frequencies[self.state, self.action]
        """[pairs] how often the data took the action in the state."""
        self.gamma = view.gamma
        self._learned = data.empirical_model(exclude_unseen=view.unseen == "exclude")
        self._place = np.flatnonzero(self._learned.seen)
        self._chain = build_chain(self._learned)
        steps = horizon_of(data)
        self._sweeps = SWEEPS if elimination_cost(self.model) > COSTLY * len(self.model.next_state) else 0
        paths_end = self._learned.acyclic and longest_path(self._learned) <= steps
        self.discount = 1.0 if paths_end or steps <= SHORT_HORIZON else 1.0 - 1.0 / steps
        by_name = isinstance(view.impute, str)
        self._terms = Terms(
            view.gamma,
            0.0 if by_name else float(view.impute),
            by_name and view.impute in MINIMA,
            view.rule == "adapted",
            self.discount,
            0 if paths_end or steps > SHORT_HORIZON else steps,
            self._sweeps,
        )
        self._one_pass = paths_end
        self.is_large = data.n_states > LARGE
        """Whether plans must do with fewer particles."""

    @cached_property
    def termination(self) -> FloatArray:
        """[pairs] share of the transitions of a pair that terminate the episode."""
        data = self.data
        key = data.state.astype(np.int64) * data.n_actions + data.action
        ends = np.bincount(key[data.terminated], minlength=data.n_states * data.n_actions)
        taken = np.bincount(key, minlength=data.n_states * data.n_actions)
        pair = self.state * data.n_actions + self.action
        return np.asarray(ends[pair] / taken[pair])

    @cached_property
    def entered(self) -> csr_array:
        """[n, pairs] probability that a pair enters a state."""
        model = self.model
        pair = np.repeat(np.arange(len(self.state)), np.diff(model.first_outcome))
        return csr_array((model.probability, (model.next_state, pair)), shape=(self.data.n_states, len(self.state)))

    @cached_property
    def random_visits(self) -> FloatArray:
        """[pairs] expected visits of the policy that takes all actions of the data equally often."""
        return self._visits(1.0 / np.diff(self.model.first_choice)[self.state])

    @cached_property
    def data_visits(self) -> FloatArray:
        """[pairs] expected visits of the policy that takes actions as often as the data."""
        return self._visits(self.frequency)

    @cached_property
    def favoured_visits(self) -> FloatArray:
        """[pairs] expected visits of the policy that takes only the actions that the data favour."""
        first, row = self._rows
        lowest, highest = (extreme.reduceat(self.frequency, first)[row] for extreme in (np.minimum, np.maximum))
        excess = np.maximum(self.frequency - lowest - FAVOURED * (highest - lowest), 0.0) + 1e-9
        return self._visits(excess / np.add.reduceat(excess, first)[row])

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray]:
        """Where the pairs of each visited state begin, and the number of the visited state of each pair."""
        first = self.model.first_choice[:-1][self.data.labelable].astype(np.int64)
        return first, np.asarray(np.cumsum(self.data.labelable)[self.state] - 1, np.int64)

    def _visits(self, policy: FloatArray) -> FloatArray:
        """Return the expected discounted visits [pairs] of a policy [pairs] from the data's start states."""
        n, pairs = self.data.n_states, len(self.state)
        by_state = csr_array((policy, (self.state, np.arange(pairs))), shape=(n, pairs))
        moves = (by_state @ self.entered.T).toarray()
        discount = min(self.discount, 0.999)
        mass = np.linalg.solve(np.eye(n) - discount * moves.T, self.data.start)
        return np.asarray(mass[self.state] * policy)

    def optimal(self, rewards: FloatArray) -> FloatArray:
        """Return the optimal action values [particles, pairs]."""
        return optimal_values(self.model, np.ascontiguousarray(rewards.T), self.gamma, self._sweeps).T

    def worth(self, rewards: FloatArray, masks: BoolArray) -> FloatArray:
        """Return the return [sets, particles] of what is learned from each label set [sets, n]."""
        learned = np.zeros((len(self._learned.action), len(rewards)))
        learned[self._place] = rewards.T
        data = self.data
        return imagined_returns(
            self._learned,
            self._chain,
            learned,
            np.ascontiguousarray(masks),
            data.action_frequencies,
            data.start,
            self._terms,
            one_pass=self._one_pass,
        )


def horizon_of(data: OfflineDataset) -> int:
    """Return the horizon that the data suggest: the longest episode if some were truncated, else twice as long."""
    first = np.flatnonzero(data.episode_start)
    lengths = np.diff(np.append(first, len(data)))
    return int(lengths.max()) * (1 if data.truncated.any() else 2)


def elimination_cost(model: Model) -> float:
    """Return the number of operations of one elimination; 0 without cycles, infinite for large models."""
    if model.acyclic:
        return 0.0
    if not len(model.slot):
        return np.inf
    touched = model.slot >= 0
    return float((np.tril(touched, -1).sum(axis=0) * np.triu(touched, 1).sum(axis=1)).sum())
