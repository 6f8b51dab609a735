"""Networks on vectors: against autograd, PyTorch's Adam, and implicit Q-learning written with PyTorch."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from selectenv.datasets.vector_observations import Vectors
from selectenv.kernels.network.backprop import output
from selectenv.kernels.network.mlp import backward_vectors, fill_vector_batch, forward_vectors, vector_outputs
from selectenv.kernels.network.updates import Transitions
from selectenv.learners.architectures import VectorArchitecture, new_network
from selectenv.learners.training_run import CloningRun, IqlRun, Settings
from tests.selectenv.learners.vector_data import vector_data


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def plain_network(layers, columns):
    """Return a network of PyTorch's with the weights of our layers."""
    made = nn.Sequential(
        nn.Linear(columns, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, len(layers.output_bias))
    )
    with torch.no_grad():
        for theirs, mine in zip(made.parameters(), in_order(layers, columns), strict=True):
            theirs.copy_(torch.tensor(mine))
    return made


def in_order(layers, columns):
    """Return the parts of our layers as PyTorch has them, without padding."""
    first, first_bias, second, second_bias, last, last_bias = layers
    return first[:columns].T, first_bias, second.T, second_bias, last, last_bias


def standardised(vectors):
    values = vectors.values.astype(np.float64)
    return torch.tensor(((values - values.mean(axis=0)) / values.std(axis=0)).astype(np.float32))


def close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1e-6, np.abs(theirs).max()))


@given(
    st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 4), st.lists(st.integers(0, 19), min_size=1, max_size=9)
)
@settings(max_examples=25)
def test_forwards_and_backwards_agree_with_autograd(seed, columns, n_outputs, numbers):
    """For every number of columns and vectors, also those that are not multiples of a tile."""
    rng = np.random.default_rng(seed)
    vectors = Vectors((rng.normal(size=(20, columns)) * rng.uniform(0.1, 30, columns) + 5).astype(np.float32))
    architecture = VectorArchitecture(vectors)
    network = new_network(architecture, n_outputs, rng)
    plain = plain_network(network.layers, columns)
    batch, made = architecture.new_batch(len(numbers)), architecture.new_pass(len(numbers))
    for _ in range(2):  # nothing is left over from the first time
        batch.number[:] = numbers
        fill_vector_batch(batch, architecture.observations)
        forward_vectors(network.layers, batch, made)
        theirs = plain(standardised(vectors)[numbers])
        ours = np.array(
            [[output(network.layers, made.hidden, i, a) for a in range(n_outputs)] for i in range(len(numbers))]
        )
        close(ours, theirs.detach().numpy())
        wanted = rng.normal(size=theirs.shape).astype(np.float32)
        wanted[0, 0] = 0
        plain.zero_grad()
        (theirs * torch.from_numpy(wanted)).sum().backward()
        backward_vectors(network.layers, batch, made, wanted, network.gradient)
        assert not network.gradient.first[columns:].any()  # weights of the padding never change
        for mine, parameter in zip(in_order(network.gradient, columns), plain.parameters(), strict=True):
            close(mine, parameter.grad.numpy(), 1e-4)


def test_outputs_do_not_depend_on_the_rest_of_the_batch():
    rng = np.random.default_rng(0)
    vectors = Vectors(rng.normal(size=(150, 6)).astype(np.float32))
    architecture = VectorArchitecture(vectors)
    layers = new_network(architecture, 3, rng).layers
    together = vector_outputs(layers, architecture.observations)
    close(together, plain_network(layers, 6)(standardised(vectors)).detach().numpy())
    acting = architecture.acting(layers)
    for few in ([7], [149, 0, 3], range(100)):
        np.testing.assert_array_equal(acting.outputs(vectors[list(few)]), together[list(few)])
    assert acting.outputs(vectors[:0]).shape == (0, 3)


def test_a_missing_vector_counts_as_the_mean():
    architecture = VectorArchitecture(Vectors(np.array([[1.0, 5.0], [3.0, 9.0]], np.float32)))
    batch = architecture.new_batch(3)
    batch.number[:] = [1, -1, 0]
    fill_vector_batch(batch, architecture.observations)
    np.testing.assert_array_equal(batch.inputs[:3, :2], [[1, 1], [0, 0], [-1, -1]])


class PlainIql:
    """Implicit Q-learning with PyTorch: autograd and one optimiser for all networks."""

    def __init__(self, run, columns, setting, gamma):
        self.networks = {name: plain_network(network.layers, columns) for name, network in run.networks.items()}
        learned = ("first", "second", "value")
        parameters = [parameter for name in learned for parameter in self.networks[name].parameters()]
        self.optimiser = torch.optim.Adam(parameters, setting.rate)
        self.setting, self.gamma = setting, gamma

    def update(self, x, action, reward, following, goes_on):
        nets, taken = self.networks, action[:, None]
        with torch.no_grad():
            goal = reward + self.gamma * goes_on * nets["value"](following).squeeze(1)
            low = torch.minimum(*(nets[f"{name} target"](x).gather(1, taken) for name in ("first", "second"))).squeeze(
                1
            )
        above = low - nets["value"](x).squeeze(1)
        expectile = self.setting.expectile
        value_loss = (torch.where(above < 0, 1 - expectile, expectile) * above**2).mean()
        q_loss = sum(((nets[name](x).gather(1, taken).squeeze(1) - goal) ** 2).mean() for name in ("first", "second"))
        self.optimiser.zero_grad()
        (value_loss + q_loss).backward()
        self.optimiser.step()
        with torch.no_grad():
            for name in ("first", "second"):
                for target, leader in zip(nets[f"{name} target"].parameters(), nets[name].parameters(), strict=True):
                    target.copy_((1 - self.setting.target_step) * target + self.setting.target_step * leader)
        return float(value_loss.detach()), float(q_loss.detach())


@pytest.mark.parametrize("batch", [64, 30])
def test_updates_are_those_of_plain_pytorch(batch):
    data = vector_data()
    setting, columns = Settings(batch=batch, expectile=0.8, target_step=0.01), data.vectors.shape[0]
    plain_data = Transitions(data.state, data.action, data.next_state, data.hidden_reward.astype(np.float32))
    architecture, rng = VectorArchitecture(data.vectors), np.random.default_rng(1)
    run = IqlRun(plain_data, architecture, data.n_actions, 0.9, setting, rng)
    theirs = PlainIql(run, columns, setting, 0.9)
    inputs = standardised(data.vectors)
    chosen = rng.integers(len(data), size=(6, batch))
    losses = []
    for rows in chosen:
        following = data.next_state[rows].astype(np.int64)
        losses.append(
            theirs.update(
                inputs[data.state[rows]],
                torch.from_numpy(data.action[rows].astype(np.int64)),
                torch.from_numpy(plain_data.reward[rows]),
                inputs[np.maximum(following, 0)],
                torch.from_numpy((following >= 0).astype(np.float32)),
            )
        )
    run.advance(chosen[:2], 0)
    first = run.losses
    run.advance(chosen[2:], 2)
    np.testing.assert_allclose((2 * first + 4 * run.losses) / 6, np.mean(losses, axis=0), rtol=1e-4)
    for name, network in run.networks.items():
        pairs = zip(in_order(network.layers, columns), theirs.networks[name].parameters(), strict=True)
        for mine, parameter in pairs:
            np.testing.assert_allclose(mine, parameter.detach().numpy(), atol=2e-5)


def test_cloning_is_cross_entropy():
    data = vector_data()
    everything = Transitions(data.state, data.action, data.next_state, np.zeros(len(data), np.float32))
    rng = np.random.default_rng(1)
    run = CloningRun(everything, VectorArchitecture(data.vectors), data.n_actions, Settings(batch=50), rng)
    columns = data.vectors.shape[0]
    network = plain_network(deepcopy(run.logits), columns)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    chosen, inputs, losses = rng.integers(len(data), size=(5, 50)), standardised(data.vectors), []
    for rows in chosen:
        actions = torch.from_numpy(data.action[rows].astype(np.int64))
        loss = nn.functional.cross_entropy(network(inputs[data.state[rows]]), actions)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    run.advance(chosen, 0)
    np.testing.assert_allclose(run.losses, np.mean(losses), rtol=1e-4)
    for mine, parameter in zip(in_order(run.logits, columns), network.parameters(), strict=True):
        np.testing.assert_allclose(mine, parameter.detach().numpy(), atol=2e-5)
