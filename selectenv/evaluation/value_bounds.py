"""Bounds on values when some rewards are unknown but lie in a known range.

In the empirical model M of the data, restricted to the actions that the data took, let r_low and r_high be the known
rewards, completed by the lower and by the upper end of the range. Values are monotone in the rewards, so

    V_M(pi, r_low) <= V_M(pi, r) <= V_M(pi, r_high)   and   max_pi' V_M(pi', r) <= max_pi' V_M(pi', r_high)

for every r within the range. The regret of pi, max_pi' V_M(pi', r) - V_M(pi, r), is therefore at most
max_pi' V_M(pi', r_high) - V_M(pi, r_low). All four values are computed by dynamic programming, without sampling. They
say nothing about the difference between M and the world that the data come from.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from selectenv.checks import LARGEST_REWARD, as_reals, check_real, is_real, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import DatasetError, OptionError, PolicyError
from selectenv.kernels.tabular.model import Model, build_model
from selectenv.kernels.tabular.single import learn_one
from selectenv.kernels.tabular.tolerances import TIE
from selectenv.typing import FloatArray


@dataclass(frozen=True)
class ValueBounds:
    """What a policy can earn at least and at most, and the most that any policy can earn, in the model of the data."""

    least: float
    """Value of the policy if every unknown reward is as low as possible."""
    most: float
    """Value of the policy if every unknown reward is as high as possible."""
    upper: float
    """Value of the best policy if every unknown reward is as high as possible."""
    tolerance: float = 0.0
    """Differences up to this size are rounding: learners treat actions that close as equally good."""

    def __repr__(self) -> str:
        """Return the bounds, the regret included."""
        return f"ValueBounds(least={self.least}, most={self.most}, upper={self.upper}, regret={self.regret})"

    @property
    def regret(self) -> float:
        """How much the policy can earn less than the best one, at most; 0 if the difference is rounding."""
        difference = self.upper - self.least
        return difference if difference > self.tolerance else 0.0


def value_bounds(
    dataset: OfflineDataset, rewards: FloatArray, policy: FloatArray, gamma: float, low: Any, high: Any
) -> ValueBounds:
    """Return bounds on the discounted value at the data's start distribution.

    Args:
        dataset: the data.
        rewards: [size] NaN where unknown.
        policy: [cells, actions] action probabilities in the states of tables, which are the n states of the data unless
            these are episodes. What they give to actions that the data never took in a state is redistributed over
            those that it took, in proportion; if nothing is left, in proportion to the data.
        gamma: discount factor, below 1.
        low: smallest possible unknown reward, or one per state [n].
        high: largest possible unknown reward, or one per state [n].

    Raises:
        OptionError: the range is empty or not finite, or a known reward lies outside of it.
        DatasetError: there are not as many rewards as transitions.
        PolicyError: the policy has another shape, or probabilities that are negative or not finite.
    """
    gamma, cells = check_real("gamma", gamma, "[0, 1)"), dataset.cells
    rewards, policy = as_reals("rewards", rewards, DatasetError), as_reals("policy", policy, PolicyError)
    if rewards.shape != (len(dataset),):
        raise DatasetError(f"rewards must have shape ({len(dataset)},), one per transition, not {rewards.shape}")
    shape = cells.n_states, cells.n_actions
    if policy.shape != shape or not ((policy >= 0) & (policy < np.inf)).all():
        raise PolicyError(f"policy must be probabilities of shape {shape}")
    known = ~np.isnan(rewards)
    lows, highs = (np.broadcast_to(end, dataset.n_states)[dataset.state] for end in range_ends(dataset, low, high))
    wrong = np.flatnonzero(known & ((rewards < lows) | (rewards > highs)))
    if len(wrong):
        at = wrong[0]
        raise OptionError(
            f"the range of rewards in state {shown(dataset.ids[dataset.state[at]])} is {lows[at]:g} to {highs[at]:g}, "
            f"and the known reward {rewards[at]:g} is not in it"
        )
    worst, best = (cells.empirical_model(np.where(known, rewards, ends), exclude_unseen=True) for ends in (lows, highs))
    chain, share = _chain(cells, worst, policy)
    earned = [np.bincount(_choice_states(worst), share * model.reward, cells.n_states) for model in (worst, best)]
    least, most = (_value(cells, chain._replace(reward=reward[_acting(chain)]), gamma) for reward in earned)
    scale = max(1.0, float(np.abs(lows).max()), float(np.abs(highs).max()))
    tie = max(TIE, 1e-13 * scale / (1.0 - gamma + 1e-6))
    return ValueBounds(least, most, _value(cells, best, gamma), 2.0 * tie / (1.0 - gamma))


def range_ends(dataset: OfflineDataset, low: Any, high: Any) -> tuple[FloatArray, FloatArray]:
    """Return the ends of a range of rewards as arrays [1], or [n] where they are given per state.

    Raises:
        OptionError: an end is neither a finite number nor n of them, or the range is empty.
    """
    lows, highs = _range_end("low", low, dataset.n_states), _range_end("high", high, dataset.n_states)
    empty = np.flatnonzero(lows > highs)
    if len(empty):
        everywhere = len(lows) == len(highs) == 1
        where = "" if everywhere else f" in state {shown(dataset.ids[empty[0]])}"
        least, most = (np.broadcast_to(end, dataset.n_states)[empty[0]] for end in (lows, highs))
        raise OptionError(f"low must not exceed high; they are {least:g} and {most:g}{where}")
    return lows, highs


def _range_end(name: str, end: Any, n: int) -> FloatArray:
    found = as_reals(name, [end] if is_real(end) or isinstance(end, float | np.floating) else end, OptionError)
    if found.shape not in ((1,), (n,)) or not (np.abs(found) <= LARGEST_REWARD).all():
        raise OptionError(f"{name} must be a finite number, or {n} of them, one per state, not {shown(end)}")
    return found


def _choice_states(model: Model) -> Any:
    return np.repeat(np.arange(model.n_states), np.diff(model.first_choice))


def _acting(model: Model) -> Any:
    """Return the states [k] that have choices."""
    return np.flatnonzero(np.diff(model.first_choice))


def _chain(dataset: OfflineDataset, model: Model, policy: FloatArray) -> tuple[Model, FloatArray]:
    """Return the model in which every state has one choice, to follow the policy, and each choice's probability."""
    n, choice_state = model.n_states, _choice_states(model)
    share = policy[choice_state, model.action]
    mass = np.bincount(choice_state, share, n)[choice_state]
    behaviour = dataset.action_frequencies[choice_state, model.action]
    share = np.where(mass > 0, share / np.where(mass > 0, mass, 1.0), behaviour)
    outcome_choice = np.repeat(np.arange(len(choice_state)), np.diff(model.first_outcome))
    ends = 1.0 - np.bincount(outcome_choice, model.probability, len(choice_state))
    state = np.concatenate([choice_state[outcome_choice], choice_state])
    following = np.concatenate([model.next_state, np.full(len(choice_state), -1)])
    weight = np.concatenate([share[outcome_choice] * model.probability, share * np.maximum(ends, 0.0)])
    kept = weight > 0
    zeros = np.zeros(int(kept.sum()))
    chain = build_model(
        n, 1, state[kept], zeros.astype(np.int64), following[kept], weight[kept], zeros, exclude_unseen=True
    )
    return chain, share


def _value(dataset: OfflineDataset, model: Model, gamma: float) -> float:
    """Return the value of the best policy of a model at the data's start distribution."""
    n = model.n_states
    actions = int(model.action.max()) + 1
    everywhere = np.ones(n, bool)
    values, _, _ = learn_one(model, everywhere, gamma, 0.0, False, np.zeros((n, actions)))
    return float(dataset.start @ values)
