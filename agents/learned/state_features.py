"""Per-state input features of learned selectors, scaled to be comparable across worlds.

All of them come from the observation and from the transitions of the data; no reward is used beyond those that labels
have revealed. Counts become logarithms or ranks, distances become 1 / (1 + steps), and the number of states is itself a
feature.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from agents.base import Info, Observation, feature, of_length, open_mask
from agents.learned.behaviour_features import DYNAMIC, STATIC, LabelEffects, behaviour_of, logarithm, ranks
from selectenv.datasets import OfflineDataset
from selectenv.kernels.tabular.distances import steps_from
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray

NAMES = (
    "seen",
    "open",
    "labelled",
    "visitation rank",
    "visitation",
    "on-policy rank",
    "on-policy visitation",
    "value",
    "predecessors",
    "termination",
    "nearness to termination",
    "nearness to start",
    "in-degree",
    "out-degree",
    "self-loops",
    "nearness to best value",
    "adapted",
    "budget left",
    "labels left",
    "states",
    "reward seen",
)
"""Names of the default features of a state, in order; the last five describe the whole episode."""
ALL_NAMES = (*NAMES, *STATIC, *DYNAMIC, "reward", "reward scale")
"""Names of all features that a selector can use; it stores those it was trained with."""
OBSERVED = ("labelled", "on_policy_visitation", "value", "predecessors", "termination", "budget")
"""The parts of an observation that the default features come from."""
LARGE = 64
"""Larger worlds are encoded as having this many states, the largest number in training: networks do not extrapolate."""
TERMINATION_FEATURES = ("termination", "nearness to termination", "out-degree")
"""Features left out in an ablation: all that reveal where episodes terminate (a terminal state has no successor)."""
SOUGHT_FEATURES = ("sought termination", "termination share", "towards sought termination")
"""Features of the behaviour that reveal it too."""
_STRUCTURES: WeakKeyDictionary[OfflineDataset, dict[str, FloatArray]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Structure:
    """The features that depend on the transitions of a dataset alone."""

    dataset: OfflineDataset
    columns: dict[str, FloatArray]
    """Feature name -> values [n]."""


def structure_of(dataset: OfflineDataset) -> Structure:
    """Return the structure of a dataset; it is computed once per dataset."""
    columns = _STRUCTURES.get(dataset)
    if columns is None:
        columns = _STRUCTURES[dataset] = _structure_columns(dataset)
    return Structure(dataset, columns)


def _structure_columns(dataset: OfflineDataset) -> dict[str, FloatArray]:
    n = dataset.n_states
    forwards, followed = dataset.successors
    backwards, preceded, _ = dataset.predecessors
    unique = dataset.unique_transitions
    loops = unique.state == unique.next_state
    own = np.bincount(unique.state[loops], unique.count[loops].astype(np.float64), n) / np.maximum(dataset.visits, 1)
    seen, size = dataset.labelable, np.log1p(dataset.labelable.sum())
    visits = dataset.visitation.astype(np.float32).astype(np.float64)  # as in the observation
    return {
        "seen": seen.astype(np.float64),
        "visitation rank": ranks(visits, seen),
        "visitation": logarithm(visits * max(int(seen.sum()), 1)),
        "nearness to termination": _near(steps_from(backwards, preceded, dataset.termination > 0), n),
        "nearness to start": _near(steps_from(forwards, followed, dataset.start > 0), n),
        "in-degree": np.log1p(np.diff(backwards)) / size,
        "out-degree": np.log1p(np.diff(forwards)) / size,
        "self-loops": own,
    }


def state_features(
    obs: Observation,
    info: Info,
    structure: Structure,
    *,
    budget: int,
    adapted: bool,
    without: tuple[str, ...] = (),
    names: tuple[str, ...] = NAMES,
    effects: LabelEffects | None = None,
) -> Float32Array:
    """Return the features of every state [n, features]; those named in ``without`` are 0.

    Args:
        obs: the observation.
        info: the step's info, with the mask of states that can still be labelled.
        structure: the structure of the dataset.
        budget: number of labels of the episode.
        adapted: whether the learner follows the adapted rule.
        without: names of features to leave out.
        names: names of the features to return, in order.
        effects: what labels have changed; needed for those of `DYNAMIC`.
    """
    seen = structure.columns["seen"] > 0

    def column(name: str) -> FloatArray:
        return of_length(len(seen), feature(obs, name))

    open_states, labelled = open_mask(info), column("labelled") > 0
    of_length(len(seen), open_states)
    policy, value, spread = column("on_policy_visitation"), column("value"), column("predecessors")
    count, left = max(int(seen.sum()), 1), float(feature(obs, "budget")[0])
    columns = {
        **structure.columns,
        "open": open_states,
        "labelled": labelled,
        "on-policy rank": ranks(policy, seen),
        "on-policy visitation": logarithm(policy * count),
        "value": value,
        "predecessors": spread / max(float(spread.max()), 1e-12),
        "termination": column("termination"),
        "nearness to best value": _near_the_best(structure.dataset, value, labelled),
        "adapted": float(adapted),
        "budget left": left,
        "labels left": left * budget / count,
        "states": np.log(min(count, LARGE)) / 5,
        "reward seen": float(np.any(value)),
    }
    if "reward" in names:
        columns["reward"] = column("reward")
    if "reward scale" in names:
        columns["reward scale"] = float(feature(obs, "reward_scale")[0])
    if not set(STATIC).isdisjoint(names):
        columns |= behaviour_of(structure.dataset).columns
    if effects is not None:
        columns |= effects.columns(labelled & seen, policy)
    out = np.zeros((len(seen), len(names)), np.float32)
    for i, name in enumerate(names):
        if name not in without:
            out[:, i] = columns[name]
    out[~seen] = 0
    return out


def _near_the_best(dataset: OfflineDataset, value: FloatArray, labelled: BoolArray) -> FloatArray:
    """Return the nearness of each state, in the data, to the best-valued labelled one; 0 if no value is positive."""
    worth = np.where(labelled, value, 0.0)
    if not (worth > 0).any():
        return np.zeros(len(value))
    first, source, _ = dataset.predecessors
    return _near(steps_from(first, source, worth == worth.max()), len(value))


def _near(steps: IntArray, n: int) -> FloatArray:
    return np.where(steps < n, 1 / (1.0 + steps), 0.0)
