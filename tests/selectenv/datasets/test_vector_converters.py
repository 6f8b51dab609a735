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
from selectenv.errors import DatasetFileError, LogError, OptionError, UnknownNameError
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
        selectenv.from_dataframe(frame, "x", "a", "e", vectors=True, bins={"y": 3})
    with pytest.raises(OptionError, match="vectors must be True or False"):
        selectenv.from_dataframe(frame, "x", "a", "e", vectors="yes")
    with pytest.raises(OptionError, match="give only one of them"):
        selectenv.from_episodes([{**EPISODE}], bins={"x0": 2})
    good = selectenv.from_episodes([{"states": {"x": [0.5, 1.5]}, "actions": [0, 1]}], vectors=True)
    assert good.vectors.columns == ("x",)


def test_truth_values_are_numbers_of_a_vector(tmp_path):
    frame = pandas.DataFrame({"trip": [0, 0, 1], "height": [0.5, 0.25, 1.0], "touches": [True, False, True], "a": 0})
    roles = {"state": ["height", "touches"], "action": "a", "episode": "trip", "vectors": True}
    frame.to_parquet(tmp_path / "log.parquet")
    expected = [[0.5, 1.0], [0.25, 0.0], [1.0, 1.0]]
    for data in (
        selectenv.from_dataframe(frame, **roles),
        selectenv.from_parquet(tmp_path / "log.parquet", **roles),
        selectenv.from_episodes(
            [{"states": np.array([[1, 0], [0, 1], [1, 1]], bool), "actions": [0, 0, 0], "terminated": True}]
        ),
    ):
        assert len(data) == 3
        if data.vectors.columns == ("height", "touches"):
            assert data.vectors[data.state].tolist() == expected
            assert data.summary.startswith(("data frame: 3 transitions", "log.parquet: 3 transitions"))
            assert "3 states (height, touches)" in data.summary
        else:
            assert data.vectors[data.state].tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]


class Board(gym.Env):
    """Observations with two axes."""

    observation_space = gym.spaces.Box(-1, 1, (2, 3), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._time = 0
        return self._seen(), {}

    def step(self, action):
        self._time += 1
        return self._seen(), 0.0, False, False, {}

    def _seen(self):
        return (np.arange(6).reshape(2, 3) / 10 + self._time / 100).astype(np.float32)


def test_observations_with_several_axes_are_flattened():
    data = selectenv.from_gymnasium(Board(), None, 20)
    assert data.vectors.columns == tuple(f"observation_{i}" for i in range(6))
    expected = np.arange(6) / 10 + np.arange(20)[:, None] / 100
    np.testing.assert_array_equal(data.vectors[data.state], expected.astype(np.float32))


def test_hints_for_vectors_that_cannot_be_used():
    frame = pandas.DataFrame({"trip": [0, 0], "seen": [[0.5, 1.0], [0.25, 2.0]], "x": [0.5, 1.5], "a": [0, 1]})
    roles = {"action": "a", "episode": "trip", "vectors": True}
    with pytest.raises(LogError, match=r"give every number a column of its own, or pass arrays \[steps, columns\]"):
        selectenv.from_dataframe(frame, state="seen", **roles)
    with pytest.raises(OptionError, match=r"bins cut the column 'x' into intervals, .* give only one of them"):
        selectenv.from_dataframe(frame, state="x", bins={"x": 3}, **roles)
    with pytest.raises(LogError, match=r"flatten it, as in states.reshape\(len\(states\), -1\)"):
        selectenv.from_episodes([{"states": np.zeros((3, 2, 2)), "actions": [0, 0]}])
    walks = [{"states": np.eye(3, columns), "actions": [0, 1]} for columns in (2, 4)]
    with pytest.raises(LogError, match="episode 1 has vectors of 4 numbers, and episode 0 of 2"):
        selectenv.from_episodes(walks)


def test_minari_datasets_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with pytest.raises(DatasetFileError, match="`minari download no/such-v0` fetches a published one") as error:
        selectenv.from_minari("no/such-v0")
    assert "download=True" not in str(error.value)
