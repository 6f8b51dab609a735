"""Per-state features of the data's behaviour: what its actions favour, and where the learned policy differs from it.

Data that contain expert actions say where rewards are before any label does: their most frequent actions lead there.
The *favoured policy* takes only the actions that the data take clearly more often than their rarest action.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from selectenv.datasets import OfflineDataset
from selectenv.kernels.tabular.distances import steps_from
from selectenv.kernels.tabular.followed_policy import in_pairs, label_effects, policy_values
from selectenv.kernels.tabular.single import learn_one, occupancy
from selectenv.typing import BoolArray, FloatArray
from selectenv.view import SelectionView

STATIC = (
    "decided",
    "favoured rank",
    "favoured visitation",
    "sought",
    "sought termination",
    "termination share",
    "towards sought termination",
    "depth",
)
"""Names of the features that depend on the data alone."""
DYNAMIC = (
    "agreement",
    "missing visits",
    "missing share",
    "estimated gain",
    "estimated gain rank",
    "next value",
    "favoured next value",
    "labelled next",
    "labelled before",
    "planned visitation",
    "planned loss",
    "planned loss rank",
)
"""Names of the features that depend on the labels so far."""
FAVOURED = 0.3
"""Actions are favoured if their frequency is this share of the way from the rarest to the most frequent action."""
DISCOUNT, NEAR_DISCOUNT = 0.99, 0.9
"""Discount of visits, and of terminations to come."""
SWEEPS = 50
"""Most sweeps in which a policy is evaluated."""
FEW_VISITS = 10
"""Visits at which half of the evidence about the actions of a state counts."""
_BEHAVIOURS: WeakKeyDictionary[OfflineDataset, "Behaviour"] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What the data favour."""

    favoured: FloatArray
    """[n, actions] the favoured policy."""
    visits: FloatArray
    """[n] its discounted share of visits."""
    moves: csr_array
    """[n, n] probability that it leads from one state to another."""
    columns: dict[str, FloatArray]
    """Feature name -> values [n]."""


def behaviour_of(dataset: OfflineDataset) -> Behaviour:
    """Return what a dataset favours; it is computed once per dataset."""
    found = _BEHAVIOURS.get(dataset)
    if found is None:
        found = _BEHAVIOURS[dataset] = _behaviour(dataset)
    return found


def _behaviour(dataset: OfflineDataset) -> Behaviour:
    frequency, seen, actions = dataset.action_frequencies, dataset.labelable, dataset.n_actions
    lowest, highest = frequency.min(axis=1, keepdims=True), frequency.max(axis=1, keepdims=True)
    excess = np.maximum(frequency - lowest - FAVOURED * (highest - lowest), 0.0)
    excess = np.where(highest > lowest, excess, 1.0)
    favoured = excess / excess.sum(axis=1, keepdims=True)
    taken = frequency > 0
    anyhow = taken / np.maximum(taken.sum(axis=1, keepdims=True), 1)
    model = dataset.empirical_model()
    mine, random = (occupancy(model, p, dataset.start, DISCOUNT) for p in (favoured, anyhow))
    count = max(int(seen.sum()), 1)
    ends = _endings(dataset)
    ended, randomly = (_shares(visits * (p * ends).sum(axis=1)) for visits, p in ((mine, favoured), (random, anyhow)))
    sought = (ended - randomly) / np.maximum(ended + randomly, 1e-12)
    evidence = dataset.visits / (dataset.visits + FEW_VISITS)
    decided = (highest[:, 0] - 1 / actions) / max(1 - 1 / actions, 1e-12) * evidence
    goals = np.maximum(sought, 0.0)[:, None] * ends
    steps = steps_from(*dataset.successors, dataset.start > 0)
    steps = np.where(steps < dataset.n_states, steps, 0)
    columns = {
        "decided": decided,
        "favoured rank": ranks(mine, seen),
        "favoured visitation": logarithm(mine * count),
        "sought": np.clip(np.log10((mine * count + 0.01) / (random * count + 0.01)) / 2, -1, 1),
        "sought termination": sought,
        "termination share": _shares(dataset.visits * dataset.termination),
        "towards sought termination": policy_values(
            model, in_pairs(model, seen, goals, 0.0), favoured, NEAR_DISCOUNT, SWEEPS
        ),
        "depth": steps / max(int(steps.max()), 1),
    }
    return Behaviour(favoured, mine, moves_under(dataset, favoured), columns)


def moves_under(dataset: OfflineDataset, policy: FloatArray) -> csr_array:
    """Return the transition matrix [n, n] of a policy in the empirical model."""
    model, n = dataset.empirical_model(), dataset.n_states
    state = np.repeat(np.arange(n), np.diff(model.first_choice))
    choice = np.repeat(np.arange(len(state)), np.diff(model.first_outcome))
    share = policy[state, model.action][choice] * model.probability
    return csr_array((share, (state[choice], model.next_state)), shape=(n, n))


def _endings(dataset: OfflineDataset) -> FloatArray:
    """Return the share of the transitions of each pair [n, actions] that terminate the episode."""
    key, size = (
        dataset.state.astype(np.int64) * dataset.n_actions + dataset.action,
        dataset.n_states * dataset.n_actions,
    )
    ended = np.bincount(key[dataset.terminated], minlength=size)
    return np.asarray((ended / np.maximum(np.bincount(key, minlength=size), 1)).reshape(-1, dataset.n_actions))


def _shares(values: FloatArray) -> FloatArray:
    return np.asarray(values / max(float(values.sum()), 1e-12))


class LabelEffects:
    """The features of an episode that depend on its labels: what the learner makes of them, and what it would change.

    The learner is fitted to the rewards revealed so far; an unknown reward is guessed to be the median of those. The
    plan is the policy that would be learned from all labels if the guess were right, and the planned loss what it would
    earn less if it followed the data in a state.
    """

    def __init__(self, view: SelectionView) -> None:
        """Follow an episode."""
        self._view, self._data = view, view.dataset
        self._model = view.dataset.empirical_model(exclude_unseen=view.unseen == "exclude")
        self._rewards = np.zeros((view.dataset.n_states, view.dataset.n_actions))
        self._known = np.zeros(view.dataset.n_states, bool)

    def columns(self, labelled: BoolArray, visits: FloatArray) -> dict[str, FloatArray]:
        """Return the features.

        Args:
            labelled: [n] which states are labelled.
            visits: [n] visits of the learned policy.
        """
        self._catch_up(labelled)
        view, data, known, model = self._view, self._data, self._known, self._model
        behaviour, n = behaviour_of(data), data.n_states
        revealed = self._rewards[known][data.action_frequencies[known] > 0]
        guess = float(np.median(revealed)) if len(revealed) else 0.0
        smallest = float(revealed.min()) if len(revealed) else 0.0
        impute = smallest if isinstance(view.impute, str) else float(view.impute)
        fitted = model._replace(reward=in_pairs(model, known, self._rewards, 0.0))
        frequencies, adapted = data.action_frequencies, view.rule == "adapted"
        learned, _, policy = learn_one(fitted, known, view.gamma, impute, adapted, frequencies)
        reward = in_pairs(model, known, self._rewards, guess)
        values = policy_values(model, reward, policy, view.gamma, SWEEPS)
        gain, reached, favoured_reached, agreement = (np.empty(n) for _ in range(4))
        missing = np.zeros(n)
        label_effects(
            model,
            reward,
            frequencies,
            behaviour.favoured,
            behaviour.visits,
            policy,
            learned,
            values,
            view.gamma,
            gain,
            reached,
            favoured_reached,
            agreement,
            missing,
        )
        gain = np.where(known, 0.0, gain * visits) if adapted else np.zeros(n)
        best, q, followed = learn_one(
            model._replace(reward=reward), data.labelable, view.gamma, impute, False, frequencies
        )
        planned = occupancy(model, followed, data.start, view.gamma)
        followed_value = (frequencies * np.where(frequencies > 0, q, 0.0)).sum(axis=1)  # excluded actions: -inf
        loss = np.where(data.labelable, planned * (best - followed_value), 0.0)
        count, largest = max(int(data.labelable.sum()), 1), max(float(np.abs(learned).max()), 1e-12)
        visits_before = behaviour.moves.T @ (behaviour.visits * known)
        return {
            "agreement": agreement,
            "missing visits": logarithm(missing * count),
            "missing share": np.clip(missing / np.maximum(behaviour.visits, 1e-9), 0, 1),
            "estimated gain": gain / max(float(np.abs(gain).max()), 1e-12),
            "estimated gain rank": ranks(settled(gain), data.labelable & ~known),
            "next value": np.clip(reached / largest, -1, 1),
            "favoured next value": np.clip(favoured_reached / largest, -1, 1),
            "labelled next": behaviour.moves @ known.astype(np.float64),
            "labelled before": np.clip(visits_before / np.maximum(behaviour.visits, 1e-9), 0, 1),
            "planned visitation": logarithm(planned * count),
            "planned loss": np.clip(loss / max(float(np.abs(loss).max()), 1e-12), -1, 1),
            "planned loss rank": ranks(settled(loss), data.labelable & ~known),
        }

    def _catch_up(self, labelled: BoolArray) -> None:
        """Read the rewards of states that were labelled since the last call."""
        if (self._known & ~labelled).any():
            self._known[:] = False
        new = np.flatnonzero(labelled & ~self._known)
        if not len(new):
            return
        rewards, data = self._view.rewards, self._data
        rows = data.transitions_of(new)
        rows = rows[~np.isnan(rewards[rows])]
        key, size = data.state[rows].astype(np.int64) * data.n_actions + data.action[rows], self._rewards.size
        count = np.bincount(key, minlength=size).reshape(self._rewards.shape)
        total = np.bincount(key, rewards[rows], size).reshape(self._rewards.shape)
        told = np.unique(data.state[rows])
        self._rewards[told] = total[told] / np.maximum(count[told], 1)
        self._known[told] = True


def ranks(values: FloatArray, among: BoolArray) -> FloatArray:
    """Return the share of the other values that are smaller, ties counting half; 0 where ``among`` is False."""
    out = np.zeros(len(values))
    mine = values[among]
    order = np.sort(mine)
    below, upto = np.searchsorted(order, mine, "left"), np.searchsorted(order, mine, "right")
    out[among] = (below + upto - 1) / 2 / max(len(mine) - 1, 1)
    return out


def settled(values: FloatArray) -> FloatArray:
    """Return values relative to the largest one, without the last digits: equal ones stay equal in ranks."""
    return np.round(values / max(float(np.abs(values).max()), 1e-300), 9)


def logarithm(relative: FloatArray) -> FloatArray:
    """Return log10 of ``relative``, divided by 3 and clipped to [-1, 1]."""
    return np.clip(np.log10(np.maximum(relative, 1e-3)) / 3, -1, 1)
