"""Random streams, collecting and Q-learning, draw by draw against plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selectenv.domains.tabular import expert_actions, mixture_policy
from selectenv.kernels.rng import next_below, next_unit, next_word
from selectenv.kernels.tabular.qlearning import label_set_seed, q_learning
from selectenv.kernels.tabular.sample import collect
from tests.selectenv import twins


@given(st.integers(0, 2**64 - 1))
def test_split_mix_is_the_published_generator(seed):
    state, twin = np.array([seed], np.uint64), twins.SplitMix(seed)
    assert [int(next_word(state)) for _ in range(5)] == [twin.word() for _ in range(5)]
    assert [next_unit(state) for _ in range(5)] == [twin.unit() for _ in range(5)]
    assert [next_below(state, 7) for _ in range(9)] == [twin.below(7) for _ in range(9)]


def test_split_mix_known_words():
    """The reference implementation's first words for seed 0."""
    twin = twins.SplitMix(0)
    assert [twin.word() for _ in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@given(twins.worlds, st.integers(0, 2**64 - 1))
def test_collecting_agrees_with_a_plain_walk(world, seed):
    policy = mixture_policy(expert_actions(world, "optimal"), 0.4, "all")
    cumulative = np.cumsum(policy, axis=1)
    cumulative[:, -1] = 1.0
    size = 40
    found = collect(world.walk, cumulative, size, np.array([seed], np.uint64))
    twin, rows = twins.SplitMix(seed), []
    s, steps = twin.draw(world.start), 0
    for i in range(size):
        a = twin.draw(policy[s])
        pair = np.flatnonzero((world.state == s) & (world.action == a))
        k = pair[twin.draw(world.probability[pair])]
        following, steps = int(world.next_state[k]), steps + 1
        cut = following >= 0 and (steps == world.horizon or i == size - 1)
        rows.append((s, a, following, world.reward[k], following < 0, cut))
        if following < 0 or cut:
            s, steps = twin.draw(world.start), 0
        else:
            s = following
    for column, expected in zip(found, zip(*rows, strict=True), strict=True):
        assert column.tolist() == list(expected)


@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.sampled_from([1, 7, 50, 10**9]))
def test_q_learning_agrees_with_a_plain_loop(seed, labelled_only, exclude, max_samples):
    rng = np.random.default_rng(seed)
    n, actions, unique, size, passes = 4, 3, 9, 50, 4
    state, action = rng.integers(0, n, unique), rng.integers(0, actions, unique)
    following, reward = rng.integers(-1, n, unique), rng.normal(size=unique)
    label, samples = rng.random(n) < 0.5, rng.integers(0, unique, size)
    excluded = np.zeros((n, actions), bool)
    if exclude:
        excluded[:] = True
        excluded[state, action] = False
    q, progress, errors = np.zeros((n, actions)), np.zeros(3, np.int64), np.array([np.inf, 0.0])
    columns = [column.astype(np.int32) for column in (samples, state, action, following)]
    rule, word = (label, labelled_only, excluded, 0.9, 0.1, passes, 0.02, max_samples), np.array([seed], np.uint64)
    while not q_learning(*columns, reward, *rule, word, progress, errors, q):
        pass
    twin, expected, before, order, run = twins.SplitMix(seed), np.zeros((n, actions)), np.inf, samples.tolist(), 0
    while run < passes:
        run += 1
        errors = []
        for i in reversed(range(size)):
            j = twin.below(i + 1)
            order[i], order[j] = order[j], order[i]
            k = order[i]
            if labelled_only and not label[state[k]]:
                continue
            beyond = [expected[following[k], a] for a in range(actions) if not excluded[following[k], a]]
            worth = following[k] >= 0 and (not labelled_only or label[following[k]]) and len(beyond) > 0
            delta = reward[k] + (0.9 * max(beyond) if worth else 0.0) - expected[state[k], action[k]]
            expected[state[k], action[k]] += 0.1 * delta
            errors.append(abs(delta))
        error = sum(errors) / max(len(errors), 1)
        if abs(before - error) < 0.02:
            break
        before = error
    assert progress[0] == run
    np.testing.assert_allclose(q, expected, atol=1e-12)


def test_every_label_set_has_its_own_seed():
    masks = np.eye(6, dtype=bool)
    seeds = {int(label_set_seed(np.uint64(1), mask)) for mask in masks}
    assert len(seeds) == 6
    assert label_set_seed(np.uint64(1), masks[2]) == label_set_seed(np.uint64(1), masks[2].copy())
