"""Learned selectors: features, independence of order and padding, training, saving, and errors."""

import zipfile

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from agents.errors import NotTrainedError, SavedAgentError
from agents.learned import selector
from agents.learned.scorer import StateScorer
from agents.learned.selector import FOLDER
from agents.learned.state_features import ALL_NAMES, LARGE, NAMES, TERMINATION_FEATURES, state_features, structure_of
from agents.sb3.feature_wrapper import FeatureWrapper, RewardScales
from selectenv.errors import OptionError, UnknownNameError
from selectenv.io.weights import load_weights, save_weights
from selectenv.random_problems import RandomProblems
from selectenv.wrappers import BatchLabels, TensorBoardMonitor

PPO = {"steps": 32, "n_envs": 2, "hidden": 8, "sb3": {"n_steps": 8, "batch_size": 8, "n_epochs": 1}}
DQN = {"steps": 32, "n_envs": 2, "hidden": 8, "sb3": {"learning_starts": 8, "batch_size": 4}}
OPTIONS = {"maskable-ppo": PPO, "ppo": PPO, "dqn": DQN}
SIZE = {"dataset_size": 2_000}
V1_LABELS = {"uds": [49, 44, 14, 35, 3, 24], "adapted": [24, 44, 3, 26, 14, 20]}


def features_after(env, labels, seed=0, **options):
    obs, info = env.reset(seed=seed)
    for label in labels:
        obs, _, _, _, news = env.step(label)
        info |= news
    structure = structure_of(env.unwrapped.problem.dataset)
    return state_features(obs, info, structure, budget=env.unwrapped.budget, adapted=False, **options)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_features_are_of_moderate_size(seed):
    rng = np.random.default_rng(seed)
    env = selectenv.RewardSelectionEnv(RandomProblems(padding=60)(rng), 0.5)
    labels = rng.permutation(np.flatnonzero(env.problem.dataset.labelable))[: max(1, env.budget // 2)]
    features = features_after(env, labels[: env.budget - 1])
    assert features.shape == (60, len(NAMES))
    assert features.dtype == np.float32
    assert np.abs(features).max() <= 2
    seen = env.problem.dataset.labelable
    assert (features[~seen] == 0).all()
    column = dict(zip(NAMES, features.T, strict=True))
    assert (column["seen"] == seen).all()
    for name in (
        "visitation rank",
        "on-policy rank",
        "nearness to termination",
        "nearness to start",
        "in-degree",
        "self-loops",
    ):
        assert column[name].min() >= 0
        assert column[name].max() <= 1 + 1e-6
    assert column["labelled"].sum() == len(set(labels[: env.budget - 1].tolist()))


def test_large_worlds_look_no_larger_than_those_of_training():
    sizes = {}
    for n in (60, LARGE, 300):
        numbers = np.arange(n)
        data = selectenv.from_arrays(numbers, np.zeros(n, int), (numbers + 1) % n, numbers == n - 1)
        features = features_after(selectenv.make_env(dataset=data, budget=2), [0])
        sizes[n] = features[0, NAMES.index("states")]
    assert sizes[60] < sizes[LARGE] == sizes[300]


def test_features_mean_what_their_names_say():
    env = selectenv.make_env("TwoRooms", budget=10)
    column = dict(zip(NAMES, features_after(env, [49]).T, strict=True))  # beside the goal
    data = env.problem.dataset
    assert column["nearness to termination"][49] == 1
    assert column["nearness to best value"].max() == 1
    assert column["nearness to best value"].argmax() == 49
    assert (column["reward seen"] == 1).all()
    assert (column["nearness to start"][data.start > 0] == 1).all()
    assert column["budget left"][0] == pytest.approx(0.9)
    assert column["labels left"][0] == pytest.approx(0.9 * 10 / 50)
    before = dict(zip(NAMES, features_after(env, []).T, strict=True))
    assert (before["nearness to best value"] == 0).all()
    assert (before["reward seen"] == 0).all()
    blind = dict(zip(NAMES, features_after(env, [49], without=TERMINATION_FEATURES).T, strict=True))
    assert (blind["termination"] == 0).all()
    assert (blind["nearness to termination"] == 0).all()
    np.testing.assert_array_equal(blind["in-degree"], column["in-degree"])


@given(st.integers(0, 10_000), st.integers(2, 30))
@settings(max_examples=25)
def test_order_and_padding_do_not_matter(seed, n):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    scorer = StateScorer(8)
    features = rng.normal(size=(n, len(NAMES))).astype(np.float32)
    features[:, 0] = 1
    with torch.no_grad():
        scores, value = scorer(torch.from_numpy(features)[None])
        order = rng.permutation(n)
        shuffled, same = scorer(torch.from_numpy(features[order])[None])
        padded = np.concatenate([features, np.zeros((5, len(NAMES)), np.float32)])
        more, still = scorer(torch.from_numpy(padded)[None])
    np.testing.assert_allclose(shuffled[0], scores[0][order], atol=1e-5)
    np.testing.assert_allclose(more[0][:n], scores[0], atol=1e-5)
    np.testing.assert_allclose([same.item(), still.item()], value.item(), atol=1e-5)


@pytest.mark.parametrize("mode", ["final", "marginal"])
def test_normalised_rewards(mode):
    env = FeatureWrapper(selectenv.make_env("Tree", budget=31, reward_mode=mode, **SIZE), scales=RewardScales())
    env.reset(seed=0)
    rewards = [env.step(state)[1] for state in np.flatnonzero(env.unwrapped.problem.dataset.labelable)]
    assert sum(rewards) == pytest.approx(1)
    plain = FeatureWrapper(selectenv.make_env("Tree", budget=3, reward_mode=mode, **SIZE))
    plain.reset(seed=0)
    steps = [plain.step(state) for state in (15, 19, 23)]
    assert sum(step[1] for step in steps) == pytest.approx(steps[-1][4]["performance"])
    assert plain.observation_space.contains(steps[0][0])


@pytest.mark.parametrize("name", OPTIONS)
def test_training_is_reproducible_and_saved(name, tmp_path):
    env = selectenv.make_env("Graph", budget=3, **SIZE)
    played = []
    for _ in range(2):
        agent = agents.make(name, **OPTIONS[name])
        agent.train(env, seed=3)
        played.append(agents.play(env, agent))
    assert played[0].labels.tolist() == played[1].labels.tolist()
    assert agent.training_calls.cost >= 10  # an episode of three labels each
    path = agent.save(tmp_path / "deep" / "selector")
    assert [entry.name for entry in path.parent.iterdir()] == ["selector"]
    loaded = agents.load(path)
    assert loaded == agent  # all options are the same
    assert loaded.name == name
    assert loaded.training_calls == agent.training_calls
    assert loaded.save(tmp_path / "again.zip").read_bytes() == path.read_bytes()
    for world in ("Graph", "TwoRooms"):  # the same weights in a world of another size
        test = selectenv.make_env(world, budget=4, phase="test", **SIZE)
        first, second = agents.play(test, agent), agents.play(test, loaded)
        assert first.labels.tolist() == second.labels.tolist()
        assert first.performance == second.performance
    loaded.train(env, seed=1, steps=16)
    assert loaded.training_calls.cost > agent.training_calls.cost


@pytest.mark.parametrize("name", OPTIONS)
def test_training_resumes_from_what_was_learned(name):
    env = selectenv.make_env("Graph", budget=3, **SIZE)
    agent = agents.make(name, **OPTIONS[name])
    agent.train(env)
    model = agent._new_model(agent._model.get_env(), 7, None)
    torch.testing.assert_close(agent._scorer_of(model).state_dict(), agent._scorer.state_dict())
    if name == "dqn":
        torch.testing.assert_close(model.q_net_target.state_dict(), model.q_net.state_dict())


def test_monitors_do_not_cost_calls(tmp_path):
    costs = []
    for watched in (False, True):
        envs = [selectenv.make_env("Graph", budget=3, **SIZE) for _ in range(2)]
        played = [TensorBoardMonitor(env, tmp_path) for env in envs] if watched else envs
        agent = agents.make("maskable-ppo", **PPO)
        agent.train(played)
        costs.append(agent.training_calls.to_dict())
        for env in played:
            env.close()
    assert costs[0] == costs[1]


def test_training_evaluation_and_play_use_different_worlds():
    env = gym.make("RewardSelection-Random-v0", padding=20, budget=(0.2, 0.6))
    means = []
    for _ in range(2):
        agent = agents.make("maskable-ppo", **PPO)
        callback = agent.evaluation(env, every=8, episodes=2)
        agent.train(env, callback=callback)
        means.append(callback.last_mean_reward)
    assert means[0] == means[1]
    trained = {problem.dataset.fingerprint for problem in agent._model.get_env().get_attr("problem")}
    env.reset(seed=0)
    assert env.unwrapped.problem.dataset.fingerprint not in trained


def test_training_on_given_environments_keeps_their_wrappers(tmp_path):
    envs = [TensorBoardMonitor(selectenv.make_env("Graph", budget=3, **SIZE), tmp_path) for _ in range(2)]
    agent = agents.make("maskable-ppo", **PPO)
    agent.train(envs)
    for env in envs:
        env.close()
    assert len(list(tmp_path.glob("env-*"))) == 2
    random_worlds = gym.make("RewardSelection-Random-v0", padding=20, budget=(0.2, 0.6), reward_mode="marginal")
    agent.train(random_worlds, steps=16)
    assert np.isfinite(agents.play(random_worlds, agent).performance)


@pytest.mark.parametrize("name", ["maskable-ppo", "ppo"])
def test_training_is_watched(name, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    env = selectenv.make_env("Graph", budget=3, **SIZE)
    agent = agents.make(name, **PPO)
    agent.train(env, callback=agent.evaluation(env, every=8, episodes=2), tensorboard=tmp_path)
    (folder,) = {path.parent for path in tmp_path.rglob("events.*")}
    tags = EventAccumulator(str(folder)).Reload().Tags()["scalars"]
    assert "eval/mean_reward" in tags
    assert "rollout/ep_rew_mean" in tags


def test_invalid_options_and_environments_are_refused(tmp_path):
    for wrong in ({"steps": 0}, {"hidden": 0}, {"n_envs": 0}):
        with pytest.raises(OptionError):
            agents.make("maskable-ppo", **wrong)
    with pytest.raises(UnknownNameError, match="Did you mean 'termination'"):
        agents.make("ppo", without=("terminations",))
    agent = agents.make("maskable-ppo", **PPO)
    with pytest.raises(OptionError, match="steps"):
        agent.train(selectenv.make_env("Graph", **SIZE), steps=0)
    with pytest.raises(OptionError, match="reward selection"):
        agent.train(gym.make("CartPole-v1"))  # which has no masks
    env, other = selectenv.make_env("Graph", **SIZE), selectenv.make_env("Tree", **SIZE)
    batches = BatchLabels(selectenv.make_env("Graph", budget=4, **SIZE), 2)
    for wrong, text in (
        ([], "list of environments"),
        (3, "list of environments"),
        ([env, other], r"same number of states, not \[15, 31\]"),
        ([env, env], "twice"),
        ([batches], "one state per step"),
    ):
        with pytest.raises(OptionError, match=text):
            agent.train(wrong)
    with pytest.raises(OptionError, match="does not accept these options"):
        agents.make("ppo", sb3={"n_stepz": 8}).train(env, steps=1)
    with pytest.raises(NotTrainedError):
        agents.play(env, agent)
    with pytest.raises(NotTrainedError):
        agent.save(tmp_path / "nothing.zip")


def test_invalid_files_are_refused(tmp_path):
    env = selectenv.make_env("Graph", budget=3, **SIZE)
    agent = agents.make("maskable-ppo", **PPO)
    agent.train(env)
    path = agent.save(tmp_path / "selector.zip")
    with pytest.raises(SavedAgentError, match="there is no saved strategy"):
        agents.load(tmp_path / "none.zip")
    (tmp_path / "text.zip").write_text("hello")
    content = path.read_bytes()
    (tmp_path / "cut.zip").write_bytes(content[: len(content) // 2])
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        for entry in source.namelist():
            data = source.read(entry)
            other.writestr(entry, data.replace(b'"hidden": 8', b'"hidden": 9') if entry == "data" else data)
    for damaged in ("text.zip", "cut.zip", "other.zip"):
        with pytest.raises(SavedAgentError, match="damaged, or not a selector"):
            agents.load(tmp_path / damaged)


def test_selectors_name_the_features_that_they_use(tmp_path):
    shipped = load_weights(FOLDER / "seed-2.npz")
    rng = np.random.default_rng(0)
    arrays, card = dict(shipped[0]), dict(shipped[1])
    names = ["seen", "reward scale", "reward", *card["features"][1:]]
    arrays["encode.0.weight"] = rng.normal(size=(card["hidden"], len(names))).astype(np.float32)
    save_weights(tmp_path / "own.npz", arrays, {**card, "features": names})
    agent = agents.make("learned", weights=str(tmp_path / "own.npz"))
    env = selectenv.make_env("Tree", budget=4, **SIZE)
    obs, info = env.reset(seed=0)
    agent.begin(env.unwrapped.view())
    obs, *_, more = env.step(15)
    features = agent._context.features(obs, {**info, **more})
    column = dict(zip(names, features.T, strict=True))
    np.testing.assert_array_equal(column["reward"], obs["reward"])
    assert column["reward"].any()
    assert set(column["reward scale"]) == {float(obs["reward_scale"][0])}
    assert len(agents.play(env, agent).labels) == 4
    assert list(agents.make("learned-v1").card["features"]) == list(NAMES)  # shipped before rewards were shown
    assert list(agents.make("learned").card["features"]) == list(ALL_NAMES)


def test_the_first_selector_still_plays_as_it_did():
    """Its weights and features have not changed: these labels were chosen by the release that shipped it."""
    for learner, labels in V1_LABELS.items():
        env = selectenv.make_env("TwoRoomsTrap", budget=6, learner=learner)
        assert agents.play(env, agents.make("learned-v1")).ids.tolist() == labels


def test_large_worlds_are_left_to_the_first_selector(monkeypatch):
    env = selectenv.make_env("Tree", budget=4, **SIZE)
    agent, first = agents.make("learned"), agents.make("learned-v1")
    mine, usual = agents.play(env, agent).labels.tolist(), agents.play(env, first).labels.tolist()
    monkeypatch.setattr(selector, "MOST_STATES", 30)
    assert agents.play(env, agent).labels.tolist() == usual
    monkeypatch.undo()
    assert agents.play(env, agent).labels.tolist() == mine
