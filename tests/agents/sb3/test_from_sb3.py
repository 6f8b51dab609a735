"""Models of Stable-Baselines3 and sb3-contrib as strategies: from memory and from files, with and without masks."""

import base64
import json
import pickle
import zipfile

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.wrappers import FlattenObservation
from sb3_contrib import ARS, QRDQN, TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

import agents
import selectenv
from agents.errors import SavedAgentError, UnsupportedModelError
from agents.sb3 import VecSelection
from selectenv.errors import ObservationError, OptionTypeError, SelectEnvError, UnknownCostWarning, UnknownNameError
from selectenv.wrappers import BatchLabels, FlatObservation, OneShot

pytestmark = pytest.mark.filterwarnings("ignore::selectenv.errors.UnknownCostWarning")
SHORT = {"n_steps": 16, "batch_size": 16, "seed": 0, "device": "cpu"}
FEW = {"learning_starts": 4, "buffer_size": 100, "seed": 0, "device": "cpu"}
SMALL = {"policy_kwargs": {"net_arch": [8], "activation_fn": torch.nn.ReLU}}
LSTM = {"policy_kwargs": {"lstm_hidden_size": 8, "net_arch": [8]}}
MODELS = {
    "PPO": (PPO, "MultiInputPolicy", {**SHORT, "n_epochs": 1, **SMALL}),
    "A2C": (A2C, "MultiInputPolicy", {"seed": 0}),
    "TRPO": (TRPO, "MultiInputPolicy", SHORT),
    "DQN": (DQN, "MultiInputPolicy", FEW),
    "QRDQN": (QRDQN, "MultiInputPolicy", FEW),
    "MaskablePPO": (MaskablePPO, "MultiInputPolicy", {**SHORT, "n_epochs": 1}),
    "RecurrentPPO": (RecurrentPPO, "MultiInputLstmPolicy", {**SHORT, "n_epochs": 1, **LSTM}),
}
SIZE = {"dataset_size": 500, "cache": False}


def graph(**options):
    return gym.make("RewardSelection-Graph-v0", **{"budget": 5, **SIZE, **options})


@pytest.fixture(scope="module")
def trained():
    """Return models by name, trained for a few steps; each is trained once."""
    found = {}

    def get(name):
        if name not in found:
            kind, policy, options = MODELS[name]
            found[name] = kind(policy, graph(), **options).learn(16)
        return found[name]

    return get


def labels_by_predict(env, model, name, seed):
    """Play by hand with `model.predict`, until the model would label a state twice; return the labels."""
    obs, _ = env.reset(seed=seed)
    labels, terminated, memory, start = [], False, None, np.ones(1)
    while not terminated:
        masks = {"action_masks": env.unwrapped.action_masks()} if name == "MaskablePPO" else {}
        action, memory = model.predict(obs, memory, start, deterministic=True, **masks)
        if not env.unwrapped.action_masks()[action]:
            break
        obs, _, terminated, _, _ = env.step(int(action))
        labels.append(int(action))
        start = np.zeros(1)
    return labels


@pytest.mark.parametrize("name", MODELS)
def test_models_play_as_they_predict_and_never_label_twice(name, trained, tmp_path):
    model, env = trained(name), graph()
    episode = agents.play(env, agents.from_sb3(model), seed=1)
    assert len(set(episode.labels.tolist())) == 5
    by_hand = labels_by_predict(graph(), model, name, seed=1)
    assert by_hand == episode.labels[: len(by_hand)].tolist()
    assert name != "MaskablePPO" or len(by_hand) == 5
    model.save(tmp_path / "model.zip")
    for loaded in (agents.from_sb3(tmp_path / "model.zip"), agents.make(str(tmp_path / "model.zip"))):
        loaded.train(env)  # does nothing
        assert agents.play(env, loaded, seed=1).labels.tolist() == episode.labels.tolist()
    agent = agents.load(tmp_path / "model.zip")
    obs, info = env.reset(seed=1)
    agent.begin(env.unwrapped.view())
    scores = agent.scores(obs, info)
    assert scores.argmax() == episode.labels[0]
    assert np.isnan(scores).tolist() == (info["action_mask"] == 0).tolist()


def test_every_label_is_chosen_anew_even_between_refits(trained):
    env = graph(labels_per_refit=5)
    by_hand = labels_by_predict(env, trained("MaskablePPO"), "MaskablePPO", seed=2)
    assert agents.play(env, agents.from_sb3(trained("MaskablePPO")), seed=2).labels.tolist() == by_hand


def test_returns_paid_in_training_are_a_cost_of_the_strategy():
    env = graph()
    model = A2C("MultiInputPolicy", env, seed=0).learn(20)
    agent, disclosed = agents.from_sb3(model), env.unwrapped.calls.disclosed
    assert disclosed == 4  # episodes of five labels
    assert agents.play(graph(), agent).cost == agent.training_calls.cost == disclosed


def test_a_recurrent_model_forgets_the_last_episode(trained):
    env, agent = graph(), agents.from_sb3(trained("RecurrentPPO"))
    first = agents.play(env, agent, seed=1)
    assert agents.play(env, agent, seed=1).labels.tolist() == first.labels.tolist()


@pytest.mark.parametrize("features", [None, ["value", "labelled", "budget"]])
@pytest.mark.parametrize("flat", [FlattenObservation, FlatObservation])
def test_flat_observations(flat, features, tmp_path):
    def make():
        return graph(features=features)

    model = PPO("MlpPolicy", flat(make()), n_epochs=1, **SHORT).learn(16)
    by_hand = labels_by_predict(flat(make()), model, "PPO", seed=1)
    model.save(tmp_path / "flat.zip")
    for given in (model, tmp_path / "flat.zip"):
        for env in (make(), flat(make())):
            assert agents.play(env, agents.from_sb3(given), seed=1).labels[: len(by_hand)].tolist() == by_hand
    with pytest.raises(ObservationError, match="trained with other `features`"):
        agents.play(graph(features=["reward"]), agents.from_sb3(model))
    with pytest.raises(ObservationError, match=r"is shown shape \(2,\)"):
        agents.play(FlattenObservation(graph(features=["budget", "reward_scale"])), agents.from_sb3(model))


def test_models_of_vector_environments_play_single_ones():
    env = VecSelection("RewardSelection-Graph-v0", n_envs=2, flat=True, budget=5, **SIZE)
    model = MaskablePPO("MlpPolicy", env, n_epochs=1, **SHORT).learn(32)
    by_hand = labels_by_predict(FlatObservation(graph()), model, "MaskablePPO", seed=1)
    episode = agents.play(graph(), agents.from_sb3(model), seed=1)
    assert episode.labels.tolist() == by_hand
    assert episode.cost == sum(calls.cost for calls in env.get_attr("calls")) > 0


def test_observations_of_other_wrappers(tmp_path):
    def observe(obs, info):
        return np.stack([obs["visitation"], obs["labelled"]])

    wrapped = gym.wrappers.TransformObservation(
        graph(), lambda obs: observe(obs, {}), gym.spaces.Box(0, 1, (2, 15), np.float32)
    )
    model = ARS("LinearPolicy", wrapped, n_delta=1, seed=0).learn(8)
    with pytest.raises(ObservationError, match=r"observe\(obs, info\)"):
        agents.play(graph(), agents.from_sb3(model))
    model.save(tmp_path / "own.zip")
    played = [agents.play(graph(), agents.from_sb3(given, observe=observe)) for given in (model, tmp_path / "own.zip")]
    assert played[0].labels.tolist() == played[1].labels.tolist()
    with pytest.raises(ObservationError, match=r"shape \(2, 15\), and is shown shape \(15,\)"):
        agents.play(graph(), agents.from_sb3(model, observe=lambda obs, info: obs["visitation"]))


def test_normalised_observations():
    vectorised = VecNormalize(DummyVecEnv([graph]), norm_reward=False)
    model = PPO("MultiInputPolicy", vectorised, n_epochs=1, **SHORT).learn(16)
    env, seen = graph(), []
    agent = agents.from_sb3(model)
    agent._scores.of = lambda observation, mask, memory: (seen.append(observation), (np.zeros((1, 15)), None))[1]
    obs, info = env.reset(seed=0)
    agent.scores(obs, info)
    np.testing.assert_array_equal(seen[0]["visitation"], vectorised.normalize_obs(obs)["visitation"])


@pytest.mark.parametrize("kind", [PPO, MaskablePPO])
def test_models_of_batches(kind, tmp_path):
    model = kind("MultiInputPolicy", BatchLabels(graph(), 2), n_epochs=1, **SHORT).learn(16)
    model.save(tmp_path / "batches.zip")
    for given in (model, tmp_path / "batches.zip"):
        agent, env = agents.from_sb3(given), BatchLabels(graph(), 2)
        labels = agents.play(env, agent, seed=1).labels.tolist()
        assert len(set(labels)) == 5
        obs, _ = env.reset(seed=1)
        masks = {"action_masks": env.action_masks()} if kind is MaskablePPO else {}
        first, second = model.predict(obs, deterministic=True, **masks)[0]
        assert labels[0] == first
        assert labels[1] == second or first == second


def test_models_of_one_shot_environments(tmp_path):
    model = SAC("MultiInputPolicy", OneShot(graph()), policy_kwargs={"net_arch": [8]}, **FEW).learn(8)
    model.save(tmp_path / "scores.zip")
    bandit = OneShot(graph())
    obs, _ = bandit.reset(seed=1)
    bandit.step(model.predict(obs, deterministic=True)[0])
    for given in (model, tmp_path / "scores.zip"):
        agent = agents.from_sb3(given)
        assert agent.taxonomy.test_loop == "open"
        assert agents.play(graph(), agent, seed=1).labels.tolist() == bandit.unwrapped.labels.tolist()


def test_other_worlds_and_other_objects_are_refused(trained, tmp_path):
    with pytest.raises(ObservationError, match="choose among 15 states, and here are 31"):
        agents.play(selectenv.make_env("Tree", budget=3, **SIZE), agents.from_sb3(trained("PPO")))
    for wrong in (3, None, "guided-model", trained("PPO").policy):
        with pytest.raises((OptionTypeError, SavedAgentError)):
            agents.from_sb3(wrong)
    for wrong in ({"observe": 3}, {"observe": lambda: 0}, {"name": 3}):
        with pytest.raises(OptionTypeError):
            agents.from_sb3(trained("PPO"), **wrong)
    with pytest.raises(UnsupportedModelError, match="actions of a model must be"):
        agents.from_sb3(SAC("MlpPolicy", _matrix_env(), **FEW))
    trained("PPO").save(tmp_path / "model.zip")
    with pytest.raises(UnknownNameError, match="has no options; got temperature"):
        agents.make(str(tmp_path / "model.zip"), temperature=1.0)


def _matrix_env():
    class Matrix(gym.Env):
        observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
        action_space = gym.spaces.Box(-1, 1, (2, 2), np.float32)

    return Matrix()


class Explosive:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def rewritten(path, target, change):
    """Write a copy of a model's file with another description."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as other:
        for entry in source.namelist():
            content = source.read(entry)
            if entry == "data":
                data = json.loads(content)
                change(data)
                content = json.dumps(data).encode()
            other.writestr(entry, content)
    return target


@pytest.fixture
def saved(trained, tmp_path):
    trained("PPO").save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


def test_nothing_in_a_file_is_unpickled(saved, tmp_path):
    trap = base64.b64encode(pickle.dumps(Explosive(tmp_path / "exploded"))).decode()

    def arm(data):
        for value in data.values():
            if isinstance(value, dict) and ":serialized:" in value:
                value[":serialized:"] = trap

    armed = rewritten(saved, tmp_path / "armed.zip", arm)
    episode = agents.play(graph(), agents.from_sb3(armed), seed=1)
    assert episode.labels.tolist() == agents.play(graph(), agents.from_sb3(saved), seed=1).labels.tolist()
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data["policy_class"].update(__module__="os"), "its policy class, from os"),
        (lambda data: data["policy_class"].update(__init__="<function Actor.__init__ at 0x1>"), "no policy 'Actor'"),
        (lambda data: data.pop("policy_class"), "not a selector saved by this project|from an unknown module"),
        (lambda data: data["policy_kwargs"].update(activation_fn="<class 'os.system'>"), "activation_fn"),
        (
            lambda data: data["policy_kwargs"].update(features_extractor_class="<class 'mine.Own'>"),
            "features_extractor",
        ),
        (lambda data: data["policy_kwargs"].update(net_arch=[9]), "cannot be built from its description"),
        (lambda data: data["policy_kwargs"].update(net_arch=[10**9]), "larger than its weights"),
        (
            lambda data: data["observation_space"].update(spaces="{'a': Box(0, 1, (3,), float32), 'b'}"),
            "observation space",
        ),
        (lambda data: data["observation_space"].update(spaces="{}"), "observation space"),
        (lambda data: data["action_space"].update(n="many"), "action space"),
    ],
)
def test_files_that_would_have_to_be_unpickled_are_refused(saved, tmp_path, change, reason):
    other = rewritten(saved, tmp_path / "other.zip", change)
    with pytest.raises((UnsupportedModelError, SavedAgentError), match=reason) as refused:
        agents.from_sb3(other)
    assert isinstance(refused.value, SelectEnvError)
    if isinstance(refused.value, UnsupportedModelError) and "larger" not in reason:
        assert "from_sb3(PPO.load(path))" in str(refused.value)


class OwnPolicy(MultiInputActorCriticPolicy):
    """A policy class that a file cannot be built from."""


def test_a_policy_of_ones_own_is_passed_as_a_model(tmp_path):
    model = PPO(OwnPolicy, graph(), n_epochs=1, **SHORT)
    model.save(tmp_path / "own.zip")
    with pytest.raises(UnsupportedModelError, match="is not one of Stable-Baselines3"):
        agents.from_sb3(tmp_path / "own.zip")
    assert len(agents.play(graph(), agents.from_sb3(PPO.load(tmp_path / "own.zip"), name="mine")).labels) == 5


def test_damaged_and_missing_files(saved, tmp_path):
    with pytest.raises(SavedAgentError, match="there is no saved strategy"):
        agents.from_sb3(tmp_path / "none.zip")
    content = saved.read_bytes()
    for damaged in (b"", b"hello", content[: len(content) // 2]):
        (tmp_path / "damaged.zip").write_bytes(damaged)
        for load in (agents.from_sb3, agents.load, lambda path: agents.make(str(path))):
            with pytest.raises(SavedAgentError, match="damaged"):
                load(tmp_path / "damaged.zip")


def test_files_of_our_own_agents_are_played_and_not_trained_again(tmp_path):
    env = selectenv.make_env("Graph", budget=3, **SIZE)
    options = {"steps": 16, "n_envs": 1, "hidden": 8, "sb3": {"n_steps": 8, "batch_size": 8, "n_epochs": 1}}
    for name, more, file in (("ppo", options, "agent.zip"), ("sequential-greedy", {}, "agent.json")):
        agent = agents.make(name, **more)
        agent.train(env)
        path = agent.save(tmp_path / file)
        loaded = agents.make(str(path))
        calls = loaded.training_calls
        assert calls == agent.training_calls
        loaded.train(env)
        assert loaded.training_calls == calls
        assert agents.play(env, loaded).labels.tolist() == agents.play(env, agent).labels.tolist()
    assert type(agents.from_sb3(tmp_path / "agent.zip")) is type(agents.make("ppo"))


def test_a_file_does_not_decide_what_is_imported(tmp_path):
    from agents.search.search_agent import _digest

    agent = agents.make("sequential-greedy")
    agent.train(selectenv.make_env("Graph", budget=3, **SIZE))
    memory = json.loads(agent.save(tmp_path / "agent.json").read_text())
    for name in ("antigravity:Strategy", "other.json"):
        memory.pop("digest", None)
        memory["agent"] = name
        (tmp_path / "agent.json").write_text(json.dumps({**memory, "digest": _digest(memory)}))
        with pytest.raises(SavedAgentError, match="unknown agent"):
            agents.load(tmp_path / "agent.json")


def test_the_cost_of_training_is_known_from_the_environments_of_a_model(tmp_path):
    model = PPO("MultiInputPolicy", SubprocVecEnv([graph, graph]), **SHORT)
    model.learn(32)
    strategy = agents.from_sb3(model)
    assert strategy.training_calls.cost == 2 * (16 // graph().unwrapped.budget)
    model.save(tmp_path / "model.zip")
    model.get_env().close()
    for load in (
        lambda: agents.from_sb3(tmp_path / "model.zip"),
        lambda: agents.from_sb3(PPO.load(tmp_path / "model")),
    ):
        with pytest.warns(UnknownCostWarning, match="cost of its training"):
            assert load().training_calls.cost == 0
