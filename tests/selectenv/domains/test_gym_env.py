"""Gymnasium environments as worlds: data, evaluation, experts, and errors."""

import warnings
import zipfile

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import agents
import selectenv
from selectenv.datasets.vector_observations import Vectors
from selectenv.domains.gym_env import GymWorld, Lanes, VectorLanes
from selectenv.domains.gym_experts import FOLDER, load_gym_expert
from selectenv.errors import (
    DatasetError,
    LongEpisodeWarning,
    MissingExtraError,
    ObservationError,
    OptionError,
    UnknownNameError,
    WeightsFileError,
    WorldError,
)
from selectenv.evaluation import played_episodes
from selectenv.evaluation.vector_returns import VectorReturns
from selectenv.io.weights import save_weights
from selectenv.policies import PolicyList, TablePolicy, UniformPolicy

SMALL = {"dataset_size": 3_000, "groups": 20, "rollouts": 5}
FREE = [name for name, row in agents.AGENTS.items() if row.kind.taxonomy.evaluator == "never"]
CARTPOLE = GymWorld("CartPole-v1")


def balance(observation):
    return int(observation[2] + 0.3 * observation[3] > 0)


@pytest.fixture(scope="module")
def problem():
    return selectenv.make_problem("CartPole", **SMALL, cache=False)


def replayed(data, world):
    """Step an environment through the recorded actions, and compare everything it says with the data."""
    starts = np.flatnonzero(data.episode_start)
    env, base = world.make().unwrapped, data.base
    for first, last in zip(starts, [*starts[1:], len(data)], strict=True):
        env.reset(seed=0)
        vector = base.vectors[base.state[first]]
        for t in range(first, min(last, first + 3)):
            # float32 observations lose digits of the state, so every transition is checked on its own
            env.state = tuple(float(x) for x in base.vectors[base.state[t]])
            env.steps_beyond_terminated = None
            vector, reward, terminated, *_ = env.step(int(data.action[t]))
            assert (reward, terminated) == (data.hidden_reward[t], data.terminated[t])
            if base.next_state[t] >= 0:
                np.testing.assert_allclose(base.vectors[base.next_state[t]], vector, atol=1e-5)


def test_data_are_transitions_of_the_environment(problem):
    data = problem.dataset
    assert (len(data), data.n_states, data.n_actions) == (3_000, 20, 2)
    assert data.base.vectors.columns == ("position", "velocity", "angle", "angular velocity")
    assert not (data.terminated & data.truncated).any()
    assert (data.base.next_state[data.truncated] >= 0).all()  # learners bootstrap there
    assert (data.base.next_state[data.terminated] == -1).all()
    replayed(data, CARTPOLE)
    again = selectenv.make_problem("CartPole", **SMALL, cache=False).dataset
    assert again.fingerprint == data.fingerprint
    other = selectenv.make_problem("CartPole", **SMALL, dataset_seed=1, cache=False).dataset
    assert other.fingerprint != data.fingerprint


def test_every_episode_can_have_its_own_expert_share():
    """The expert always pushes to the right, so the share of such actions tells the expert share of an episode."""
    options = {"expert": lambda o: 2, "dataset_size": 20_000, "groups": "state", "cache": False}
    data = selectenv.make_problem("MountainCar", expert_share=(0.4, 1.0), **options).dataset
    starts = np.flatnonzero(data.episode_start)
    right = np.add.reduceat(data.action == 2, starts) / np.diff([*starts, len(data)])
    drawn = (right - 1 / 3) / (2 / 3)  # the other actions are drawn from all three
    assert 0.68 < drawn.mean() < 0.72 + 0.03
    assert 0.4 - 0.15 < drawn.min() < 0.5
    assert 0.95 < drawn.max() <= 1
    assert 0.14 < drawn.std() < 0.21  # a uniform distribution has 0.173
    assert data.spec["expert_share"] == [0.4, 1.0]
    one, pair = (
        selectenv.make_problem("MountainCar", expert_share=share, **{**options, "dataset_size": 500}).dataset
        for share in (0.4, (0.4, 0.4))
    )
    assert one.fingerprint == pair.fingerprint


def test_lunar_lander_draws_a_share_per_episode():
    data = selectenv.make_problem("LunarLander", dataset_size=600, groups=5, cache=False).dataset
    assert data.spec["expert_share"] == [0.0, 1.0]
    assert selectenv.CONTROL["CartPole"].defaults.expert_share == 0.5


def test_time_limits_truncate_and_falls_terminate():
    data = selectenv.make_problem("MountainCar", dataset_size=20_050, groups="state", cache=False, expert=None).dataset
    ends = data.terminated | data.truncated
    lengths = np.diff([-1, *np.flatnonzero(ends)])
    assert not data.terminated.any()  # random actions do not reach the goal
    assert lengths.max() == 200
    assert np.count_nonzero(lengths == 200) == 2 * 50  # 50 lanes of 401 steps
    assert (data.next_state[data.truncated] >= 0).all()


def test_evaluation_is_the_mean_return_of_seeded_episodes():
    """Two ways: lanes of single environments, and one episode after the other in plain Python."""
    world = GymWorld("MountainCar-v0")
    problem = selectenv.make_problem("MountainCar", **SMALL, cache=False, expert=None)
    engine = VectorReturns(world, problem.dataset, 4)
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(3), problem.n_states)
    found, (steps, unknown) = engine.episode_returns(PolicyList([TablePolicy(table)]), 0)
    expected, counted = [], 0
    for seed, key in zip(engine._seeds, engine._keys, strict=True):
        env = world.make()
        observation, total, over, step = env.reset(seed=seed)[0], 0.0, False, 0
        while not over:
            word = (int(key) + step * 0x9E3779B97F4A7C15) % 2**64
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                word = ((word ^ (word >> shift)) * factor) % 2**64
            unit = ((word ^ (word >> 31)) >> 11) / 2**53
            shares = table[problem.dataset.locate(observation[None])[0]]
            action = int(np.searchsorted(np.cumsum(shares)[:-1], unit, side="right"))
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over, step, counted = total + reward, terminated or truncated, step + 1, counted + 1
        expected.append(total)
    assert found.tolist() == expected
    assert (steps, unknown) == (counted, 0)


def test_returns_do_not_depend_on_other_policies(problem):
    engine, n = problem.evaluator.engine, problem.n_states
    rng = np.random.default_rng(1)
    policies = [TablePolicy(rng.dirichlet(np.ones(2), n)) for _ in range(3)]
    together = engine.returns(PolicyList(policies), 1.0)
    alone = [engine.returns(PolicyList([policy]), 1.0)[0] for policy in policies[::-1]][::-1]
    assert together.tolist() == alone
    masks = rng.random((4, n)) < 0.5
    assert problem.performance_many(masks).tolist() == [problem.performance(mask) for mask in masks]
    discounted = engine.returns(PolicyList(policies), 0.9)
    assert (discounted < together).all()


def test_vector_environments_step_like_single_ones():
    vector, single = VectorLanes(CARTPOLE, 6), Lanes(CARTPOLE, 6)
    vector.reset([3] * 6)
    single.reset([0] * 6)
    for env, state in zip(single._envs, vector._env.unwrapped.state.T, strict=True):
        env.unwrapped.state = state.copy()
    rng, playing = np.random.default_rng(0), np.arange(6)
    while len(playing):
        actions = rng.integers(2, size=len(playing))
        one, other = vector.step(actions, playing), single.step(actions, playing)
        np.testing.assert_allclose(one.entered, other.entered, rtol=1e-5, atol=1e-6)
        for name in ("reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        playing = playing[~(one.terminated | one.truncated)]
    assert CARTPOLE.has_vector_env
    assert not GymWorld("Acrobot-v1").has_vector_env


@pytest.mark.parametrize("options", [{"sutton_barto_reward": True}, {"max_episode_steps": 7}])
def test_environments_with_other_options_are_evaluated_with_them(options):
    given = gym.make("CartPole-v1", **options)
    for world in (GymWorld(given), GymWorld("CartPole-v1", **options)):
        problem = selectenv.make_problem(given, expert=None, dataset_size=200, groups=5, cache=False)
        engine = VectorReturns(world, problem.dataset, 3)
        returns, (steps, _) = engine.episode_returns(PolicyList([UniformPolicy(2)]), 0)
        if "max_episode_steps" in options:
            assert steps <= 3 * 7
        else:
            np.testing.assert_array_equal(returns, -1)  # this variant pays -1 for the fall, and 0 before
    assert GymWorld(gym.make("CartPole-v1")).has_vector_env


def test_copies_of_an_environment_draw_nothing():
    world = GymWorld(gym.make("CartPole-v1", render_mode="rgb_array"))
    assert world.make().render_mode is None
    assert world.has_vector_env
    assert world.fingerprint == CARTPOLE.fingerprint
    wrapped = gym.wrappers.TransformReward(gym.make("CartPole-v1", render_mode="rgb_array"), lambda reward: reward)
    assert GymWorld(wrapped).make().render_mode == "rgb_array"  # some wrappers need it


def test_long_episodes_are_stopped_and_named(problem, monkeypatch):
    monkeypatch.setattr(played_episodes, "EPISODE_LIMIT", 4)  # a pole stays up for longer than that
    with pytest.warns(LongEpisodeWarning, match="5 episodes of CartPole-v1 were stopped after 4 steps"):
        returns = problem.evaluator.engine.returns(PolicyList([UniformPolicy(2)]), 1.0)
    assert returns.tolist() == [4.0]


@pytest.mark.parametrize("world", list(selectenv.CONTROL))
def test_every_control_world_plays_with_every_strategy(world):
    env = gym.make(
        selectenv.env_id(world), budget=3, dataset_size=1_500, groups=12, rollouts=2, render_mode="rgb_array"
    )
    assert {"guided", "terminal-guided", "learned", "imagine", "auto"} < {*FREE}
    for name in FREE:
        episode = agents.play(env, agents.make(name), seed=0)
        assert len(episode.labels) == 3
        assert np.isfinite(episode.performance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checkers recommend other spaces
        check_env(env.unwrapped)
        check_env_sb3(env.unwrapped)
    vector = gym.make_vec(
        selectenv.env_id(world),
        num_envs=2,
        vectorization_mode="vector_entry_point",
        budget=2,
        dataset_size=1_500,
        groups=12,
        rollouts=2,
    )
    vector.reset(seed=0)
    env.reset(seed=0, options={"budget": 2})
    for action in (1, 2):
        _, rewards, over, *_ = vector.step(np.full(2, action))
        _, reward, *_ = env.step(action)
    assert over.all()
    assert rewards.tolist() == [reward, reward]
    assert env.unwrapped.problem.dataset.n_states == 12
    assert env.render().shape[2] == 3


@pytest.mark.parametrize("world", list(selectenv.CONTROL))
def test_shipped_experts_are_small_and_good(world):
    place = selectenv.CONTROL[world].make()
    path = FOLDER / f"{place.name.lower()}.npz"
    assert path.stat().st_size < 50_000
    card = load_gym_expert(place, "published").card
    assert card["env"] == place.name
    assert card["episodes"] == 100
    assert len(card["curve"]) >= 10
    least = {"CartPole": 475, "Acrobot": -100, "MountainCar": -130, "LunarLander": 200}
    assert card["return"] >= least[world]


def test_any_installed_environment_is_a_world():
    env = selectenv.make_env("gym:Acrobot-v1", expert=None, dataset_size=600, groups=5, rollouts=1, budget=2)
    assert env.problem.dataset.spec["expert_share"] == 0.0
    assert np.isfinite(agents.play(env, agents.make("uniform"), seed=0).performance)
    given = selectenv.make_problem(gym.make("CartPole-v1"), expert=balance, dataset_size=500, groups=5, rollouts=1)
    assert given.dataset.spec["expert"] == "function"
    episodes = selectenv.make_env("CartPole", groups="episode", budget=0.2, dataset_size=2_000, rollouts=2)
    assert episodes.problem.n_states == episodes.problem.dataset.episode_start.sum()
    assert agents.play(episodes, agents.make("terminal"), seed=0).performance > 5
    labels = np.zeros(episodes.problem.n_states, bool)
    labels[:3] = True
    assert episodes.problem.learn(labels).table.shape == (len(labels), 2)


class Odd(gym.Env):
    """Observations of two axes, and actions that start at 2."""

    observation_space = spaces.Box(-9, 9, (2, 2), np.float32)
    action_space = spaces.Discrete(2, start=2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = np.zeros((2, 2), np.float32)
        return self._at.copy(), {}

    def step(self, action):
        assert action in (2, 3)
        self._at[0, 0] += 1 if action == 3 else -1
        return self._at.copy(), float(action == 3), bool(abs(self._at[0, 0]) > 5), False, {}


@pytest.fixture
def odd():
    gym.register("Odd-v0", Odd, max_episode_steps=20)
    yield "Odd-v0"
    del gym.registry["Odd-v0"]


def test_observations_are_flattened_and_actions_are_counted_from_zero(odd):
    problem = selectenv.make_problem(f"gym:{odd}", expert=lambda o: 3, dataset_size=400, groups="state", cache=False)
    data = problem.dataset
    assert data.vectors.shape == (4,)
    assert set(data.action.tolist()) == {0, 1}
    np.testing.assert_array_equal(data.hidden_reward, data.action == 1)
    assert data.n_states < 15  # equal vectors are one state
    # 20 steps, at most 5 more to the right than to the left: 12 steps to the right are the best
    assert problem.performance(np.ones(data.n_states, bool)) == 12.0
    assert GymWorld(gym.make(odd)).name == odd


@pytest.mark.parametrize("returned", [np.zeros(3), np.zeros((2, 3)), np.zeros(1), np.zeros(0)])
def test_observations_that_change_their_length(odd, returned, monkeypatch):
    monkeypatch.setattr(Odd, "step", lambda self, action: (returned, 0.0, False, False, {}))
    with pytest.raises(WorldError, match=rf"Odd-v0 returned an observation of {returned.size} numbers; .* has 4"):
        selectenv.make_problem(f"gym:{odd}", expert=None, dataset_size=100, cache=False)


def test_observations_that_are_not_numbers(odd, monkeypatch):
    monkeypatch.setattr(Odd, "step", lambda self, action: (np.full((2, 2), np.nan), 0.0, False, False, {}))
    with pytest.raises(DatasetError, match="vectors must be finite numbers"):
        selectenv.make_problem(f"gym:{odd}", expert=None, dataset_size=100, cache=False)


def test_worlds_that_cannot_be_used(odd):
    with pytest.raises(UnknownNameError, match=r"Did you mean 'CartPole-v1'"):
        selectenv.make_env("gym:CartPol-v1")
    with pytest.raises(WorldError, match=r"continuous actions.*DiscretizeAction"):
        GymWorld("Pendulum-v1")
    with pytest.raises(WorldError, match="needs a Box space"):
        GymWorld("FrozenLake-v1")
    with pytest.raises(WorldError, match="register its class"):
        GymWorld(Odd())
    with pytest.raises(WorldError, match="must be the id"):
        GymWorld(3)
    with pytest.raises(WorldError, match="cannot be made"):
        GymWorld("CartPole-v1", wings=2)
    with pytest.raises(OptionError, match='"rollout"'):
        selectenv.make_problem("CartPole", evaluator="exact", **SMALL)


def test_missing_packages_are_named(monkeypatch):
    def fail(*_, **__):
        raise gym.error.DependencyNotInstalled("Box2D is not installed")

    monkeypatch.setattr(gym, "make", fail)
    with pytest.raises(MissingExtraError, match=r"selectenv\[box2d\]"):
        GymWorld("CartPole-v1")


def test_data_of_another_environment(problem):
    with pytest.raises(DatasetError, match="has observations of 6 columns, and the data have vectors of 4"):
        selectenv.make_problem("Acrobot", dataset=problem.dataset)
    with pytest.raises(DatasetError, match="has 3 actions, and the data have 2"):
        VectorReturns(
            GymWorld("MountainCar-v0"),
            selectenv.from_episodes([{"states": np.eye(3, 2), "actions": [0, 1, 0], "rewards": [0, 0, 1]}]),
            1,
        )
    tree = selectenv.make_problem("Tree", dataset_size=100, cache=False).dataset
    with pytest.raises(DatasetError, match="no vectors"):
        VectorReturns(CARTPOLE, tree, 1)
    with pytest.raises(ObservationError, match="vector of 4 numbers"):
        problem.dataset.locate(np.zeros((1, 3)))


def test_experts_of_stable_baselines3(tmp_path):
    for kind, name in ((PPO, "ppo"), (DQN, "dqn")):
        model = kind("MlpPolicy", "CartPole-v1", device="cpu", seed=0, policy_kwargs={"net_arch": [8, 8]})
        model.save(tmp_path / f"{name}.zip")
        expert = load_gym_expert(CARTPOLE, tmp_path / f"{name}.zip")
        some = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
        np.testing.assert_array_equal(expert.actions(some), model.predict(some, deterministic=True)[0])
    problem = selectenv.make_problem("CartPole", expert=tmp_path / "dqn.zip", **SMALL, cache=False)
    assert problem.dataset.spec["expert"] == expert.fingerprint
    with pytest.raises(WeightsFileError, match="4 columns and 2 actions; Acrobot-v1 has 6 and 3"):
        load_gym_expert(GymWorld("Acrobot-v1"), tmp_path / "dqn.zip")


def test_experts_that_cannot_be_used(tmp_path):
    acrobot = FOLDER / "acrobot-v1.npz"
    with pytest.raises(WeightsFileError, match="is an expert of Acrobot-v1, not of CartPole-v1"):
        load_gym_expert(CARTPOLE, acrobot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium recommends the newer version
        older = GymWorld("CartPole-v0")
    with pytest.raises(UnknownNameError, match="no expert of CartPole-v0 ships"):
        load_gym_expert(older, "published")
    with pytest.raises(UnknownNameError, match="unknown expert 'best'"):
        load_gym_expert(CARTPOLE, "best")
    with pytest.raises(WeightsFileError, match="there is no file"):
        load_gym_expert(CARTPOLE, "missing.zip")
    with pytest.raises(OptionError, match="must be the name of an expert"):
        selectenv.make_problem("CartPole", expert=3)
    with pytest.raises(OptionError, match="needs an expert"):
        selectenv.make_problem("CartPole", expert=None, mixture="non-expert", **SMALL)
    with pytest.raises(OptionError, match="the expert returned 'left'"):
        selectenv.make_problem("CartPole", expert=lambda o: "left", **SMALL, cache=False)
    with pytest.raises(OptionError, match="those of CartPole-v1 are 0 to 1"):
        selectenv.make_problem("CartPole", expert=lambda o: 2, **SMALL, cache=False)
    for answer in (np.array([0.1, 0.9]), np.inf, np.nan, (1, None), None, [], torch.ones(2), 0.5):
        with pytest.raises(OptionError, match="those of CartPole-v1 are 0 to 1"):
            load_gym_expert(CARTPOLE, lambda o, answer=answer: answer).actions(np.zeros((1, 4), np.float32))
    for name, content in (("text.zip", b"text"), ("empty.zip", None)):
        if content is None:
            with zipfile.ZipFile(tmp_path / name, "w") as file:
                file.writestr("data", "{}")
        else:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(WeightsFileError, match="not a file of Stable-Baselines3"):
            load_gym_expert(CARTPOLE, tmp_path / name)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file, file.open("policy.pth", "w") as entry:
        torch.save({"conv.weight": torch.zeros(3)}, entry)
    with pytest.raises(WeightsFileError, match="no network of DQN, PPO or A2C"):
        load_gym_expert(CARTPOLE, tmp_path / "other.zip")


@pytest.mark.parametrize(
    "weights",
    [np.float32(1), np.array([["a"] * 4] * 2), np.full((2, 4), 1e300), np.ones((2, 4), complex), np.ones((2, 4, 1))],
    ids=["no axes", "text", "too large", "complex", "three axes"],
)
def test_files_whose_arrays_are_not_layers(tmp_path, weights):
    card = {"activation": "relu", "env": "CartPole-v1"}
    path = save_weights(tmp_path / "expert.npz", {"0.weight": weights, "0.bias": np.zeros(2)}, card)
    with pytest.raises(WeightsFileError, match="not a fully connected network with finite weights"):
        load_gym_expert(CARTPOLE, path)


def test_files_whose_card_names_no_activation(tmp_path):
    arrays = {"0.weight": np.ones((2, 4), np.float32), "0.bias": np.zeros(2, np.float32)}
    for i, activation in enumerate(("sine", ["relu"], None)):
        path = save_weights(tmp_path / f"{i}.npz", arrays, {"activation": activation})
        with pytest.raises(WeightsFileError, match="its card names no known activation"):
            load_gym_expert(CARTPOLE, path)


def test_the_file_of_an_expert_is_never_unpickled(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as file, file.open("policy.pth", "w") as entry:
        torch.save({"q_net.q_net.0.weight": gym.Env}, entry)
    with pytest.raises(WeightsFileError, match="not a file of Stable-Baselines3"):
        load_gym_expert(CARTPOLE, tmp_path / "bad.zip")


def test_policies_on_raw_vectors_get_the_observations(problem):
    seen = []

    class Watching(UniformPolicy):
        def probabilities(self, states, observations=None):
            seen.append((states.copy(), observations.copy()))
            return super().probabilities(states)

    problem.evaluator.evaluate(Watching(2))
    for states, observations in seen:
        assert observations.shape == (len(states), 4)
        np.testing.assert_array_equal(states, problem.dataset.locate(observations))
    assert isinstance(problem.dataset.base.vectors, Vectors)
