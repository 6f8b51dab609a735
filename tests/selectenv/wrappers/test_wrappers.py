"""BatchLabels, with several labels per step, and OneShot, the selection as a bandit."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import example, given
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import selectenv
from selectenv.errors import ActionError, EpisodeError, OptionError
from selectenv.wrappers import BatchLabels, OneShot


def make(name="Tree", **options):
    return gym.make(selectenv.env_id(name), dataset_size=2000, **options)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")  # it is: that is the point
@pytest.mark.parametrize("name", selectenv.TABULAR)
def test_checkers_pass(name):
    check_env(BatchLabels(make(name, budget=4), 2), skip_render_check=True)
    sb3_check_env(BatchLabels(make(name, budget=4), 2))
    check_env(OneShot(make(name, budget=4)), skip_render_check=True)
    sb3_check_env(OneShot(make(name, budget=4)))


def test_a_batch_beyond_the_budget_is_cut():
    env = BatchLabels(make(budget=3), 2)
    env.reset(seed=0)
    env.step([3, 4])
    *_, terminated, _, info = env.step([5, 6])
    assert terminated
    assert (info["state"].tolist(), info["wasted"], len(info["revealed"])) == ([5], 0, 1)


@given(st.integers(1, 7), st.integers(0, 1000), st.sampled_from(["final", "marginal"]), st.booleans())
@example(k=3, seed=212, mode="final", initial=False)
def test_batches_earn_what_single_steps_earn(k, seed, mode, initial):
    """Values are scaled by the largest magnitude so far, and single steps refit more often, so scales may differ."""
    options = {"budget": 7, "reward_mode": mode, "initial_ratio": 0.1 if initial else 0.0}
    batched, single = BatchLabels(make(**options), k), make(**options)
    left = 7 - len(batched.reset(seed=seed)[1]["initial"])
    single.reset(seed=seed)
    actions = np.random.default_rng(seed).integers(0, 31, 4 * 7)
    totals, wasted, terminated = [0.0, 0.0], [0, 0], False
    for first in range(0, 7, k):
        obs, reward, terminated, _, info = batched.step(actions[first : first + k])
        totals[0] += reward
        wasted[0] += info["wasted"]
        if terminated:
            break
    for action in actions[:left]:
        alone, reward, over, _, info = single.step(int(action))
        totals[1] += reward
        wasted[1] += info["wasted"]
    assert terminated
    assert over
    assert totals[0] == pytest.approx(totals[1], abs=1e-9)
    assert wasted[0] == wasted[1]
    for name in obs.keys() - {"value"}:
        np.testing.assert_array_equal(obs[name], alone[name])
    values = batched.unwrapped.problem.learn(batched.unwrapped.labels).values
    for seen in (obs, alone):
        scale = np.abs(values).max() / max(np.abs(seen["value"]).max(), 1e-300)
        np.testing.assert_allclose(seen["value"] * scale, values, rtol=1e-6)
    np.testing.assert_array_equal(batched.unwrapped.labels, single.unwrapped.labels)


def test_batch_masks_and_errors():
    env = BatchLabels(make(budget=4), 2)
    env.reset(seed=0)
    env.step([3, 3])
    masks = env.action_masks()
    assert masks.shape == (62,)
    assert not masks[3]
    for wrong in ([1], [1, 2, 3], [1.5, 2.0], [0, 31], [-1, 2], [[1], [2, 3]], 7):
        with pytest.raises(ActionError):
            env.step(wrong)
    for k in (0, 5, 1.5, True):
        with pytest.raises(OptionError, match="k must be"):
            BatchLabels(make(budget=4), k)
    with pytest.raises(OptionError, match="reward selection"):
        BatchLabels(gym.make("CartPole-v1"), 2)


def test_one_shot_labels_the_best_scores():
    env = OneShot(make(budget=3))
    env.reset(seed=0)
    scores = np.zeros(31, np.float32)
    scores[[15, 19, 23]] = [0.5, 0.2, 0.9]
    _, reward, terminated, _, info = env.step(scores)
    assert terminated
    assert env.unwrapped.labels.tolist() == [23, 15, 19]
    assert reward == info["performance"] == env.unwrapped.problem.score([15, 19, 23])
    with pytest.raises(EpisodeError):
        env.step(scores)


def test_wrappers_in_between_take_part():
    def wrapped():
        env = gym.wrappers.RecordEpisodeStatistics(make(budget=4))
        return gym.wrappers.TransformReward(gym.wrappers.FlattenObservation(env), lambda reward: 100 * reward)

    for env, action in ((BatchLabels(wrapped(), 4), np.array([15, 19, 23, 17])), (OneShot(wrapped()), np.arange(31.0))):
        env.reset(seed=0)
        obs, reward, _, _, info = env.step(action)
        assert env.observation_space.contains(obs)
        assert reward == pytest.approx(100 * info["performance"])
        assert info["episode"]["l"] == 1


def test_what_scores_earn_does_not_depend_on_when_it_is_asked():
    env = OneShot(make(budget=5, initial_ratio=0.1))
    scores = np.random.default_rng(0).normal(size=(4, 31))
    with pytest.raises(EpisodeError, match="reset"):
        env.performance_many(scores)
    env.reset(seed=0)
    before = env.performance_many(scores)
    env.step(scores[0])
    np.testing.assert_array_equal(env.performance_many(scores), before)
    assert (env.masks(scores).sum(axis=1) == 5).all()


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.1]))
def test_many_scores_at_once_agree_with_playing_them(seed, initial):
    env = OneShot(make(budget=5, initial_ratio=initial))
    scores = np.random.default_rng(seed).integers(-2, 3, (6, 31)).astype(float)  # with ties
    env.reset(seed=seed)
    many = env.performance_many(scores)
    played = []
    for row in scores:
        env.reset(seed=seed)
        played.append(env.step(row)[1])
    np.testing.assert_allclose(many, played, atol=1e-12)
    assert env.unwrapped.calls.asked == 6


def test_one_shot_skips_what_cannot_be_labelled():
    env = OneShot(make("Graph", expert_share=1.0, budget=3))
    env.reset(seed=0)
    closed = ~env.unwrapped.action_masks()
    env.step(np.where(closed, 9.0, 0.0))
    assert not closed[env.unwrapped.labels].any()


@pytest.mark.parametrize("scores", [np.zeros(30), np.zeros((2, 31)), np.full(31, np.nan), np.array(["a"] * 31)])
def test_invalid_scores_are_refused(scores):
    env = OneShot(make(budget=3))
    env.reset(seed=0)
    with pytest.raises(ActionError):
        env.step(scores)


def test_many_labels_are_linear_in_their_number():
    """100,000 labels on 200,000 states in ten steps; one at a time would copy all states 100,000 times."""
    n = 200_000
    numbers = np.arange(n)
    data = selectenv.from_arrays(
        numbers, np.zeros(n, int), np.minimum(numbers + 1, n - 1), numbers == n - 1, rewards=numbers % 2
    )
    env = BatchLabels(selectenv.make_env(dataset=data, budget=100_000, labels_per_refit=50_000), 10_000)
    env.reset(seed=0)
    terminated, first = False, 0
    while not terminated:
        _, _, terminated, _, info = env.step(numbers[first : first + 10_000])
        first += 10_000
        assert info["wasted"] == 0
    np.testing.assert_array_equal(env.unwrapped.labels, numbers[:100_000])
