"""Updates of implicit Q-learning and of behaviour cloning, for networks on images and on vectors.

Implicit Q-learning (Kostrikov et al. 2021, https://arxiv.org/abs/2110.06169) with two action values and their targets:

    V minimises  E | tau - 1[u < 0] | u^2,  u = min_i target_i(s, a) - V(s),
    Q_i minimise E (r + gamma V(s') - Q_i(s, a))^2.

Behaviour cloning minimises the cross-entropy of the data's actions. The compiler chooses the passes of a network by the
type of its layers.
"""

from typing import Any, NamedTuple

import numpy as np

from selectenv.kernels.compiled import exact_part, kernel, part_by_type
from selectenv.kernels.network.backprop import Adam, Pass, adam_step, backward, follow, forward, output
from selectenv.kernels.network.cnn import Layers
from selectenv.kernels.network.mlp import (
    VectorBatch,
    VectorLayers,
    VectorPass,
    VectorTable,
    backward_vectors,
    fill_vector_batch,
    forward_vectors,
)
from selectenv.kernels.network.patches import Batch, Patches, fill_batch
from selectenv.kernels.threads import slices
from selectenv.typing import Float32Array, FloatArray, Int32Array, IntArray

SAMPLE_COST = 1 << 13
"""Cost of one sample of one update, in the operations of `SLICE_COST`."""
AnyObservations = Patches | VectorTable
AnyBatch = Batch | VectorBatch
AnyPass = Pass | VectorPass


class Network(NamedTuple):
    """A network in training; the layers are views of `flat`, and those of the gradient of `flat_gradient`."""

    flat: Float32Array
    layers: Any
    """`Layers` or `VectorLayers`."""
    flat_gradient: Float32Array
    gradient: Any
    memory: Adam


class Transitions(NamedTuple):
    """Training data as the learning rule sees them."""

    state: Int32Array
    action: Int32Array
    next_state: Int32Array
    """-1 if the next state has the value 0."""
    reward: Float32Array


class Rule(NamedTuple):
    """Hyperparameters of implicit Q-learning."""

    gamma: float
    expectile: float
    rate: float
    target_step: float


@exact_part
def _fill_images(batch: Batch, numbers: Int32Array, observations: Patches) -> None:
    batch.image[:] = numbers
    fill_batch(batch, observations)


@exact_part
def _fill_vectors(batch: VectorBatch, numbers: Int32Array, observations: VectorTable) -> None:
    batch.number[:] = numbers
    fill_vector_batch(batch, observations)


_fill = part_by_type({Batch: _fill_images, VectorBatch: _fill_vectors})
"""(batch, numbers [size], observations): put the numbered observations into a batch; -1 stands for a missing one."""
_forward = part_by_type({Layers: forward, VectorLayers: forward_vectors})
_backward = part_by_type({Layers: backward, VectorLayers: backward_vectors})


@kernel
def add_iql_updates(
    first: Network,
    second: Network,
    value: Network,
    targets: tuple[Network, Network],
    data: Transitions,
    chosen: IntArray,
    done: int,
    rule: Rule,
    observations: AnyObservations,
    batches: tuple[AnyBatch, AnyBatch],
    made: AnyPass,
    losses: FloatArray,
) -> None:
    """Make the updates of `iql_updates` and add the losses of all samples to ``losses`` [2]."""
    size = chosen.shape[1]
    now, later = batches
    state, following = np.empty(size, np.int32), np.empty(size, np.int32)
    goal, low = np.empty(size, np.float32), np.empty(size, np.float32)
    by_value = np.empty((size, 1), np.float32)
    by_action = np.zeros((size, len(first.layers.output_bias)), np.float32)
    for u in range(len(chosen)):
        for i in range(size):
            state[i], following[i] = data.state[chosen[u, i]], data.next_state[chosen[u, i]]
        _fill(now, state, observations)
        _fill(later, following, observations)
        _forward(value.layers, later, made)
        for i in range(size):
            goal[i] = data.reward[chosen[u, i]]
            if following[i] >= 0:
                goal[i] += np.float32(rule.gamma) * output(value.layers, made.hidden, i, 0)
        low[:] = np.inf
        for target in targets:
            _forward(target.layers, now, made)
            for i in range(size):
                low[i] = min(low[i], output(target.layers, made.hidden, i, data.action[chosen[u, i]]))
        _forward(value.layers, now, made)
        for i in range(size):
            above = low[i] - output(value.layers, made.hidden, i, 0)
            weight = np.float32(rule.expectile if above > 0 else 1 - rule.expectile)
            losses[0] += weight * above * above
            by_value[i, 0] = -2 * weight * above / np.float32(size)
        _backward(value.layers, now, made, by_value, value.gradient)
        for network in (first, second):
            _forward(network.layers, now, made)
            by_action[:] = 0
            for i in range(size):
                action = data.action[chosen[u, i]]
                wrong = output(network.layers, made.hidden, i, action) - goal[i]
                losses[1] += wrong * wrong
                by_action[i, action] = 2 * wrong / np.float32(size)
            _backward(network.layers, now, made, by_action, network.gradient)
        for network in (value, first, second):
            adam_step(network.flat, network.flat_gradient, network.memory, rule.rate, done + u + 1)
        follow(targets[0].flat, first.flat, rule.target_step)
        follow(targets[1].flat, second.flat, rule.target_step)


def iql_updates(
    first: Network,
    second: Network,
    value: Network,
    targets: tuple[Network, Network],
    data: Transitions,
    chosen: IntArray,
    done: int,
    rule: Rule,
    observations: AnyObservations,
    batches: tuple[AnyBatch, AnyBatch],
    made: AnyPass,
) -> FloatArray:
    """Make one update per row of chosen transitions [updates, size], after ``done`` earlier ones.

    Returns:
        The mean loss of the value, and of the two action values together.
    """
    losses, networks = np.zeros(2), (first, second, value, targets)
    for row, end in slices(len(chosen), chosen.shape[1] * SAMPLE_COST):
        add_iql_updates(*networks, data, chosen[row:end], done + row, rule, observations, batches, made, losses)
    mean: FloatArray = losses / chosen.size
    return mean


@kernel
def add_cloning_updates(
    network: Network,
    data: Transitions,
    chosen: IntArray,
    done: int,
    rate: float,
    observations: AnyObservations,
    batch: AnyBatch,
    made: AnyPass,
    losses: FloatArray,
) -> None:
    """Make the updates of `cloning_updates` and add the losses of all samples to ``losses`` [1]."""
    size, n_actions = chosen.shape[1], len(network.layers.output_bias)
    state, output_gradient = np.empty(size, np.int32), np.empty((size, n_actions), np.float32)
    for u in range(len(chosen)):
        for i in range(size):
            state[i] = data.state[chosen[u, i]]
        _fill(batch, state, observations)
        _forward(network.layers, batch, made)
        for i in range(size):
            taken = data.action[chosen[u, i]]
            logits = output_gradient[i]
            for a in range(n_actions):
                logits[a] = output(network.layers, made.hidden, i, a)
            top, own, total = logits.max(), logits[taken], np.float32(0)
            for a in range(n_actions):
                output_gradient[i, a] = np.exp(logits[a] - top)
                total += output_gradient[i, a]
            losses[0] += np.log(total) + top - own
            for a in range(n_actions):
                output_gradient[i, a] = (output_gradient[i, a] / total - np.float32(a == taken)) / np.float32(size)
        _backward(network.layers, batch, made, output_gradient, network.gradient)
        adam_step(network.flat, network.flat_gradient, network.memory, rate, done + u + 1)


def cloning_updates(
    network: Network,
    data: Transitions,
    chosen: IntArray,
    done: int,
    rate: float,
    observations: AnyObservations,
    batch: AnyBatch,
    made: AnyPass,
) -> FloatArray:
    """Make one update per row of chosen transitions [updates, size] towards their actions; see `iql_updates`.

    Returns:
        The mean cross-entropy.
    """
    losses = np.zeros(1)
    for row, end in slices(len(chosen), chosen.shape[1] * SAMPLE_COST):
        add_cloning_updates(network, data, chosen[row:end], done + row, rate, observations, batch, made, losses)
    mean: FloatArray = losses / chosen.size
    return mean
