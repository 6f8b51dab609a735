"""The observation: features of the states that use no rewards beyond the revealed ones, one entry per state."""

from collections.abc import Collection, Sequence

import gymnasium as gym
import numpy as np

from selectenv.checks import check_name
from selectenv.kernels.tabular.occupancy import best_predecessors, pooled_predecessors
from selectenv.kernels.tabular.single import occupancy
from selectenv.kernels.tabular.tolerances import TIE
from selectenv.options import FEATURES, OCCUPANCIES
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, Float32Array, FloatArray

Observation = dict[str, Float32Array]
FEATURE_BOUNDS = {
    "labelled": (0, 1),
    "visitation": (0, 1),
    "on_policy_visitation": (0, 1),
    "value": (-1, 1),
    "predecessors": (0, 1),
    "termination": (0, 1),
    "reward": (-1, 1),
}
"""Bounds of the features with one entry per state."""
EPISODE_FEATURES = ("budget", "reward_scale")
"""Features of the whole episode: one entry, from 0 to 1."""


LEARNED = ("on_policy_visitation", "value", "predecessors")
"""Features that depend on what the learner finds with the labels."""


def observation_space(n: int, names: Sequence[str] = FEATURES) -> gym.spaces.Dict:
    """Return the space of observations of a problem with n states: of those features that are named."""
    per_state = {name: gym.spaces.Box(low, high, (n,), np.float32) for name, (low, high) in FEATURE_BOUNDS.items()}
    every = {**per_state, **{name: gym.spaces.Box(0, 1, (1,), np.float32) for name in EPISODE_FEATURES}}
    return gym.spaces.Dict({name: every[name] for name in names})


def data_features(problem: SelectionProblem) -> Observation:
    """Return the features that depend on the data alone."""
    return {
        "visitation": problem.dataset.visitation.astype(np.float32),
        "termination": problem.dataset.termination.astype(np.float32),
    }


def reward_features(means: FloatArray, largest: float) -> Observation:
    """Return what the labels revealed: the mean reward of each state, and the scale of the rewards.

    Args:
        means: [n] mean revealed reward of each state, 0 where unlabelled.
        largest: largest magnitude m of a revealed reward; it scales `reward` to [-1, 1], and `reward_scale` is
            m / (1 + m).
    """
    scaled = means / largest if largest > 0 else means
    return {
        "reward": scaled.astype(np.float32),
        "reward_scale": np.array([largest / (1 + largest)], np.float32),
    }


def usual_exploit(problem: SelectionProblem) -> str:
    """Return how `predecessors` is computed by default: "pooled" for data with images, else "best"."""
    return "best" if problem.dataset.images is None else "pooled"


def learned_features(
    problem: SelectionProblem,
    labels: BoolArray,
    scale: float,
    occupancy_kind: str,
    exploit: str,
    names: Collection[str] = LEARNED,
) -> tuple[Observation, float]:
    """Return the features that depend on the current labels.

    Args:
        problem: the problem.
        labels: [n] which states are labelled.
        scale: the largest magnitude of a value so far.
        occupancy_kind: see `on_policy_visitation`.
        exploit: "best" or "pooled", see `best_predecessors` and `pooled_predecessors`.
        names: the features to return.

    Returns:
        The features and the new scale.
    """
    labels = labels & problem.dataset.labelable
    result = problem.learn(labels & problem.revealable)
    features = {}
    if "on_policy_visitation" in names:
        features["on_policy_visitation"] = on_policy_visitation(problem, result.table, labels, occupancy_kind)
    if "value" in names:
        scale = max(scale, float(np.abs(result.values).max()))
        features["value"] = result.values / scale if scale > 0 else result.values
    if "predecessors" in names:
        if exploit == "pooled":
            spread = pooled_predecessors(result.values, labels, *problem.dataset.predecessors)
        else:
            spread = best_predecessors(result.values, labels, *problem.dataset.predecessors, TIE)
        features["predecessors"] = spread
    return {name: feature.astype(np.float32) for name, feature in features.items()}, scale


def on_policy_visitation(
    problem: SelectionProblem, policy: FloatArray, labels: BoolArray, kind: str = "normalised"
) -> FloatArray:
    """Return the discounted state occupancy of ``policy`` in the empirical model, from the data's start states.

    Args:
        problem: the problem.
        policy: [n, actions] action probabilities.
        labels: [n] which states are labelled.
        kind: "normalised" follows the policy; "published" gives every maximal action the weight 1 / actions and loses
            the rest of the mass, as the published numbers seem to have been computed.
    """
    if check_name("occupancy", kind, OCCUPANCIES) == "published":
        maximal = (policy > 0) / policy.shape[1]
        everywhere = np.ones_like(labels)
        greedy = {"uds": everywhere, "adapted": labels}.get(problem.learner.rule, ~everywhere)
        policy = np.where(greedy[:, None], maximal, policy)
    model = problem.dataset.empirical_model()
    return occupancy(model, np.ascontiguousarray(policy), problem.dataset.start, problem.learner.gamma)
