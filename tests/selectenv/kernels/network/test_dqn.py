"""Deep Q-learning by differences from the most frequent patch, against PyTorch."""

import numpy as np
import pytest
import torch
from torch import nn

from experiments.training.example_dqn import N_ACTIONS, DqnRun, DqnSettings, as_expert
from experiments.training.small_cnn import SmallCnn, to_tensor
from selectenv.kernels.network.cnn import outputs
from selectenv.kernels.network.dqn import choose_action, dqn_update

SMALL = DqnSettings(frames=400, replay=150, random_frames=100, exploration_frames=100, target_every=20)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def in_torch(layers, channels):
    network = SmallCnn(channels, N_ACTIONS)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in as_expert(layers).items()})
    return network


def images_of(run):
    bits = np.unpackbits(run.images, axis=1, count=int(np.prod(run.world.shape)))
    return bits.view(bool).reshape(-1, *run.world.shape)


@pytest.mark.parametrize("game", ["Breakout", "Asterix", "Freeway", "Seaquest"])
def test_updates_equal_those_of_pytorch(game):
    """The same batches give the same losses and weights as autograd and torch's centred RMSprop."""
    run = DqnRun(game, 3, SMALL)
    while run.frame < 300:
        run.advance()
    rule, images = run.settings, to_tensor(images_of(run))
    online, target = in_torch(run.online.layers, run.channels), in_torch(run.target.layers, run.channels)
    optimiser = torch.optim.RMSprop(
        online.parameters(), lr=rule.rate, alpha=rule.decay, eps=rule.epsilon, centered=True
    )
    for name in ("mean", "square"):
        run.parameters[name][:] = 0
    low, high, ring = run.frame - rule.replay, run.frame, rule.replay + 1
    reward = torch.from_numpy(run.replay.reward)
    going_on = torch.from_numpy(~run.replay.terminated).float()
    for _ in range(30):
        draws = run.random.copy()
        ours = dqn_update(
            run.online, run.target, run.replay, run._patches, run._batches[1], run._passes[1], (low, high), run.random,
            run._rule,
        )  # fmt: skip
        chosen = drawn(draws, low, high, rule.batch)
        assert len(set(chosen)) == rule.batch
        assert low <= min(chosen)
        assert max(chosen) < high
        now, later = torch.tensor(chosen) % ring, (torch.tensor(chosen) + 1) % ring
        with torch.no_grad():
            goal = reward[now] + rule.gamma * target(images[later]).max(1).values * going_on[now]
        taken = online(images[now]).gather(1, torch.from_numpy(run.replay.action)[now].long()[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(taken, goal)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        assert ours == pytest.approx(loss.item(), rel=1e-4, abs=1e-7)
    for name, array in run.weights.items():
        theirs = online.state_dict()[name].numpy()
        np.testing.assert_allclose(array, theirs, rtol=0, atol=2e-5 * np.abs(theirs).max())


def drawn(random, low, high, size):
    """Return the transitions that an update draws, by plain arithmetic on the state of SplitMix64."""
    state, mask, chosen = int(random[0]), 2**64 - 1, []
    while len(chosen) < size:
        state = (state + 0x9E3779B97F4A7C15) & mask
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        word ^= word >> 31
        number = low + (((word >> 32) * (high - low)) >> 32)
        if number not in chosen:
            chosen.append(number)
    return chosen


def test_greedy_actions_are_those_of_the_network():
    run = DqnRun("Breakout", 0, SMALL)
    while run.frame < 200:
        run.advance()
    values = outputs(run.online.layers, images_of(run))
    for slot in range(0, len(run.images), 7):
        action = choose_action(run.online, run._patches, run._batches[0], run._passes[0], slot, 0.0, run.random)
        assert values[slot, action] >= values[slot].max() - 1e-5


def test_images_of_the_ring_are_those_of_the_game():
    run = DqnRun("Asterix", 0, SMALL)
    while run.frame < 40:
        run.advance()
    np.testing.assert_array_equal(images_of(run)[run.frame], run.game.env.state())
