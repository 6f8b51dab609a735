"""Training by distinct patches: against plain numpy, autograd, PyTorch's Adam, and IQL written with PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import selectenv
from experiments.benchmarks.bench_networks import TorchIql, ordinary, tensors
from experiments.training.small_cnn import SmallCnn, to_tensor
from selectenv.kernels.network.backprop import BLOCK, Adam, adam_step, backward, follow, forward, new_pass, output
from selectenv.kernels.network.cnn import Layers, outputs, split
from selectenv.kernels.network.packed_images import pack
from selectenv.kernels.network.patches import NO_CELL, fill_batch, find_patches, new_batch
from selectenv.kernels.network.updates import Transitions
from selectenv.learners.architectures import ImageArchitecture, architecture_of, new_network
from selectenv.learners.training_run import CloningRun, IqlRun, Settings

GAME = {"dataset_size": 2_000, "cache": False, "learner": "iql"}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_images(seed, channels, count=7, density=0.1):
    return np.random.default_rng(seed).random((count, 10, 10, channels)) < density


def windows(images):
    """Return what a 3 x 3 filter sees [count, places, channels * 9], the plain way."""
    seen = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2))
    return seen.reshape(len(images), 64, -1)


def copy_weights(network, layers):
    """Set our layers to the weights of a PyTorch network."""
    arrays = [value.detach().numpy() for value in network.state_dict().values()]
    for mine, theirs in zip(layers, as_layers(arrays), strict=True):
        mine[:] = theirs


def as_layers(arrays):
    conv, conv_bias, dense, dense_bias, last, last_bias = arrays
    laid_out = dense.reshape(128, 16, 8, 8).transpose(2, 3, 1, 0)
    return Layers(conv.transpose(1, 2, 3, 0), conv_bias, laid_out, dense_bias, last, last_bias)


def close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1e-6, np.abs(theirs).max()))


@given(st.integers(0, 10_000), st.sampled_from([1, 4, 7, 10, 14]), st.sampled_from([0.02, 0.2, 0.9]))
@settings(max_examples=30)
def test_patches_are_what_filters_see(seed, channels, density):
    images = random_images(seed, channels, density=density)
    patches = find_patches(pack(images), images.shape[1:])
    plain = windows(images)
    rebuilt = np.zeros_like(plain)
    for i, place in np.ndindex(patches.number.shape):
        rebuilt[i, place, cells_of(patches.cells, patches.first, patches.number[i, place])] = True
    np.testing.assert_array_equal(rebuilt, plain)
    assert len(patches.first) - 1 == len(np.unique(plain.reshape(-1, plain.shape[2]), axis=0))


def test_the_usual_patch_is_the_most_frequent_one():
    images = random_images(5, 4, count=20, density=0.03)
    for weight in (None, np.random.default_rng(0).integers(1, 9, size=20)):
        patches = find_patches(pack(images), images.shape[1:], weight)
        for place in range(64):
            counts = np.bincount(np.repeat(patches.number[:, place], 1 if weight is None else weight))
            assert counts[patches.usual[place]] == counts.max()


def cells_of(cells, bounds, number):
    """Return the cells of a patch, or of a row of a batch."""
    found = cells[bounds[number] : bounds[number + 1]].view(np.uint8)
    return found[found != NO_CELL]


def test_many_patches_outgrow_the_table():
    images = random_images(0, 10, count=300, density=0.5)
    patches = find_patches(pack(images), images.shape[1:])
    assert len(patches.first) - 1 == len(np.unique(windows(images).reshape(-1, 90), axis=0)) > 10_000


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=12))
@settings(max_examples=30)
def test_a_batch_is_a_table_of_distinct_patches(states):
    images = random_images(1, 4)
    patches = find_patches(pack(images), images.shape[1:])
    batch = new_batch(len(states), patches)
    for _ in range(2):  # room is used again
        batch.image[:] = states
        fill_batch(batch, patches)
        source = batch.source[: batch.n_patches[0]]
        assert len(set(source)) == len(source)
        for number, patch in enumerate(source):
            mine = cells_of(batch.cells, batch.cell_bounds, number)
            np.testing.assert_array_equal(mine, cells_of(patches.cells, patches.first, patch))
        for place in range(64):
            rows = range(batch.row_bounds[place], batch.row_bounds[place + 1])
            usual = patches.usual[place]
            shown = [patches.number[state, place] if state >= 0 else usual for state in states]
            assert source[batch.patch[rows[0]]] == usual
            assert sorted(source[batch.patch[rows]]) == sorted({*shown, usual})
            found = np.full(len(states), usual)
            for row in rows:
                members = batch.member[batch.member_bounds[row] : batch.member_bounds[row + 1]]
                assert list(members) == sorted(members)
                assert min(len(members), 2) == (0 if row == rows[0] else 1 if row >= batch.first_single[place] else 2)
                found[members] = source[batch.patch[row]]
            np.testing.assert_array_equal(found, shown)
    assert len(source) == batch.patch[: rows[-1] + 1].max() + 1


def all_outputs(layers, made, size):
    return np.array([[output(layers, made.hidden, i, a) for a in range(len(layers.output_bias))] for i in range(size)])


@pytest.mark.parametrize(("channels", "n_outputs"), [(4, 3), (7, 3), (10, 6), (4, 1)])
def test_forwards_and_backwards_agree_with_autograd(channels, n_outputs):
    torch.manual_seed(0)
    images = random_images(2, channels, count=20)
    network = SmallCnn(channels, n_outputs)
    ours = new_network(ImageArchitecture(channels), n_outputs, np.random.default_rng(0))
    copy_weights(network, ours.layers)
    patches = find_patches(pack(images), images.shape[1:])
    states = np.array([0, 3, 3, 19, 7, 7, 7, 1, 2], np.int32)
    batch, made = new_batch(len(states), patches), new_pass(len(states))
    batch.image[:] = states
    fill_batch(batch, patches)
    theirs = network(to_tensor(images[states]))
    close(outputs(ours.layers, images[states]), theirs.detach().numpy())
    wanted = np.random.default_rng(3).normal(size=theirs.shape).astype(np.float32)
    wanted[0] = 0
    (theirs * torch.from_numpy(wanted)).sum().backward()
    for _ in range(2):  # nothing is left over from the first time
        forward(ours.layers, batch, made)
        close(all_outputs(ours.layers, made, len(states)), theirs.detach().numpy())
        backward(ours.layers, batch, made, wanted, ours.gradient)
        for mine, other in zip(ours.gradient, as_layers([p.grad.numpy() for p in network.parameters()]), strict=True):
            close(mine, other)


def test_gradients_of_many_rows_agree_with_autograd():
    """Places with more rows than are processed together, most of them of a single image."""
    torch.manual_seed(1)
    images, network = random_images(3, 10, count=90, density=0.05), SmallCnn(10, 6)
    ours = new_network(ImageArchitecture(10), 6, np.random.default_rng(0))
    copy_weights(network, ours.layers)
    patches = find_patches(pack(images), images.shape[1:])
    states = np.append(np.arange(90), np.arange(40)).astype(np.int32)
    batch, made = new_batch(len(states), patches), new_pass(len(states))
    batch.image[:] = states
    fill_batch(batch, patches)
    assert np.diff(batch.row_bounds).max() > 2 * BLOCK
    wanted = np.random.default_rng(3).normal(size=(len(states), 6)).astype(np.float32)
    (network(to_tensor(images[states])) * torch.from_numpy(wanted)).sum().backward()
    forward(ours.layers, batch, made)
    backward(ours.layers, batch, made, wanted, ours.gradient)
    for mine, other in zip(ours.gradient, as_layers([p.grad.numpy() for p in network.parameters()]), strict=True):
        close(mine, other)


def test_missing_images_change_nothing():
    images = random_images(4, 4)
    network = new_network(ImageArchitecture(4), 1, np.random.default_rng(0))
    patches = find_patches(pack(images), images.shape[1:])
    batch, made = new_batch(4, patches), new_pass(4)
    batch.image[:] = [-1, 2, -1, 5]
    fill_batch(batch, patches)
    forward(network.layers, batch, made)
    close(all_outputs(network.layers, made, 4)[[1, 3]], outputs(network.layers, images[[2, 5]]))


def test_adam_and_targets_move_like_pytorchs():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=50).astype(np.float32)
    theirs = torch.nn.Parameter(torch.from_numpy(flat.copy()))
    optimiser = torch.optim.Adam([theirs], 1e-2)
    memory = Adam(np.zeros(50, np.float32), np.zeros(50, np.float32))
    for count in range(1, 6):
        gradient = rng.normal(size=50).astype(np.float32)
        theirs.grad = torch.from_numpy(gradient.copy())
        optimiser.step()
        adam_step(flat, gradient, memory, 1e-2, count)
        close(flat, theirs.detach().numpy(), 1e-6)
    memory.first[0], memory.second[0], memory.first[1], before = 1e-38, 1e-38, -1e-38, flat[:2].copy()
    adam_step(flat, np.zeros(50, np.float32), memory, 1e-2, 6)
    assert memory.first[0] == memory.second[0] == memory.first[1] == 0  # not subnormal, which would be slow
    np.testing.assert_array_equal(flat[:2], before)
    target = np.zeros(50, np.float32)
    follow(target, flat, 0.25)
    close(target, 0.25 * flat)


@pytest.mark.parametrize("game", ["Breakout", "Seaquest"])
def test_updates_are_those_of_plain_pytorch(game):
    """Five updates of implicit Q-learning written with autograd, and ours, from the same weights and batches."""
    torch.manual_seed(1)
    data = selectenv.make_problem(game, **GAME).dataset
    setting, channels = Settings(batch=64), data.images.shape[2]
    plain = TorchIql(channels, data.n_actions, setting)
    run = IqlRun(ordinary(data), architecture_of(data), data.n_actions, 0.99, setting, np.random.default_rng(0))
    theirs = [plain.first, plain.second, plain.value, *plain.targets]
    for network, other in zip(run.networks.values(), theirs, strict=True):
        copy_weights(other, network.layers)
    chosen = np.random.default_rng(2).integers(len(data), size=(5, 64))
    losses = np.mean([plain.update(*tensors(data, batch)) for batch in chosen], axis=0)
    run.advance(chosen[:2], 0)
    first = run.losses
    run.advance(chosen[2:], 2)
    np.testing.assert_allclose((2 * first + 3 * run.losses) / 5, losses, rtol=1e-4)
    for network, other in zip(run.networks.values(), theirs, strict=True):
        for mine, arrays in zip(
            network.layers, as_layers([p.detach().numpy() for p in other.parameters()]), strict=True
        ):
            np.testing.assert_allclose(mine, arrays, atol=2e-5)


def test_cloning_is_cross_entropy():
    torch.manual_seed(2)
    data = selectenv.make_problem("Asterix", **GAME).dataset
    network = SmallCnn(4, data.n_actions)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    everything = Transitions(data.state, data.action, data.next_state, np.zeros(len(data), np.float32))
    run = CloningRun(everything, architecture_of(data), data.n_actions, Settings(batch=32), np.random.default_rng(0))
    copy_weights(network, run.logits)
    chosen = np.random.default_rng(2).integers(len(data), size=(3, 32))
    losses = []
    for batch in chosen:
        states, actions, *_ = tensors(data, batch)
        loss = torch.nn.functional.cross_entropy(network(states), actions)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    run.advance(chosen, 0)
    np.testing.assert_allclose(run.losses, np.mean(losses), rtol=1e-4)
    for mine, other in zip(run.logits, as_layers([p.detach().numpy() for p in network.parameters()]), strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-5)


def test_parts_of_a_network_share_its_memory():
    network = new_network(ImageArchitecture(4), 3, np.random.default_rng(0))
    assert sum(part.size for part in network.layers) == len(network.flat)
    network.flat[:] = 0
    assert all((part == 0).all() for part in split(network.flat, 4, 3))
    assert all((part == 0).all() for part in network.layers)
