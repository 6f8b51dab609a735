"""Datasets from lists of episodes, Minari datasets and Gymnasium environments."""

import warnings

import gymnasium as gym
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer

import selectenv
from selectenv.errors import DatasetFileError, LogError, OptionError, OptionTypeError, UnknownNameError

TRIP = {"states": ["a", "b", "a"], "actions": ["go", "stop"]}


def test_episodes(capsys):
    data = selectenv.from_episodes([TRIP, {"states": ["b"], "actions": ["go"]}])
    assert data.ids.tolist() == ["a", "b"]
    assert data.action_names.tolist() == ["go", "stop"]
    assert data.next_state.tolist() == [1, 0, -1]
    assert data.truncated.tolist() == [False, True, False]
    assert data.terminated.tolist() == [False, False, True]
    assert capsys.readouterr().err.startswith(
        "episodes: 3 transitions in 2 episodes, 2 states, 2 actions (go, stop), 33.3 %"
    )


def test_an_episode_without_steps_adds_nothing():
    data = selectenv.from_episodes([TRIP, {"states": ["c"], "actions": []}])
    assert data.fingerprint == selectenv.from_episodes([TRIP]).fingerprint


def test_episodes_with_everything():
    states = {"place": np.array(["x", "y"]), "charge": [0.25, 0.75]}
    episode = {
        "states": states,
        "actions": np.array([0, 2]),
        "rewards": [1, 2.5],
        "terminated": False,
        "truncated": True,
    }
    data = selectenv.from_episodes([episode, {**episode, "terminated": True}], bins={"charge": [0.5]})
    assert data.ids.tolist() == ["place=x, charge=below 0.5", "place=y, charge=0.5 or more"]
    assert data.action_names.tolist() == [0, 2]
    assert data.hidden_reward.tolist() == [1, 2.5, 1, 2.5]
    assert data.terminated.tolist() == [False, False, False, True]
    assert data.truncated.tolist() == [False, True, False, False]
    assert data.spec == {"source": "episodes", "bins": {"charge": [0.5]}}
    flags = selectenv.from_episodes([{"states": [True, False, None][:2], "actions": [1.0, 0.0]}])
    assert (flags.ids.tolist(), flags.action_names) == (["false", "true"], None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": ["a", 3, "a"]}, "episode 1, step 1, column 'state': 3 does not fit"),
        ({"states": ["a", None, "a"]}, "episode 1, step 1, column 'state': the entry is missing"),
        ({"states": ["a", [1], "a"]}, r"episode 1, step 1, column 'state': \[1\] does not fit"),
        ({"actions": ["go", None]}, "episode 1, step 1, column 'actions': the action is missing"),
        ({"actions": ["go"]}, "episode 1, column 'state': 3 states and 1 actions do not fit"),
        ({"actions": "go"}, "episode 1, column 'actions' must be a list"),
        ({"rewards": [1]}, "episode 1: 1 rewards and 2 actions do not fit"),
        ({"rewards": [1, 2]}, "episode 1 has .*rewards.*, but episode 0 has"),
        ({"terminated": "yes"}, "terminated of episode 1 must be True or False"),
        ({"states": {"a": [1, 2], "b": [1, 2, 3]}}, "must be equally long"),
        ({"states": {}}, "there must be at least one"),
        ({"states": [], "actions": []}, "episode 1 has no states"),
    ],
)
def test_episodes_that_cannot_be_used(change, message):
    with pytest.raises(LogError, match=message):
        selectenv.from_episodes([TRIP, {**TRIP, **change}])


def test_entries_that_cannot_be_used():
    for states, message in (
        ([1, 0.5], "step 1, column 'state': 0.5 is not a whole number; .*bins"),
        ([1, 2**70], "step 1, column 'state': whole numbers must lie within"),
        (["a", "b\0"], "step 1, column 'state': .*NUL"),
    ):
        with pytest.raises(LogError, match=message):
            selectenv.from_episodes([{"states": states, "actions": [0, 0]}])
    for rewards, message in (
        ([1, "x"], "step 1, column 'rewards': 'x' is not a number"),
        ([1, None], "step 1, column 'rewards': a reward must be a number"),
        ([1, 10**400], "step 1, column 'rewards': the number is too large"),
    ):
        with pytest.raises(LogError, match=message):
            selectenv.from_episodes([{"states": [0, 1], "actions": [0, 0], "rewards": rewards}])


def test_episodes_of_the_wrong_form():
    with pytest.raises(UnknownNameError, match="Did you mean 'states'"):
        selectenv.from_episodes([{"sates": [1], "actions": [1]}])
    with pytest.raises(LogError, match="episode 0 has no actions"):
        selectenv.from_episodes([{"states": [1]}])
    with pytest.raises(LogError, match="there are no episodes"):
        selectenv.from_episodes([])
    for wrong in (TRIP, "log.csv", 3, [3], [{"states": {1: [1]}, "actions": [1]}]):
        with pytest.raises(OptionTypeError):
            selectenv.from_episodes(wrong)
    with pytest.raises(UnknownNameError, match="column in bins"):
        selectenv.from_episodes([TRIP], bins={"place": 3})
    with pytest.raises(OptionTypeError, match="bins"):
        selectenv.from_episodes([TRIP], bins=3)


def test_gymnasium_environments():
    env = gym.make("FrozenLake-v1")
    data = selectenv.from_gymnasium(env, None, 2_000)
    assert (len(data), data.n_actions, data.ids.dtype.kind) == (2_000, 4, "i")
    assert data.truncated[-1] or data.terminated[-1]
    assert set(data.hidden_reward) <= {0.0, 1.0}
    world = selectenv.from_toy_text(env)
    assert set(data.ids) <= set(world.ids)
    possible = {
        (world.ids[s], a, -1 if n < 0 else world.ids[n])
        for s, a, n in zip(world.state, world.action, world.next_state, strict=True)
    }
    following = np.where(data.next_state < 0, -1, data.ids[data.next_state])
    known = ~data.truncated
    found = set(zip(data.ids[data.state][known], data.action[known], following[known], strict=True))
    assert found <= possible
    assert selectenv.from_gymnasium(env, None, 2_000).fingerprint == data.fingerprint
    assert selectenv.from_gymnasium(env, None, 2_000, seed=1).fingerprint != data.fingerprint


def test_a_policy_plays_and_the_data_serve_as_a_problem():
    env = gym.make("FrozenLake-v1")
    data = selectenv.from_gymnasium(env, lambda state: state % 3, 300)
    assert (data.action == data.ids[data.state] % 3).all()
    assert data.n_actions == 4
    assert selectenv.make_problem(dataset=data).n_states == data.n_states


def test_observations_of_several_entries():
    data = selectenv.from_gymnasium(gym.make("Blackjack-v1"), lambda hand: int(hand[0] < 17), 200)
    assert list(data.state_columns) == ["observation_0", "observation_1", "observation_2"]
    env = gym.make("CartPole-v1")
    data = selectenv.from_gymnasium(env, None, 10)
    assert data.vectors.shape == (4,)
    data = selectenv.from_gymnasium(env, None, 200, bins={f"observation_{i}": 3 for i in range(4)})
    assert data.n_states <= 81


class Odd(gym.Env):
    """An environment whose actions start at 3, with spaces of all kinds."""

    observation_space = spaces.Dict(
        {
            "mode": spaces.Text(4),
            "pair": spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]),
            "level": spaces.Box(0, 5, (), np.int64),
        }
    )
    action_space = spaces.Discrete(3, start=3)

    def reset(self, *, seed=None, options=None):
        return self._observation(0), {}

    def step(self, action):
        return self._observation(action), 0.5, action == 5, False, {}

    def _observation(self, n):
        return {"mode": "ab", "pair": (n % 2, np.array([0, n % 2], np.int8)), "level": np.array(n)}


def test_other_spaces():
    data = selectenv.from_gymnasium(Odd(), lambda _: 4, 5)
    assert list(data.state_columns) == ["level", "mode", "pair_0", "pair_1_0", "pair_1_1"]
    assert data.action_names.tolist() == [3, 4, 5]
    assert data.action.tolist() == [1] * 5
    assert data.spec == {"source": "Odd", "steps": 5, "seed": 0}


def test_environments_that_cannot_be_used():
    lake = gym.make("FrozenLake-v1")
    with pytest.raises(LogError, match="column 'action': actions must be discrete"):
        selectenv.from_gymnasium(gym.make("Pendulum-v1"), None, 10)
    images = gym.wrappers.TransformObservation(
        lake, lambda _: np.zeros((2, 2), np.uint8), spaces.Box(0, 1, (2, 2), np.uint8)
    )
    with pytest.raises(LogError, match="column 'observation': observations of the space"):
        selectenv.from_gymnasium(images, None, 3)
    with pytest.raises(LogError, match="the policy returned 7"):
        selectenv.from_gymnasium(lake, lambda _: 7, 10)
    for wrong in ({"steps": 0}, {"steps": 1.5}, {"seed": -1}):
        with pytest.raises(OptionError):
            selectenv.from_gymnasium(**{"env": lake, "policy": None, "steps": 3, **wrong})
    for wrong in ({"env": "FrozenLake-v1"}, {"policy": 3}, {"policy": lambda: 0}):
        with pytest.raises(OptionTypeError):
            selectenv.from_gymnasium(**{"env": lake, "policy": None, "steps": 3, **wrong})


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return a function that stores a Minari dataset of two episodes."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))

    def make(observations, space, actions=(2, 0), action_space=None, data_format="hdf5"):
        episodes = [
            EpisodeBuffer(
                observations=observations,
                actions=np.array(actions),
                rewards=np.array([0.0, 1.0]),
                terminations=np.array([False, end]),
                truncations=np.array([False, not end]),
            )
            for end in (True, False)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Minari recommends to name an author, code and environment
            return minari.create_dataset_from_buffers(
                "robots/trips-v0",
                episodes,
                observation_space=space,
                action_space=spaces.Discrete(3) if action_space is None else action_space,
                data_format=data_format,
            )

    return make


@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_minari_datasets(store, data_format, capsys):
    data = selectenv.from_minari(store(np.array([4, 1, 4]), spaces.Discrete(5), data_format=data_format))
    assert data.ids.tolist() == [1, 4]
    assert (data.n_actions, data.action_names) == (3, None)
    assert data.action.tolist() == [2, 0, 2, 0]
    assert data.next_state.tolist() == [0, -1, 0, 1]
    assert data.terminated.tolist() == [False, True, False, False]
    assert data.truncated.tolist() == [False, False, False, True]
    assert data.hidden_reward.tolist() == [0, 1, 0, 1]
    assert capsys.readouterr().err.startswith(
        "robots/trips-v0: 4 transitions in 2 episodes, 2 states, 3 actions, 25.0 %"
    )
    assert selectenv.from_minari("robots/trips-v0").fingerprint == data.fingerprint


def test_minari_vectors(store):
    stored = store(np.array([[0.5, 1], [1.5, 1], [0.5, 2]], np.float32), spaces.Box(0, 9, (2,)))
    data = selectenv.from_minari(stored)
    assert data.vectors.columns == ("observation_0", "observation_1")
    assert data.vectors.values.tolist() == [[0.5, 1], [1.5, 1], [0.5, 2]]
    assert (data.state.tolist(), data.next_state.tolist()) == ([0, 1, 0, 1], [1, -1, 1, 2])
    assert data.labelable.tolist() == [True, True, False]  # the last observation of the truncated episode
    data = selectenv.from_minari(stored, bins={"observation_0": [1]})
    assert data.ids.tolist() == [
        "observation_0=1 or more, observation_1=1",
        "observation_0=below 1, observation_1=1",
    ]


def test_minari_datasets_that_cannot_be_used(store):
    with pytest.raises(DatasetFileError, match="no Minari dataset 'robots/trips-v0' on this computer can be loaded"):
        selectenv.from_minari("robots/trips-v0")
    with pytest.raises(OptionTypeError, match="dataset must be of type MinariDataset"):
        selectenv.from_minari(3)
    stored = store(np.array([0, 1, 2]), spaces.Discrete(5), [[0.5], [0.5]], spaces.Box(0, 1, (1,), float))
    with pytest.raises(LogError, match="actions must be discrete"):
        selectenv.from_minari(stored)
