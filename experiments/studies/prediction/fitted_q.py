"""Fitted Q iteration with a network, in plain PyTorch, as a plug-in learner.

Iteration k fits a network to the targets of the network of the iteration before (Ernst et al. 2005; with a network:
Riedmiller 2005, https://doi.org/10.1007/11564096_32):

    y_i = r_i + gamma max_a Q_{k-1}(s'_i, a),   or r_i where the episode terminated,
    Q_k = argmin_Q sum_i (Q(s_i, a_i) - y_i)^2 / 2,

by stochastic gradient descent that starts from the weights of Q_{k-1}. Unknown rewards count as 0 (UDS). The policy is
greedy.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from selectenv import FitResult, OfflineDataset
from selectenv.checks import check_int, check_real
from selectenv.errors import LearnerError, MissingExtraError
from selectenv.streams import generator
from selectenv.typing import Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    import torch


class Transitions(NamedTuple):
    """What is learned from, as tensors; states are rows of `inputs`."""

    inputs: "torch.Tensor"
    """[states, d] standardised vectors."""
    state: "torch.Tensor"
    """[size]"""
    action: "torch.Tensor"
    """[size]"""
    reward: "torch.Tensor"
    """[size] divided by the largest magnitude of a known reward; 0 where unknown."""
    next_state: "torch.Tensor"
    """[size] 0 where there is none."""
    goes_on: "torch.Tensor"
    """[size] 0 where the next state has no value, otherwise 1."""


@dataclass(frozen=True, eq=False)
class GreedyPolicy:
    """Takes the action with the largest output of a network."""

    network: Any
    mean: FloatArray
    """[d]"""
    scale: FloatArray
    """[d]"""

    def values(self, observations: Float32Array) -> FloatArray:
        """Return the action values [batch, actions] of vectors [batch, d]."""
        import torch

        with torch.no_grad():
            found = self.network(torch.from_numpy(standardised(observations, self.mean, self.scale)))
        return np.asarray(found.numpy(), np.float64)

    def probabilities(self, states: IntArray, observations: Any = None) -> FloatArray:
        """Return the action probabilities [batch, actions]."""
        q = self.values(np.asarray(observations, np.float32))
        greedy: FloatArray = np.eye(q.shape[1])[q.argmax(axis=1)]
        return greedy


class FittedQ:
    """Fitted Q iteration with two hidden layers."""

    rule = "uds"

    def __init__(
        self,
        gamma: float = 0.99,
        seed: int = 0,
        iterations: int = 50,
        updates: int = 200,
        rate: float = 1e-3,
        batch: int = 256,
        hidden: int = 64,
    ) -> None:
        """Create a learner.

        Args:
            gamma: discount factor.
            seed: seed of the weights and the batches.
            iterations: number of fits; a reward reaches states that are this many steps before it.
            updates: gradient steps per fit.
            rate: step size of Adam.
            batch: transitions per gradient step.
            hidden: units per hidden layer.
        """
        self.gamma = check_real("gamma", gamma, "[0, 1]")
        self.seed = check_int("seed", seed, 0)
        self.iterations, self.updates = check_int("iterations", iterations), check_int("updates", updates)
        self.rate = check_real("rate", rate, "(0, inf)")
        self.batch, self.hidden = check_int("batch", batch), check_int("hidden", hidden)

    def fit(self, dataset: OfflineDataset, rewards: FloatArray) -> FitResult:
        """Learn a policy from transitions whose rewards [size] are NaN where unknown.

        Raises:
            LearnerError: the states are not vectors.
            MissingExtraError: PyTorch is not installed.
        """
        try:
            import torch
        except ModuleNotFoundError:
            raise MissingExtraError(f"{type(self).__name__} needs PyTorch: pip install 'selectenv[meta]'") from None
        vectors = dataset.base.vectors
        if vectors is None:
            raise LearnerError(
                f"{type(self).__name__} learns from vectors, and the states of these data are not vectors"
            )
        data = transitions(dataset, rewards)
        rng = generator(self.seed, "learner", "torch")
        network = new_network(data.inputs.shape[1], self.hidden, dataset.n_actions, rng)
        optimiser = torch.optim.Adam(network.parameters(), self.rate)
        size = len(data.state)
        for _ in range(self.iterations):
            targets = self.targets(network, data)
            for rows in torch.from_numpy(rng.integers(size, size=(self.updates, self.batch))):
                loss = self.loss(network(data.inputs[data.state[rows]]), data.action[rows], targets[rows])
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        policy = GreedyPolicy(network, vectors.mean, vectors.scale)
        q = policy.values(vectors.values)
        return FitResult(policy, q if dataset.groups is None else dataset.means_by_state(q[dataset.base.state]))

    def targets(self, network: Any, data: Transitions) -> "torch.Tensor":
        """Return r + gamma max_a Q(s', a) [size]; the next state counts 0 where there is none."""
        import torch

        with torch.no_grad():
            best = network(data.inputs).max(dim=1).values
            found: torch.Tensor = data.reward + self.gamma * data.goes_on * best[data.next_state]
            return found

    def loss(self, q: "torch.Tensor", action: "torch.Tensor", target: "torch.Tensor") -> "torch.Tensor":
        """Return half the mean squared error of the values of the actions taken.

        Args:
            q: [batch, actions] action values.
            action: [batch] the actions of the data.
            target: [batch] what their values should be.
        """
        taken = q.gather(1, action[:, None])[:, 0]
        return ((taken - target) ** 2).mean() / 2


def transitions(dataset: OfflineDataset, rewards: FloatArray) -> Transitions:
    """Return the transitions of a dataset, or of the data before grouping, as tensors."""
    import torch

    base = dataset.base
    vectors = base.vectors
    assert vectors is not None
    known = np.nan_to_num(rewards, nan=0.0)
    largest = float(np.abs(known).max()) or 1.0
    arrays = (
        base.state.astype(np.int64),
        base.action.astype(np.int64),
        (known / largest).astype(np.float32),
        np.maximum(base.next_state, 0).astype(np.int64),
        (base.next_state >= 0).astype(np.float32),
    )
    inputs = torch.from_numpy(standardised(vectors.values, vectors.mean, vectors.scale))
    return Transitions(inputs, *map(torch.from_numpy, arrays))


def standardised(observations: Float32Array, mean: FloatArray, scale: FloatArray) -> Float32Array:
    """Return vectors [batch, d] whose columns have mean 0 and standard deviation 1 in the data."""
    return np.ascontiguousarray((observations - mean) / scale, np.float32)


def new_network(inputs: int, hidden: int, outputs: int, rng: np.random.Generator) -> Any:
    """Return a network with two hidden layers; weights are drawn within 1 / sqrt(inputs) of zero, as is usual."""
    import torch

    sizes = (inputs, hidden, hidden, outputs)
    layers: list[Any] = []
    for i, (before, after) in enumerate(pairwise(sizes)):
        layer = torch.nn.Linear(before, after)
        with torch.no_grad():
            for part in (layer.weight, layer.bias):
                drawn = rng.uniform(-1, 1, tuple(part.shape)) / np.sqrt(before)
                part.copy_(torch.from_numpy(drawn.astype(np.float32)))
        layers += [layer, torch.nn.ReLU()] if i < 2 else [layer]
    return torch.nn.Sequential(*layers)
