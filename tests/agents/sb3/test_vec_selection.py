"""VecSelection: what Stable-Baselines3 sees is what it would see of single environments, only sooner."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import agents
import selectenv
from agents.errors import EnvironmentCopyError
from agents.learned.scorer import StateScorer
from agents.sb3 import sb3_agents
from agents.sb3.feature_vector import FeatureVector
from agents.sb3.feature_wrapper import FeatureWrapper, RewardScales
from agents.sb3.scoring_policies import PooledScorer
from agents.sb3.vec_selection import VecSelection
from selectenv.errors import MissingFeatureError, OptionError, OptionTypeError
from selectenv.wrappers import FlatObservation, TensorBoardMonitor

SMALL = {"dataset_size": 1_000}
TREE, GRAPH = selectenv.env_id("Tree"), selectenv.env_id("Graph")


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """The networks are small, and several processes of the suite share the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def dummy(count, wrap=lambda env: env, **options):
    """Return the environments that SB3 makes itself: one after the other."""
    return DummyVecEnv([lambda: wrap(gym.make(TREE, **options, **SMALL))] * count)


def assert_equal(one, other):
    if isinstance(one, dict):
        assert set(one) == set(other)
        for key, value in one.items():
            assert_equal(value, other[key])
    else:
        np.testing.assert_array_equal(one, other)


def assert_same_play(one, other, steps, seed):
    """Play two VecEnvs side by side; they must show the same."""
    assert one.observation_space == other.observation_space
    assert one.action_space == other.action_space
    for env in (one, other):
        env.seed(seed)
    assert_equal(one.reset(), other.reset())
    for mine, theirs in zip(one.reset_infos, other.reset_infos, strict=True):
        assert_equal(mine, theirs)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        np.testing.assert_array_equal(get_action_masks(one), get_action_masks(other))
        actions = rng.integers(one.action_space.n, size=one.num_envs)
        found, wanted = one.step(actions), other.step(actions)
        assert_equal(found[0], wanted[0])
        for mine, theirs in zip(found[1:3], wanted[1:3], strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
        for mine, theirs in zip(found[3], wanted[3], strict=True):
            assert_equal(mine, theirs)
        for mine, theirs in zip(one.reset_infos, other.reset_infos, strict=True):
            assert_equal(mine, theirs)


@pytest.mark.parametrize(
    "options", [{"budget": 2}, {"budget": 3, "reward_mode": "marginal"}, {"budget": (0.05, 0.2)}, {"phase": "test"}]
)
@pytest.mark.parametrize("flat", [False, True])
def test_the_same_as_environments_one_after_the_other(options, flat):
    wanted = dummy(3, FlatObservation if flat else lambda env: env, **options)
    assert_same_play(VecSelection(TREE, 3, flat=flat, **SMALL, **options), wanted, 8, seed=4)


def test_initial_labels_and_options_of_reset():
    pair = VecSelection(TREE, 2, initial_ratio=0.1, budget=6, **SMALL), dummy(2, initial_ratio=0.1, budget=6)
    assert_same_play(*pair, 5, seed=1)
    for env in pair:
        env.set_options({"budget": 2, "initial": [3]})
    assert_same_play(*pair, 4, seed=2)
    pair[0].set_options([{"budget": 2}, {"budget": 3}])
    with pytest.raises(OptionError, match="the same options"):
        pair[0].reset()


def test_seeds():
    env = VecSelection(TREE, 2, initial_ratio=0.2, **SMALL)
    assert env.seed(5) == [5, 6]
    first = env.reset()
    assert env.get_attr("np_random_seed") == [5, 6]
    env.reset()  # without a seed the generators go on
    env.seed(5)
    assert_equal(env.reset(), first)


def test_attributes_and_methods():
    env = VecSelection(TREE, 3, budget=2, render_mode="rgb_array", **SMALL)
    assert is_masking_supported(env)
    env.reset()
    assert env.get_attr("budget", [0, 2]) == [2, 2]
    assert not env.has_attr("nothing")
    env.set_attr("tag", 7, indices=1)
    assert env.get_attr("tag", 1) == [7]
    env.step(np.array([1, 2, 3]))
    masks = env.env_method("action_masks")
    assert [mask.shape for mask in masks] == [(31,)] * 3
    assert not masks[1][2]
    np.testing.assert_array_equal(env.env_method("action_masks", indices=[1])[0], masks[1])
    assert env.env_is_wrapped(FlatObservation) == [False] * 3
    assert [image.ndim for image in env.get_images()] == [3] * 3
    assert VecSelection(TREE, 2, **SMALL).get_images() == [None, None]
    env.close()


def test_environments_and_vectors_are_taken_as_they_are():
    single = gym.make(TREE, budget=2, reward_mode="marginal", **SMALL)
    made = VecSelection(single, 4)
    assert made.num_envs == 4
    assert made.get_attr("options")[0] == single.unwrapped.options
    assert made.get_attr("problem")[0].dataset is single.unwrapped.problem.dataset
    assert made.get_attr("calls")[0] is not single.unwrapped.calls
    flat = VecSelection(FlatObservation(single), 2)
    assert flat.observation_space == FlatObservation(single).observation_space
    vector = gym.make_vec(TREE, 3, autoreset_mode=AutoresetMode.SAME_STEP, **SMALL)
    assert VecSelection(vector).num_envs == 3
    assert VecSelection(FlatObservation(vector)).observation_space.shape == flat.observation_space.shape
    fresh = selectenv.make_env("Tree", dataset_seed=None, budget=1, **SMALL)
    assert VecSelection(fresh, 2).envs.source is fresh.source


def test_wrappers_are_refused_by_name(tmp_path):
    plain = gym.make(GRAPH, budget=2, **SMALL)
    for wrapped, name in (
        (gym.wrappers.TimeLimit(plain, 3), "TimeLimit"),
        (TensorBoardMonitor(plain, tmp_path), "TensorBoardMonitor"),
        (type("Own", (selectenv.RewardSelectionEnv,), {})(plain.unwrapped.problem), "Own"),
    ):
        with pytest.raises(EnvironmentCopyError, match=f"{name} cannot be used with VecSelection"):
            VecSelection(wrapped, 2)
    with pytest.raises(OptionTypeError, match="environment of reward selection"):
        VecSelection(gym.make_vec("CartPole-v1", 2))
    with pytest.raises(OptionTypeError, match="environment of reward selection"):
        VecSelection(gym.make("CartPole-v1"))
    with pytest.raises(OptionError, match="SAME_STEP"):
        VecSelection(gym.make_vec(GRAPH, 2, **SMALL))
    with pytest.raises(OptionError, match="n_envs=3 contradicts the vector environment, which has 2"):
        VecSelection(gym.make_vec(GRAPH, 2, autoreset_mode=AutoresetMode.SAME_STEP, **SMALL), 3)
    with pytest.raises(OptionError, match="options can only be combined with the id"):
        VecSelection(plain, 2, budget=3)


@pytest.mark.parametrize("mode", ["final", "marginal"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("world", ["Tree", "Random"])
def test_features_are_those_of_single_environments(mode, scaled, world):
    options = {"padding": 30, "largest": 30} if world == "Random" else SMALL
    vector = gym.make_vec(
        selectenv.env_id(world), 3, autoreset_mode=AutoresetMode.SAME_STEP, budget=3, reward_mode=mode, **options
    )
    one, other = (RewardScales() if scaled else None for _ in range(2))

    def single():
        env = gym.make(selectenv.env_id(world), budget=3, reward_mode=mode, **options)
        return FeatureWrapper(env, without=("value",), scales=other)

    features = VecSelection(FeatureVector(vector, without=("value",), scales=one))
    assert_same_play(features, DummyVecEnv([single] * 3), 8, seed=2)


PPO_OPTIONS = {"n_steps": 16, "batch_size": 16, "n_epochs": 2}


@pytest.mark.parametrize(
    ("name", "options"),
    [("maskable-ppo", PPO_OPTIONS), ("ppo", PPO_OPTIONS), ("dqn", {"learning_starts": 20, "buffer_size": 100})],
)
@pytest.mark.parametrize("world", ["Tree", "Random"])
def test_training_gives_the_same_weights_as_over_single_environments(monkeypatch, name, options, world):
    trained = []
    for native in (True, False):
        if not native:
            monkeypatch.setattr(sb3_agents, "_can_be_vector", lambda env, count: False)
        more = {"padding": 20, "largest": 20} if world == "Random" else {"reward_mode": "marginal", **SMALL}
        env = gym.make(selectenv.env_id(world), budget=3, **more)
        agent = agents.make(name, hidden=8, n_envs=3, sb3=options)
        agent.train(env, seed=1, steps=96)
        trained.append(agent)
    for one, other in zip(*(agent._scorer.state_dict().values() for agent in trained), strict=True):
        assert torch.equal(one, other)
    assert trained[0].training_calls.cost == trained[1].training_calls.cost


def test_the_native_vector_is_the_default(monkeypatch):
    seen = []
    learn = MaskablePPO.learn
    monkeypatch.setattr(MaskablePPO, "learn", lambda self, *a, **k: seen.append(self.env) or learn(self, *a, **k))
    env = selectenv.make_env("Graph", budget=2, **SMALL)
    for given, count, kind in (
        (env, 2, VecSelection),
        (env, 1, DummyVecEnv),
        (gym.wrappers.RecordEpisodeStatistics(env), 2, DummyVecEnv),
        (lambda: selectenv.make_env("Graph", budget=2, **SMALL), 2, DummyVecEnv),
    ):
        agents.make("maskable-ppo", n_envs=count, hidden=8, sb3=PPO_OPTIONS).train(given, steps=32)
        monitor = seen.pop()
        assert isinstance(monitor, VecMonitor)
        assert type(monitor.venv) is kind


@pytest.mark.parametrize("count", [1, 2])
def test_features_that_the_network_needs(count):
    env = selectenv.make_env("Graph", budget=2, features=["value", "labelled"], **SMALL)
    with pytest.raises(
        MissingFeatureError, match=r"ppo needs .* lacks .*'predecessors', 'termination', 'budget': make"
    ):
        agents.make("ppo", n_envs=count).train(env, steps=32)
    env = selectenv.make_env("Graph", budget=2, features=agents.make("ppo").features, **SMALL)
    agents.make("ppo", n_envs=count, hidden=8, sb3=PPO_OPTIONS).train(env, steps=32)


def test_the_pooled_network_computes_the_same():
    torch.manual_seed(0)
    plain, pooled = StateScorer(8), PooledScorer(8)
    pooled.load_state_dict(plain.state_dict())
    features = torch.rand(4, 9, 21)
    features[:, :, 0] = (torch.rand(4, 9) < 0.8).float()
    for one, other in zip(plain(features), pooled(features), strict=True):
        torch.testing.assert_close(one, other)


def test_maskable_ppo_finds_the_optimum_of_graph():
    env = gym.make(GRAPH, budget=6)
    agent = agents.make("maskable-ppo", steps=4_000, n_envs=16, sb3={"n_steps": 32})
    agent.train(env, seed=0)
    assert agents.play(env, agent, seed=0).performance == pytest.approx(8)


@pytest.mark.parametrize(
    ("env", "options", "text"),
    [
        (GRAPH, {"num_envs": 4}, "n_envs, not num_envs"),
        (GRAPH, {"autoreset_mode": "NextStep"}, "autoreset_mode cannot be chosen"),
        (GRAPH, {"n_envs": 0}, "n_envs must be"),
        ("CartPole-v1", {}, "begin with RewardSelection-"),
    ],
)
def test_likely_mistakes_are_named(env, options, text):
    with pytest.raises(OptionError, match=text):
        VecSelection(env, **options)


def test_a_sync_vector_is_refused_with_the_mode_to_use():
    sync = gym.make_vec(GRAPH, num_envs=2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "SameStep"})
    with pytest.raises(OptionTypeError, match="vector_entry_point"):
        VecSelection(sync)


def test_recorded_statistics_reach_the_info_of_the_episode_that_ended():
    same = AutoresetMode.SAME_STEP
    envs = gym.make_vec(GRAPH, num_envs=2, vectorization_mode="vector_entry_point", budget=2, autoreset_mode=same)
    vector = VecSelection(gym.wrappers.vector.RecordEpisodeStatistics(envs))
    vector.reset()
    vector.step(np.array([7, 9]))
    _, rewards, dones, infos = vector.step(np.array([9, 7]))
    assert dones.all()
    for info, reward in zip(infos, rewards, strict=True):
        assert info["episode"]["r"] == pytest.approx(reward)
        assert info["episode"]["l"] == 2


def test_flat_environments_are_flattened_once():
    flat = VecSelection(FlatObservation(gym.make(GRAPH)), n_envs=2, flat=True)
    assert flat.observation_space == VecSelection(GRAPH, n_envs=2, flat=True).observation_space
