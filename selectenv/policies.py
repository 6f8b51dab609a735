"""Policies: one protocol for tables and networks, and the batches in which evaluators take them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import as_ints, as_reals, is_int, shown
from selectenv.errors import ObservationError, PolicyError
from selectenv.kernels.network.patched_images import PatchedImages
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray

ATOL = 1e-6
"""Tolerance of the sum of action probabilities, which must be 1."""
Observations = NDArray[Any]
"""[batch, ...] observations of states: images or vectors."""
NetworkInput = Observations | PatchedImages
"""What networks take: images, or images of a dataset whose patches are known, which is faster."""


class ActingNetwork(Protocol):
    """A network that a policy consists of."""

    def outputs(self, observations: Any) -> Float32Array:
        """Return the outputs [batch, outputs] for a `NetworkInput`.

        Raises:
            ObservationError: the observations have another shape than those that the network was trained on.
        """


class Policy(Protocol):
    """A distribution over actions in every state."""

    def probabilities(self, states: IntArray, observations: Observations | None = None) -> FloatArray:
        """Return action probabilities [batch, actions].

        A row of NaN marks a state that the policy does not know; evaluators then act uniformly at random.

        Args:
            states: [batch] state numbers of the dataset, -1 for states that are not in it.
            observations: [batch, ...] observations of the states; None if the world has none.
        """


class PolicyBatch(Protocol):
    """Several policies over the same states, evaluated together."""

    def __len__(self) -> int:
        """Return the number of policies."""

    def tables(self, n_states: int, observations: Observations | None = None) -> FloatArray:
        """Return action probabilities [blocks, n, actions, lanes]; policy i is lane i % lanes of block i // lanes.

        Lanes beyond the last policy are padding.
        """

    def probabilities(self, which: IntArray, states: IntArray, observations: Observations | None = None) -> FloatArray:
        """Return the action probabilities [batch, actions] of policy ``which[i]`` in ``states[i]``."""


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """Action probabilities for every state of a dataset."""

    table: FloatArray
    """[n, actions]"""

    def __post_init__(self) -> None:
        """Convert the table to floats.

        Raises:
            PolicyError: it is not a table of numbers.
        """
        table = self.table
        if type(table) is not np.ndarray or table.dtype != np.float64:
            table = as_reals("the table of a policy", table, PolicyError)
            object.__setattr__(self, "table", table)
        if table.ndim != 2 or table.size == 0:
            raise PolicyError(f"the table of a policy must have shape [n, actions], not {table.shape}")

    @property
    def n_states(self) -> int:
        """Number of states of the table."""
        return len(self.table)

    def probabilities(self, states: IntArray, observations: Observations | None = None) -> FloatArray:
        """Return action probabilities [batch, actions], NaN for states that are not in the table."""
        numbers, n = as_ints("states", states, PolicyError), len(self.table)
        if numbers.ndim != 1 or (numbers.size and (numbers.min() < -1 or numbers.max() >= n)):
            raise PolicyError(f"states must be a list of state numbers in 0..{n - 1}, or -1, not {shown(states)}")
        return _rows(self.table[numbers], numbers)


@dataclass(frozen=True, eq=False)
class TablePolicies:
    """Many tables in the layout of the compiled loops."""

    blocks: FloatArray
    """[blocks, n, actions, lanes]"""
    count: int
    """Number of policies; lanes beyond it are padding."""

    def __len__(self) -> int:
        """Return the number of policies."""
        return self.count

    def tables(self, n_states: int, observations: Observations | None = None) -> FloatArray:
        """Return the blocks [blocks, n, actions, lanes] unchanged."""
        if self.blocks.shape[1] != n_states:
            raise PolicyError(f"these policies are tables of {self.blocks.shape[1]} states; the world has {n_states}")
        return self.blocks

    def probabilities(self, which: IntArray, states: IntArray, observations: Observations | None = None) -> FloatArray:
        """Return the action probabilities [batch, actions] of policy ``which[i]`` in ``states[i]``."""
        lanes = self.blocks.shape[3]
        return _rows(self.blocks[which // lanes, states, :, which % lanes], states)


@dataclass(frozen=True, eq=False)
class PolicyList:
    """Policies of any type, evaluated one after the other."""

    policies: Sequence[Policy]

    def __len__(self) -> int:
        """Return the number of policies."""
        return len(self.policies)

    def tables(self, n_states: int, observations: Observations | None = None) -> FloatArray:
        """Return action probabilities [policies, n, actions, 1], uniform in states that a policy does not know."""
        states = np.arange(n_states)
        for policy in self.policies:
            size = getattr(policy, "n_states", n_states)
            if not is_int(size) or size != n_states:
                raise PolicyError(f"{shown(policy)} has {shown(size)} states; the world has {n_states}")
        found = [known(asked(policy, states, observations)) for policy in self.policies]
        if len({table.shape for table in found}) > 1:
            raise PolicyError("policies that are evaluated together must have the same number of actions")
        return np.stack(found)[..., None]

    def probabilities(self, which: IntArray, states: IntArray, observations: Observations | None = None) -> FloatArray:
        """Return the action probabilities [batch, actions] of policy ``which[i]`` in ``states[i]``."""
        found: FloatArray | None = None
        for i in np.unique(which):
            mine = which == i
            part = asked(self.policies[i], states[mine], None if observations is None else observations[mine])
            if found is None:
                found = np.empty((len(which), part.shape[1]))
            found[mine] = part
        return np.empty((0, 0)) if found is None else found


class ValuedPolicy(Policy, Protocol):
    """A policy that also returns the action values it is derived from."""

    def probabilities(self, states: IntArray, observations: NetworkInput | None = None) -> FloatArray:
        """Return action probabilities [batch, actions]."""

    def values_and_probabilities(self, states: IntArray, observations: NetworkInput) -> tuple[FloatArray, FloatArray]:
        """Return action values (0 where none are learned) and action probabilities, both [batch, actions]."""

    def state_values(self, states: IntArray, observations: NetworkInput) -> FloatArray:
        """Return state values [batch], 0 where none are learned."""


@dataclass(frozen=True)
class UniformPolicy:
    """Takes every action with the same probability."""

    n_actions: int

    def probabilities(self, states: IntArray, observations: NetworkInput | None = None) -> FloatArray:
        """Return equal probabilities [batch, actions]."""
        return np.full((len(states), self.n_actions), 1 / self.n_actions)

    def values_and_probabilities(self, states: IntArray, observations: NetworkInput) -> tuple[FloatArray, FloatArray]:
        """Return zeros, since nothing was learned, and equal probabilities."""
        return np.zeros((len(states), self.n_actions)), self.probabilities(states)

    def state_values(self, states: IntArray, observations: NetworkInput) -> FloatArray:
        """Return zeros [batch], since nothing was learned."""
        return np.zeros(len(states))


@dataclass(frozen=True, eq=False)
class GreedyPolicy:
    """Takes the action with the highest value; the value is the minimum over several networks."""

    networks: tuple[ActingNetwork, ...]
    value: ActingNetwork | None = None
    """The network of state values, if there is one."""

    def probabilities(self, states: IntArray, observations: NetworkInput | None = None) -> FloatArray:
        """Return action probabilities [batch, actions]; ties are split uniformly."""
        return self.values_and_probabilities(states, _required(observations))[1]

    def values_and_probabilities(self, states: IntArray, observations: NetworkInput) -> tuple[FloatArray, FloatArray]:
        """Return action values and action probabilities, both [batch, actions]."""
        values: FloatArray = np.min([network.outputs(observations) for network in self.networks], axis=0)
        values = values.astype(np.float64)
        return values, greedy(values)

    def state_values(self, states: IntArray, observations: NetworkInput) -> FloatArray:
        """Return state values [batch]: those of the value network, else the largest action values."""
        if self.value is None:
            return np.asarray(self.values_and_probabilities(states, observations)[0].max(axis=1))
        return self.value.outputs(observations)[:, 0].astype(np.float64)


@dataclass(frozen=True, eq=False)
class CloningPolicy:
    """Imitates the data: samples actions with their estimated probabilities, or takes the most likely one."""

    logits: ActingNetwork
    most_likely: bool = False

    def probabilities(self, states: IntArray, observations: NetworkInput | None = None) -> FloatArray:
        """Return action probabilities [batch, actions]."""
        logits = self.logits.outputs(_required(observations)).astype(np.float64)
        if self.most_likely:
            return greedy(logits)
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def values_and_probabilities(self, states: IntArray, observations: NetworkInput) -> tuple[FloatArray, FloatArray]:
        """Return zeros, since cloning learns no values, and action probabilities."""
        found = self.probabilities(states, observations)
        return np.zeros_like(found), found

    def state_values(self, states: IntArray, observations: NetworkInput) -> FloatArray:
        """Return zeros [batch], since cloning learns no values."""
        return np.zeros(len(states))


@dataclass(frozen=True, eq=False)
class LabelledPolicy:
    """Acts by learned values in labelled states and imitates the data everywhere else."""

    valued: ValuedPolicy
    otherwise: ValuedPolicy
    labels: BoolArray
    """[n] which states of the dataset are labelled."""

    def probabilities(self, states: IntArray, observations: NetworkInput | None = None) -> FloatArray:
        """Return action probabilities [batch, actions]."""
        given = _required(observations)
        found = self.otherwise.probabilities(states, given)
        labelled = self._labelled(states)
        if labelled.any():
            found[labelled] = self.valued.probabilities(states[labelled], given[labelled])
        return found

    def values_and_probabilities(self, states: IntArray, observations: NetworkInput) -> tuple[FloatArray, FloatArray]:
        """Return the action values of labelled states, 0 elsewhere, and action probabilities."""
        values, found = self.valued.values_and_probabilities(states, observations)
        labelled = self._labelled(states)[:, None]
        return np.where(labelled, values, 0.0), np.where(
            labelled, found, self.otherwise.probabilities(states, observations)
        )

    def state_values(self, states: IntArray, observations: NetworkInput) -> FloatArray:
        """Return the values [batch] of labelled states, 0 elsewhere."""
        return np.where(self._labelled(states), self.valued.state_values(states, observations), 0.0)

    def _labelled(self, states: IntArray) -> BoolArray:
        labelled: BoolArray = (states >= 0) & self.labels[states]
        return labelled


def checked_tables(policies: PolicyBatch, n_states: int, n_actions: int) -> FloatArray:
    """Return the tables [blocks, n, actions, lanes] of policies after checking their shape.

    Raises:
        PolicyError: the policies have other states or actions than the world.
    """
    blocks = policies.tables(n_states)
    if blocks.shape[2] != n_actions:
        raise PolicyError(f"these policies choose among {blocks.shape[2]} actions; the world has {n_actions}")
    return blocks


def greedy(values: FloatArray) -> FloatArray:
    """Return the probabilities [batch, actions] of the best actions; ties are split uniformly."""
    best = values == values.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def known(probabilities: FloatArray) -> FloatArray:
    """Return probabilities [batch, actions] with uniform rows where the policy does not know the state."""
    unknown = np.isnan(probabilities[:, 0])
    if unknown.any():
        probabilities = probabilities.copy()
        probabilities[unknown] = 1 / probabilities.shape[1]
    return probabilities


def _rows(rows: FloatArray, states: IntArray) -> FloatArray:
    """Return gathered rows with NaN where the state number is negative."""
    unknown = states < 0
    if unknown.any():
        rows[unknown] = np.nan
    return rows


def asked(policy: Policy, states: IntArray, observations: Observations | None) -> FloatArray:
    """Return the probabilities [batch, actions] of a policy, after checking that they are distributions.

    Raises:
        PolicyError: the object is not a policy, or it returns something else.
    """
    if not callable(getattr(policy, "probabilities", None)) or isinstance(policy, type):
        raise PolicyError(
            f"a policy needs a method probabilities(states, observations), and {shown(policy)} has none; "
            "selectenv.TablePolicy makes a policy of an array [n, actions]"
        )
    try:
        answer = policy.probabilities(states, observations)
    except ObservationError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        raise PolicyError(f"{shown(policy)} does not return action probabilities [batch, actions] ({error})") from error
    found = as_reals(f"the probabilities of a {type(policy).__name__}", answer, PolicyError)
    if found.ndim != 2 or len(found) != len(states) or found.shape[1] == 0:
        raise PolicyError(
            f"{shown(policy)} must return probabilities [{len(states)}, actions], not an array of shape {found.shape}"
        )
    total = found[~np.isnan(found).all(axis=1)]
    if not ((total >= 0) & (total <= 1 + ATOL)).all() or not np.allclose(total.sum(axis=1), 1, atol=ATOL):
        raise PolicyError(f"{shown(policy)} must return rows of non-negative probabilities that sum to 1")
    return found


def _required(observations: NetworkInput | None) -> NetworkInput:
    if observations is None:
        raise PolicyError("this policy acts on observations: it needs a world and a dataset that have them")
    return observations
