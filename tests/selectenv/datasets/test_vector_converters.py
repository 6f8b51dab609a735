"""Vector data from data frames, episodes, Gymnasium environments and Minari: every number is kept."""

import warnings

import gymnasium as gym
import minari
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from selectenv.datasets.storage import load, save
from selectenv.errors import LogError, OptionError, UnknownNameError
from tests.selectenv.datasets.test_grouping import vector_data


def assert_same(one, other):
    """Compare all that learners see of two datasets, whatever their states are numbered."""
    np.testing.assert_array_equal(one.vectors[one.state], other.vectors[other.state])
    inside = one.next_state >= 0
    np.testing.assert_array_equal(inside, other.next_state >= 0)
    np.testing.assert_array_equal(one.vectors[one.next_state[inside]], other.vectors[other.next_state[inside]])
    for name in ("action", "terminated", "truncated", "episode_start", "hidden_reward"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), library=st.sampled_from(["pandas", "polars"]))
def test_data_frames_keep_every_number(seed, library):
    data = vector_data(seed, size=80)
    frame = data.to_frame(library)
    names = list(data.vectors.columns)
    back = selectenv.from_dataframe(
        frame,
        state=names,
        action="action",
        episode="episode",
        time="step",
        next_state=[f"next_{name}" for name in names],
        terminated="terminated",
        truncated="truncated",
        reward="reward",
        vectors=True,
    )
    assert_same(back, data)
    assert back.vectors.columns == data.vectors.columns


def test_csv_and_parquet_have_vectors_too(tmp_path):
    frame = vector_data(3, size=40).to_frame()
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    columns = {"state": ["x0", "x1", "x2"], "action": "action", "episode": "episode", "vectors": True}
    csv = selectenv.from_csv(tmp_path / "log.csv", **columns)
    assert_same(csv, selectenv.from_parquet(tmp_path / "log.parquet", **columns))
    assert not csv.has_rewards


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")  # a directory that Minari leaves behind
@pytest.mark.parametrize("world", ["CartPole-v1", "LunarLander-v3"])
def test_minari_round_trip(world, tmp_path, monkeypatch):
    """A dataset recorded locally goes in, is stored and read, and is played; nothing is lost but terminal vectors."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    env = minari.DataCollector(gym.make(world))
    env.action_space.seed(0)
    for seed in range(6):
        env.reset(seed=seed)
        over = False
        while not over:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated
    env.reset(seed=9)
    for _ in range(5):
        env.step(env.action_space.sample())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari recommends to name an author and code
        stored = env.create_dataset(f"control/{world.lower()}")
    env.close()
    data = selectenv.from_minari(stored)
    back = load(save(data, tmp_path / "data.npz"))
    t = 0
    for episode in stored.iterate_episodes():
        size = len(episode.actions)
        steps = slice(t, t + size)
        np.testing.assert_array_equal(back.vectors[back.state[steps]], episode.observations[:-1])
        np.testing.assert_array_equal(back.action[steps], episode.actions)
        np.testing.assert_array_equal(back.hidden_reward[steps], episode.rewards)
        np.testing.assert_array_equal(back.terminated[steps], episode.terminations)
        if not episode.terminations[-1]:
            assert back.truncated[t + size - 1]
            np.testing.assert_array_equal(back.vectors[back.next_state[t + size - 1]], episode.observations[-1])
        t += size
    assert t == len(back)
    env = selectenv.make_env(f"gym:{world}", dataset=back, groups=8, budget=3, rollouts=2)
    assert np.isfinite(agents.play(env, agents.make("terminal-guided"), seed=0).performance)


def test_gymnasium_recordings_are_what_the_environment_said():
    data = selectenv.from_gymnasium(gym.make("CartPole-v1"), lambda o: int(o[2] > 0), 300, seed=4)
    assert data.vectors.shape == (4,)
    assert data.truncated[-1] != data.terminated[-1]
    again = selectenv.from_gymnasium(gym.make("CartPole-v1"), lambda o: int(o[2] > 0), 300, seed=4)
    assert again.fingerprint == data.fingerprint
    np.testing.assert_array_equal(data.action, data.vectors[data.state][:, 2] > 0)


class InPlace(gym.Env):
    """Counts its steps in the array that it returns every time."""

    observation_space = gym.spaces.Box(0, 100, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self._seen = np.zeros(2, np.float32)
        return self._seen, {}

    def step(self, action):
        self._seen += 1
        return self._seen, 0.0, bool(self._seen[0] == 5), False, {}


def test_recordings_are_copies_and_actions_may_be_arrays():
    def parity(observation):
        return np.array(int(observation[0]) % 2)  # without axes, as the models of Stable-Baselines3 return it

    data = selectenv.from_gymnasium(InPlace(), parity, 10)
    np.testing.assert_array_equal(data.vectors[data.state][:, 0], [*range(5)] * 2)
    np.testing.assert_array_equal(data.action, [0, 1, 0, 1, 0] * 2)


EPISODE = {"states": np.zeros((3, 2)), "actions": [0, 1, 0]}


@pytest.mark.parametrize(
    ("episodes", "message"),
    [
        ([{**EPISODE, "states": [[0, 1], [0, 1, 2], [1, 2]]}], "episode 0, step 1: the vector has 3 numbers"),
        ([{**EPISODE, "states": [[0, 1], [0, np.nan], [1, 2]]}], "step 1, column 'x1': the number is missing or NaN"),
        ([{**EPISODE, "states": [[0, 1], [0, 1e39], [1, 2]]}], r"step 1, column 'x1': 1e\+39 is too large"),
        ([{**EPISODE, "states": [[0, 1], ["a", "b"], [1, 2]]}], "step 1: a state must be a vector of numbers"),
        ([{**EPISODE, "states": [[0, 1], [0, [1, 2]], [1, 2]]}], "step 1: a state must be a vector of numbers"),
        ([EPISODE, {**EPISODE, "states": np.zeros((3, 3))}], "episode 1 has"),
        ([EPISODE, {**EPISODE, "states": [1, 2, 3]}], "episode 1: states must be an array"),
        ([{"states": [], "actions": []}, EPISODE], "episode 0"),
    ],
)
def test_vectors_that_cannot_be_used(episodes, message):
    with pytest.raises(LogError, match=message):
        selectenv.from_episodes(episodes)


def test_frames_that_cannot_be_used():
    frame = pandas.DataFrame({"x": [0.5, None, 1.0], "a": [0, 1, 0], "e": [0, 0, 0]})
    with pytest.raises(LogError, match="row 1, column 'x': the number is missing or NaN"):
        selectenv.from_dataframe(frame, "x", "a", "e", vectors=True)
    with pytest.raises(LogError, match=r"is not a number|must hold numbers"):
        selectenv.from_dataframe(frame.assign(name="b"), "name", "a", "e", vectors=True)
    with pytest.raises(UnknownNameError, match="column in bins"):
        selectenv.from_dataframe(frame, "x", "a", "e", vectors=True, bins={"x": 3})
    with pytest.raises(OptionError, match="vectors must be True or False"):
        selectenv.from_dataframe(frame, "x", "a", "e", vectors="yes")
    with pytest.raises(OptionError, match="give only one of them"):
        selectenv.from_episodes([{**EPISODE}], bins={"x0": 2})
    good = selectenv.from_episodes([{"states": {"x": [0.5, 1.5]}, "actions": [0, 1]}], vectors=True)
    assert good.vectors.columns == ("x",)
