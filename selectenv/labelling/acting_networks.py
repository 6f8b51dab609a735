"""The networks of a session's policy, which take vectors: how they act, and how they are stored in its file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.datasets.vector_observations import Vectors, check_vectors
from selectenv.kernels.network.mlp import VectorLayers
from selectenv.learners.architectures import VectorNetwork
from selectenv.policies import CloningPolicy, GreedyPolicy, LabelledPolicy, Policy, UniformPolicy
from selectenv.typing import FloatArray

MEAN, SCALE, NETWORK, LABELS = "network_mean", "network_scale", "network", "network_labels"
"""Keys among the arrays of a file; those of a network and of labels have a number at the end."""
COLUMNS, RUNS = "network_columns", "network_runs"
"""Keys of the card of a file."""


@dataclass(frozen=True, eq=False)
class ActingNetworks:
    """The policies of the training runs of a neural learner on vectors."""

    runs: tuple[Policy, ...]
    columns: tuple[str, ...]
    """[d] names of the columns."""
    mean: FloatArray
    """[d] mean of each column, which networks subtract."""
    scale: FloatArray
    """[d] what they divide by."""

    @classmethod
    def among(cls, runs: Iterable[Policy], vectors: Vectors | None) -> "ActingNetworks | None":
        """Return the policies of training runs if they are networks on vectors, else None."""
        kept = tuple(runs)
        if vectors is None or not all(map(_acts_on_vectors, kept)):
            return None
        return cls(kept, vectors.columns, vectors.mean, vectors.scale)

    def probabilities(self, vector: NDArray[Any], cell: int) -> FloatArray:
        """Return the action probabilities [actions] for a vector [d], averaged over training runs.

        Args:
            vector: the vector.
            cell: number of the group that it falls into, -1 if there are none.

        Raises:
            ObservationError: the vector has other columns, or numbers that are not finite.
        """
        observations = check_vectors(vector[None], self.columns)
        found = [run.probabilities(np.array([cell]), observations)[0] for run in self.runs]
        return np.asarray(np.mean(found, axis=0))

    def stored(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the entries of the card of a file."""
        arrays: dict[str, NDArray[Any]] = {MEAN: self.mean, SCALE: self.scale}
        return arrays, {COLUMNS: list(self.columns), RUNS: [_store(policy, arrays) for policy in self.runs]}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], card: Mapping[str, Any]) -> "ActingNetworks | None":
        """Return the networks of a file, None if it has none.

        Raises:
            KeyError, TypeError, ValueError: the file has other content.
        """
        if RUNS not in card:
            return None
        columns = tuple(map(str, card[COLUMNS]))
        runs = tuple(_restore(entry, arrays, columns) for entry in card[RUNS])
        return cls(runs, columns, arrays[MEAN], arrays[SCALE])


def _acts_on_vectors(policy: Policy) -> bool:
    if isinstance(policy, LabelledPolicy):
        return _acts_on_vectors(policy.valued) and _acts_on_vectors(policy.otherwise)
    if isinstance(policy, GreedyPolicy):
        return all(isinstance(network, VectorNetwork) for network in policy.networks)
    if isinstance(policy, CloningPolicy):
        return isinstance(policy.logits, VectorNetwork)
    return isinstance(policy, UniformPolicy)  # there was nothing to learn yet


def _store(policy: Policy, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the entry of a policy in the card, and add its arrays."""
    if isinstance(policy, GreedyPolicy):
        return {"greedy": [_store_network(network, arrays) for network in policy.networks]}
    if isinstance(policy, CloningPolicy):
        return {"cloning": _store_network(policy.logits, arrays), "most_likely": policy.most_likely}
    if isinstance(policy, LabelledPolicy):
        labels = f"{LABELS}_{len(arrays)}"
        arrays[labels] = policy.labels
        return {
            "labelled": _store(policy.valued, arrays),
            "otherwise": _store(policy.otherwise, arrays),
            "labels": labels,
        }
    assert isinstance(policy, UniformPolicy)
    return {"uniform": policy.n_actions}


def _store_network(network: Any, arrays: dict[str, NDArray[Any]]) -> str:
    name = f"{NETWORK}_{len(arrays)}"
    for part, values in network.layers._asdict().items():
        arrays[f"{name}_{part}"] = values
    return name


def _restore(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], columns: tuple[str, ...]) -> Any:
    """Return the policy of an entry in the card."""

    def network(name: str) -> VectorNetwork:
        layers = VectorLayers(*(np.ascontiguousarray(arrays[f"{name}_{part}"]) for part in VectorLayers._fields))
        return VectorNetwork(layers, columns, arrays[MEAN], arrays[SCALE])

    if "greedy" in entry:
        return GreedyPolicy(tuple(network(name) for name in entry["greedy"]))
    if "cloning" in entry:
        return CloningPolicy(network(entry["cloning"]), bool(entry["most_likely"]))
    if "labelled" in entry:
        valued, otherwise = (_restore(entry[key], arrays, columns) for key in ("labelled", "otherwise"))
        return LabelledPolicy(valued, otherwise, arrays[entry["labels"]])
    return UniformPolicy(int(entry["uniform"]))
