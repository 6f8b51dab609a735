"""The monitor: what it promises is in the event files, alone and under vectorised environments."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import agents
import selectenv
from agents.sb3 import VecSelection
from selectenv.errors import ClosedError, MissingExtraError, OptionError
from selectenv.wrappers import BatchLabels, TensorBoardMonitor

SIZE = {"dataset_size": 3_000}


def read(folder):
    return EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "histograms": 0}).Reload()


def values(log, tag):
    return [event.value for event in log.Scalars(tag)]


def test_everything_promised_is_there(tmp_path):
    env = TensorBoardMonitor(gym.make("RewardSelection-Tree-v0", budget=5, **SIZE), tmp_path, detail_every=2)
    episodes = [agents.play(env, agents.make("visitation"), seed=seed) for seed in range(3)]
    problem = env.unwrapped.problem
    calls = problem.evaluator.calls
    env.close()
    log = read(tmp_path / "env-0")
    np.testing.assert_allclose(values(log, "episode/performance"), [e.performance for e in episodes], rtol=1e-6)
    full = problem.score(problem.dataset.labelable)
    np.testing.assert_allclose(
        values(log, "episode/regret_to_full_labels"), [full - e.performance for e in episodes], rtol=1e-5
    )
    assert values(log, "episode/labels") == [5, 5, 5]
    assert values(log, "episode/wasted") == [0, 0, 0]
    assert values(log, "episode/cost") == [0, 0, 0]
    assert calls == 0  # looking costs nothing
    assert [event.step for event in log.Scalars("episode/performance")] == [1, 2, 3]
    spread = log.Histograms("states")
    assert [event.histogram_value.num for event in spread] == [5, 5, 5]
    assert spread[0].histogram_value.max == episodes[0].labels.max()
    images = log.Images("selection")
    assert [image.step for image in images] == [1, 3]
    assert images[0].encoded_image_string[:4] == b"\x89PNG"
    assert sorted(path.name for path in (tmp_path / "env-0").iterdir() if path.is_dir()) == [
        "episode-000001",
        "episode-000003",
    ]


def test_performance_against_labels(tmp_path):
    env = TensorBoardMonitor(gym.make("RewardSelection-Tree-v0", budget=3, **SIZE), tmp_path)
    env.reset(seed=0)
    for state in (15, 15, 19):
        env.step(state)
    env.close()
    curve = read(tmp_path / "env-0" / "episode-000001")
    problem = selectenv.make_problem("Tree", **SIZE)
    wanted = [problem.performance([15]), problem.performance([15]), problem.performance([15, 19])]
    np.testing.assert_allclose(values(curve, "by_labels/performance"), wanted, rtol=1e-6)
    assert [event.step for event in curve.Scalars("by_labels/regret_to_full_labels")] == [1, 2, 3]
    assert values(read(tmp_path / "env-0"), "episode/wasted") == [1]


def test_evaluator_calls_of_the_agent_are_counted(tmp_path):
    env = TensorBoardMonitor(gym.make("RewardSelection-Tree-v0", budget=3, **SIZE), tmp_path)
    env.reset(seed=0)
    env.unwrapped.problem.performance([1])
    for state in (1, 2, 3):
        env.step(state)
    env.close()
    assert values(read(tmp_path / "env-0"), "episode/cost") == [2]  # one evaluation, and the return


def test_a_search_is_counted_with_the_episode_that_follows(tmp_path):
    env = TensorBoardMonitor(gym.make("RewardSelection-Tree-v0", budget=3, **SIZE), tmp_path)
    agent = agents.make("sequential-greedy")
    agent.train(env)
    cost = agents.play(env, agent).cost
    agents.play(env, agents.make("uniform"))
    env.close()
    assert cost == agent.training_calls.cost > 0
    assert values(read(tmp_path / "env-0"), "episode/cost") == [cost, 0]


def test_episodes_that_are_cut_short_are_logged_too(tmp_path):
    inner = gym.make("RewardSelection-Tree-v0", budget=5, max_episode_steps=2, **SIZE)
    env = TensorBoardMonitor(inner, tmp_path)
    env.reset(seed=0)
    for state in (1, 2):
        env.step(state)
    env.close()
    assert values(read(tmp_path / "env-0"), "episode/labels") == [2]


def test_the_test_phase_is_watched_at_its_end_only(tmp_path):
    env = TensorBoardMonitor(gym.make("RewardSelection-Tree-v0", budget=3, phase="test", **SIZE), tmp_path)
    agents.play(env, agents.make("terminal"))
    env.close()
    assert len(values(read(tmp_path / "env-0"), "episode/performance")) == 1
    assert [e.step for e in read(tmp_path / "env-0" / "episode-000001").Scalars("by_labels/performance")] == [3]


def test_data_without_a_world_have_no_performance(tmp_path):
    data = selectenv.from_arrays([0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [False, True, False, True])
    env = TensorBoardMonitor(selectenv.make_env(dataset=data, budget=1), tmp_path)
    agents.play(env, agents.make("uniform"))
    env.close()
    tags = read(tmp_path / "env-0").Tags()["scalars"]
    assert "episode/performance" not in tags
    assert "episode/labels" in tags


def test_around_other_wrappers(tmp_path):
    inner = BatchLabels(gym.make("RewardSelection-Tree-v0", budget=6, **SIZE), 2)
    env = TensorBoardMonitor(inner, tmp_path)
    agents.play(env, agents.make("uniform"))
    assert env.action_masks().shape == (62,)
    env.close()
    assert values(read(tmp_path / "env-0"), "episode/labels") == [6]


def test_under_vectorised_environments(tmp_path):
    def make():
        return TensorBoardMonitor(gym.make("RewardSelection-Graph-v0", budget=3, **SIZE), tmp_path)

    envs = DummyVecEnv([make, make])
    envs.reset()
    for step in range(6):
        envs.step(np.array([step % 15, (step + 5) % 15]))
    envs.close()
    for number in range(2):
        assert len(values(read(tmp_path / f"env-{number}"), "episode/performance")) == 2


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("options", [{}, {"phase": "test"}, {"reward_mode": "marginal"}, {"dataset_seed": None}])
def test_vectors_log_what_single_environments_log(tmp_path, mode, options):
    """Episode e of environment i has the number 1 + 2 e + i: they all have the same length."""
    options = {"budget": 5, "initial_ratio": 0.1, "cache": False, **SIZE, **options}
    envs = gym.make_vec("RewardSelection-Graph-v0", 2, autoreset_mode=mode, **options)
    envs = TensorBoardMonitor(envs, tmp_path / "vector", detail_every=3)
    alone = [
        TensorBoardMonitor(gym.make("RewardSelection-Graph-v0", **options), tmp_path / f"alone-{i}", detail_every=1)
        for i in range(2)
    ]
    envs.reset(seed=7)
    for i, env in enumerate(alone):
        env.reset(seed=7 + i)
    rng = np.random.default_rng(0)
    for episode in range(3):
        if episode and mode == AutoresetMode.NEXT_STEP:
            envs.step(np.zeros(2, int))
        for _ in range(4):
            actions = rng.integers(6, size=2)
            ended = envs.step(actions)[2]
            for env, action in zip(alone, actions, strict=True):
                env.step(action)
        assert ended.all()
        if mode == AutoresetMode.DISABLED:
            envs.reset(options={"reset_mask": ended})
        for env in alone:
            env.reset()
    np.testing.assert_array_equal(envs.action_masks(), envs.unwrapped.action_masks())
    for one in (envs, *alone):
        one.close()
    together = read(tmp_path / "vector" / "env-0")
    for i in range(2):
        log = read(tmp_path / f"alone-{i}" / "env-0")
        assert log.Tags()["scalars"] == together.Tags()["scalars"]
        for tag in log.Tags()["scalars"]:
            assert values(log, tag) == values(together, tag)[i::2]
        for one, other in zip(log.Histograms("states"), together.Histograms("states")[i::2], strict=True):
            assert one.histogram_value == other.histogram_value
    assert [image.step for image in together.Images("selection")] == [1, 4]
    for number, (i, episode) in {1: (0, 1), 4: (1, 2)}.items():
        curves = (
            read(folder / f"episode-{n:06d}")
            for folder, n in ((tmp_path / "vector" / "env-0", number), (tmp_path / f"alone-{i}" / "env-0", episode))
        )
        one, other = ([(e.step, e.value) for e in log.Scalars("by_labels/performance")] for log in curves)
        assert one == other
    for calls, env in zip(envs.unwrapped.calls, alone, strict=True):
        assert calls.cost == env.unwrapped.calls.cost
    with pytest.raises(ClosedError, match="the monitor is closed"):
        envs.step(np.zeros(2, int))
    with pytest.raises(ClosedError, match="the monitor is closed"):
        envs.reset()


def test_training_over_a_monitored_vector(tmp_path):
    inner = gym.make_vec("RewardSelection-Graph-v0", 4, autoreset_mode="SameStep", budget=3, **SIZE)
    envs = VecSelection(TensorBoardMonitor(inner, tmp_path), flat=True)
    PPO("MlpPolicy", envs, n_steps=6, batch_size=8, n_epochs=1, seed=0).learn(24)
    envs.close()
    assert values(read(tmp_path / "env-0"), "episode/cost") == [1] * 8


def test_what_it_refuses(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="detail_every"):
        TensorBoardMonitor(gym.make("RewardSelection-Tree-v0", **SIZE), tmp_path, detail_every=0)
    with pytest.raises(OptionError, match="reward selection"):
        TensorBoardMonitor(gym.make("CartPole-v1"), tmp_path)
    with pytest.raises(OptionError, match="vector environment of reward selection"):
        TensorBoardMonitor(gym.make_vec("CartPole-v1", 2), tmp_path)
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    with pytest.raises(MissingExtraError, match="meta"):
        TensorBoardMonitor(gym.make("RewardSelection-Tree-v0", **SIZE), tmp_path)
