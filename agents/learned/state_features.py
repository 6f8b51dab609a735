"""What a learned selector sees of a state: figures that mean the same in every world, whatever its size.

Everything comes from the observation and from the transitions of the data; no reward is looked at beyond what labels
have shown. Counts become logarithms or ranks, distances 1 / (1 + steps), and the number of states is a figure itself.
"""

from dataclasses import dataclass

import numpy as np

from agents.base import Info, Observation, open_mask
from selectenv.datasets import OfflineDataset
from selectenv.kernels.tabular.distances import steps_from
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray

NAMES = (
    "seen", "open", "labelled", "visitation rank", "visitation", "policy rank", "policy", "value", "predecessors",
    "termination", "near an end", "near the start", "in-degree", "out-degree", "self-loops", "near the best", "adapted",
    "budget left", "labels left", "states", "reward seen",
)  # fmt: skip
"""The figures of a state, in order; the last five are those of the whole episode."""
LARGE = 64
"""Larger worlds look as large as this: selectors are trained up to here, and networks do not extrapolate."""
WITHOUT_ENDS = ("termination", "near an end", "out-degree")
"""What an ablation leaves out: whatever tells where episodes end, and nothing leads on from where they always do."""


@dataclass(frozen=True, eq=False)
class Structure:
    """What the transitions of a dataset say of its states, once and for all."""

    dataset: OfflineDataset
    columns: dict[str, FloatArray]
    """[n] by name."""


def structure_of(dataset: OfflineDataset) -> Structure:
    """Look at a dataset."""
    n = dataset.n_states
    forwards, followed = dataset.successors
    backwards, preceded, _ = dataset.predecessors
    kinds = dataset.kinds
    loops = kinds.state == kinds.next_state
    own = np.bincount(kinds.state[loops], kinds.count[loops].astype(np.float64), n) / np.maximum(dataset.visits, 1)
    size = np.log1p(dataset.labelable.sum())
    columns = {
        "seen": dataset.labelable.astype(np.float64),
        "near an end": _near(steps_from(backwards, preceded, dataset.termination > 0), n),
        "near the start": _near(steps_from(forwards, followed, dataset.start > 0), n),
        "in-degree": np.log1p(np.diff(backwards)) / size,
        "out-degree": np.log1p(np.diff(forwards)) / size,
        "self-loops": own,
    }
    return Structure(dataset, columns)


def state_features(
    obs: Observation, info: Info, structure: Structure, *, budget: int, adapted: bool, without: tuple[str, ...] = ()
) -> Float32Array:
    """Return the figures of every state [n, features], those named in ``without`` set to 0.

    Args:
        obs: what the environment shows.
        info: with the mask of states that can still be labelled.
        structure: of the dataset.
        budget: labels of the episode.
        adapted: whether the learner follows the adapted rule.
        without: names of figures to leave out.
    """
    open_states, labelled = open_mask(info), np.asarray(obs["labelled"]) > 0
    seen = structure.columns["seen"] > 0
    visits, policy = np.asarray(obs["visitation"], np.float64), np.asarray(obs["on_policy_visitation"], np.float64)
    value, spread = np.asarray(obs["value"], np.float64), np.asarray(obs["predecessors"], np.float64)
    count, left = max(int(seen.sum()), 1), float(np.asarray(obs["budget"])[0])
    columns = {
        **structure.columns,
        "open": open_states,
        "labelled": labelled,
        "visitation rank": _ranks(visits, seen),
        "visitation": _logarithm(visits * count),
        "policy rank": _ranks(policy, seen),
        "policy": _logarithm(policy * count),
        "value": value,
        "predecessors": spread / max(float(spread.max()), 1e-12),
        "termination": np.asarray(obs["termination"], np.float64),
        "near the best": _near_the_best(structure.dataset, value, labelled),
        "adapted": float(adapted),
        "budget left": left,
        "labels left": left * budget / count,
        "states": np.log(min(count, LARGE)) / 5,
        "reward seen": float(np.any(value)),
    }
    out = np.zeros((len(seen), len(NAMES)), np.float32)
    for i, name in enumerate(NAMES):
        if name not in without:
            out[:, i] = columns[name]
    out[~seen] = 0
    return out


def _near_the_best(dataset: OfflineDataset, value: FloatArray, labelled: BoolArray) -> FloatArray:
    """Return how near each state is, in the data, to the best-valued labelled one; 0 where there is none of value."""
    worth = np.where(labelled, value, 0.0)
    if not (worth > 0).any():
        return np.zeros(len(value))
    first, source, _ = dataset.predecessors
    return _near(steps_from(first, source, worth == worth.max()), len(value))


def _near(steps: IntArray, n: int) -> FloatArray:
    return np.where(steps < n, 1 / (1.0 + steps), 0.0)


def _ranks(values: FloatArray, among: BoolArray) -> FloatArray:
    """Return the share of the others that are smaller, ties counted half; 0 where ``among`` is false."""
    out = np.zeros(len(values))
    mine = values[among]
    order = np.sort(mine)
    below, upto = np.searchsorted(order, mine, "left"), np.searchsorted(order, mine, "right")
    out[among] = (below + upto - 1) / 2 / max(len(mine) - 1, 1)
    return out


def _logarithm(relative: FloatArray) -> FloatArray:
    """Return figures around 1 on a scale of about -1 to 1."""
    return np.clip(np.log10(np.maximum(relative, 1e-3)) / 3, -1, 1)
