"""What a strategy may know without rewards: the observation, one entry a state."""

import numpy as np

from selectenv.checks import check_name
from selectenv.kernels.tabular.occupancy import best_predecessors
from selectenv.kernels.tabular.single import occupancy
from selectenv.kernels.tabular.solve import TIE
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, Float32Array, FloatArray

OCCUPANCIES = ("normalised", "published")


def data_features(problem: SelectionProblem) -> dict[str, Float32Array]:
    """Return the features that the data alone decide."""
    return {
        "visitation": problem.dataset.visitation.astype(np.float32),
        "termination": problem.dataset.termination.astype(np.float32),
    }


def learned_features(
    problem: SelectionProblem, labels: BoolArray, scale: float, occupancy_kind: str
) -> tuple[dict[str, Float32Array], float]:
    """Return the features that follow from the current labels.

    Args:
        problem: the problem.
        labels: [n] which states are labelled.
        scale: the largest magnitude of a value so far.
        occupancy_kind: see `on_policy_visitation`.

    Returns:
        The features and the new scale.
    """
    labels = labels & problem.dataset.labelable
    learned = problem.learn(labels if problem.dataset.has_rewards else np.zeros_like(labels))
    scale = max(scale, float(np.abs(learned.values).max()))
    first, state, count = problem.dataset.predecessors
    spread = best_predecessors(learned.values, labels, first, state, count, TIE)
    features = {
        "on_policy_visitation": on_policy_visitation(problem, learned.policy, labels, occupancy_kind),
        "value": learned.values / scale if scale > 0 else learned.values,
        "predecessors": spread,
    }
    return {name: feature.astype(np.float32) for name, feature in features.items()}, scale


def on_policy_visitation(
    problem: SelectionProblem, policy: FloatArray, labels: BoolArray, kind: str = "normalised"
) -> FloatArray:
    """Return the discounted state occupancy of ``policy`` in the empirical model, from the data's starts.

    Args:
        problem: the problem.
        policy: [n, actions] action probabilities.
        labels: [n] which states are labelled.
        kind: "normalised" follows the policy; "published" gives every maximal action the weight 1 / actions and loses
            the rest of the mass, as the published figures seem to have been made.
    """
    if check_name("occupancy", kind, OCCUPANCIES) == "published":
        maximal = (policy > 0) / policy.shape[1]
        rule = getattr(problem.learner, "rule", "adapted" if getattr(problem.learner, "adapted", False) else "uds")
        greedy = {"uds": np.ones_like(labels), "adapted": labels, "none": np.zeros_like(labels)}[rule]
        policy = np.where(greedy[:, None], maximal, policy)
    model = problem.dataset.empirical_model()
    return occupancy(model, np.ascontiguousarray(policy), problem.dataset.start, problem.learner.gamma)
