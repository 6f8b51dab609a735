"""Every strategy plays every world through one loop; trained strategies can be saved and played on other data."""

import json

import gymnasium as gym
import numpy as np
import pytest

import agents
import selectenv
from agents.errors import NotTrainedError, SavedAgentError
from agents.search.search_agent import _digest
from selectenv.errors import BudgetWarning, LabelError, NoRewardsWarning, OptionError, PhaseError, UnknownNameError
from selectenv.wrappers import BatchLabels, OneShot

TINY_PPO = {"steps": 16, "n_envs": 1, "hidden": 4, "sb3": {"n_steps": 8, "batch_size": 8, "n_epochs": 1}}
QUICK = {
    "optuna": {"max_evaluations": 6, "batch": 3},
    "swap-search": {"max_evaluations": 300},
    "exact": {"max_evaluations": 2000},
    "maskable-ppo": TINY_PPO,
    "ppo": TINY_PPO,
    "dqn": {"steps": 16, "n_envs": 1, "hidden": 4, "sb3": {"learning_starts": 4, "batch_size": 4}},
}
TRAINED = [name for name, row in agents.AGENTS.items() if issubclass(row.kind, agents.SearchAgent)]


def make_trained(name, env, seed=0):
    agent = agents.make(name, **QUICK.get(name, {}))
    agent.train(env, seed)
    return agent


@pytest.mark.parametrize("world", selectenv.TABULAR)
@pytest.mark.parametrize("name", agents.AGENTS)
def test_every_strategy_plays_every_world(name, world):
    env = gym.make(selectenv.env_id(world), budget=2, dataset_size=20_000)
    agent = make_trained(name, env)
    episode = agents.play(env, agent, seed=1)
    again = agents.play(env, make_trained(name, env), seed=1)
    assert episode.agent == name
    assert len(set(episode.labels.tolist())) == 2
    assert episode.labels.tolist() == again.labels.tolist()
    assert episode.ids.tolist() == env.unwrapped.problem.states[episode.labels].tolist()
    assert episode.performance == env.unwrapped.problem.score(episode.labels)
    assert episode.cost >= episode.computed >= 0
    assert (episode.cost == 0) == (agent.taxonomy.evaluator == "never")


@pytest.mark.parametrize("name", agents.AGENTS)
def test_taxonomy(name):
    taxonomy = agents.AGENTS[name].kind.taxonomy
    assert taxonomy.test_loop in ("open", "closed")
    assert taxonomy.training in ("none", "batch", "iterative")
    assert taxonomy.evaluator in ("never", "training", "playing")
    published = {
        "brute-force": ("open", "batch", "training"),
        "sequential-greedy": ("open", "iterative", "training"),
        "es": ("open", "batch", "training"),
        "guided": ("closed", "none", "never"),
        "visitation": ("open", "none", "never"),
        "visitation-on-policy": ("closed", "none", "never"),
        "uniform": ("open", "none", "never"),
    }
    if name in published:
        assert (taxonomy.test_loop, taxonomy.training, taxonomy.evaluator) == published[name]


def test_other_seeds_give_other_labels():
    env = gym.make(selectenv.env_id("Tree"), budget=6, dataset_size=2000)
    for name in ("uniform", "guided", "es-50"):
        labels = {tuple(agents.play(env, make_trained(name, env, seed), seed).labels) for seed in range(4)}
        assert len(labels) > 1


@pytest.mark.parametrize("name", ["guided", "terminal-guided", "visitation-on-policy"])
def test_closed_loops_select_between_refits(name):
    env = gym.make(selectenv.env_id("Tree"), budget=9, labels_per_refit=4, dataset_size=2000)
    assert len(np.unique(agents.play(env, agents.make(name)).labels)) == 9


@pytest.mark.parametrize("name", TRAINED)
def test_saved_strategies_play_on_other_data(name, tmp_path):
    env = gym.make(selectenv.env_id("Graph"), budget=3, dataset_size=20_000)
    agent = make_trained(name, env)
    path = agent.save(tmp_path / "deep" / "agent.json")
    assert [entry.name for entry in path.parent.iterdir()] == ["agent.json"]
    json.loads(path.read_text())
    loaded = agents.load(path)
    test = gym.make(selectenv.env_id("Graph"), budget=3, phase="test", dataset="test-0.45", dataset_size=20_000)
    episode = agents.play(test, loaded)
    assert episode.agent == name
    assert episode.ids.tolist() == agent.memory["ranking"][:3]
    assert episode.asked == agent.training_calls.cost
    assert episode.replaced == []


def test_states_that_are_not_in_the_data_are_reported_and_replaced():
    env = gym.make(selectenv.env_id("Graph"), budget=15, dataset_size=20_000)
    agent = make_trained("sequential-greedy", env)
    expert = gym.make(selectenv.env_id("Graph"), budget=4, expert_share=1.0, dataset_size=2000)
    agent.memory["ranking"] = [14, 0, 12, 1, 3, 5, 7, 2]
    episode = agents.play(expert, agent)
    assert episode.replaced == [14, 12]  # the expert never goes there
    assert episode.ids.tolist() == [0, 1, 3, 5]


def test_playing_before_training():
    env = gym.make(selectenv.env_id("Graph"), budget=3, dataset_size=500)
    for name in TRAINED:
        with pytest.raises(NotTrainedError, match=r"call agent\.train\(env\) first"):
            agents.play(env, agents.make(name))
    obs, info = env.reset(seed=0)
    for agent, hint in (
        (make_trained("es-50", env), "begin"),
        (agents.make("terminal"), "begin"),
        (agents.make("adaptive-mixture"), r"agent\.train\(env\)"),
    ):
        with pytest.raises(NotTrainedError, match=hint):
            agent.select(obs, info, np.random.default_rng(0))


def test_files_of_other_worlds_budgets_and_kinds(tmp_path):
    env = gym.make(selectenv.env_id("Graph"), budget=3, dataset_size=2000)
    agent = make_trained("es-50", env)
    path = agent.save(tmp_path / "agent.json")
    with pytest.raises(SavedAgentError, match="trained on Graph, not on Tree"):
        agents.play(gym.make(selectenv.env_id("Tree"), budget=3, dataset_size=2000), agents.load(path))
    with pytest.raises(SavedAgentError, match="trained for 3 labels, not for 4"):
        agents.play(gym.make(selectenv.env_id("Graph"), budget=4, dataset_size=2000), agents.load(path))
    strings = selectenv.from_arrays(["a", "b"], [0, 1], ["b", "a"], [False, False])
    with pytest.raises(SavedAgentError, match="not on these data"):
        agents.play(selectenv.make_env(dataset=strings, budget=2), agents.load(path))
    good = json.loads(path.read_text())

    def signed(**changes):
        """Return the text of a file whose content was changed before its digest was computed."""
        memory = {name: value for name, value in (good | changes).items() if name != "digest"}
        return json.dumps(memory | {"digest": _digest(memory)})

    damaged = {
        "no saved strategy": None,
        "damaged or not a saved": "{",
        "not a strategy saved": json.dumps({"hello": 1}),
        "does not match its digest": json.dumps(good | {"performance": 3.0}),
        "version 99": json.dumps(good | {"version": 99}),
        "do not form a ranking": signed(ranking=[1, 1]),
        "cannot be made by this release": signed(agent="es-51"),
        "unknown option|has no option": signed(options={"kk": 3}),
        "cannot be saved": signed(agent="uniform", options={}),
        "damaged: its": signed(performance="abc"),
        "damaged: its entries": signed(calls=[-5, 0]),
        "entries do not form": signed(ranking=[True, 5, 6, 7]),
        "multiple values|cannot be made|holds a strategy": signed(options={"name": "x"}),
    }
    for message, text in damaged.items():
        target = tmp_path / "damaged.json"
        target.unlink(missing_ok=True)
        if text is not None:
            target.write_text(text)
        with pytest.raises(SavedAgentError, match=message):
            agents.load(target)


def test_nothing_half_written_stays_behind(tmp_path, monkeypatch):
    env = gym.make(selectenv.env_id("Graph"), budget=3, dataset_size=500)
    agent = make_trained("sequential-greedy", env)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        agent.save(tmp_path / "agent.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TRAINED)
def test_training_is_refused_in_the_test_phase(name):
    env = gym.make(selectenv.env_id("Graph"), budget=3, phase="test", dataset_size=500)
    with pytest.raises(PhaseError):
        make_trained(name, env)
    assert env.unwrapped.calls.asked == 0


def test_unknown_names_and_options():
    with pytest.raises(UnknownNameError, match="Did you mean 'guided'"):
        agents.make("guidd")
    with pytest.raises(UnknownNameError, match="Did you mean 'temperature'"):
        agents.make("guided", temprature=3)
    with pytest.raises(UnknownNameError, match="it has no options"):
        agents.make("uniform", k=3)


def test_presets_can_be_overridden():
    assert agents.make("es-50").population == 5
    assert agents.make("es-50", iterations=2).iterations == 2
    assert agents.make("es-1000").form == "minatar"


def test_more_labels_than_states_seen():
    with pytest.warns(BudgetWarning, match="the budget of 15 labels is reduced to"):
        env = gym.make(selectenv.env_id("Graph"), budget=15, expert_share=1.0, dataset_size=500)
    labels = agents.play(env, agents.make("uniform")).labels
    assert sorted(labels) == np.flatnonzero(env.unwrapped.problem.dataset.labelable).tolist()


def test_data_without_a_world_can_be_played():
    data = selectenv.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 0], [False, False, True])
    episode = agents.play(selectenv.make_env(dataset=data, budget=2), agents.make("terminal"))
    assert episode.performance is None
    assert episode.ids[0] == 2


def test_closed_loop_strategies_warn_about_data_without_rewards():
    data = selectenv.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 0], [False, False, True])
    env = selectenv.make_env(dataset=data, budget=2)
    with pytest.warns(NoRewardsWarning, match="guided uses revealed rewards"):
        assert len(agents.play(env, agents.make("guided")).labels) == 2
    agents.play(env, agents.make("uniform"))  # which does not use them


@pytest.mark.parametrize("name", ["uniform", "guided", "terminal-guided", "sequential-greedy"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_batches_can_be_played(name, k):
    env = BatchLabels(gym.make(selectenv.env_id("Graph"), budget=5, dataset_size=2000), k)
    episode = agents.play(env, make_trained(name, env))
    assert len(set(episode.labels.tolist())) == 5


def test_one_shot_is_not_played_by_labels():
    with pytest.raises(OptionError, match="OneShot"):
        agents.play(OneShot(gym.make(selectenv.env_id("Graph"), budget=5, dataset_size=500)), agents.make("uniform"))


def test_rankings_of_own_data_know_their_world():
    def env(name):
        source = selectenv.make_problem(name, dataset_size=2000).dataset
        world = selectenv.TABULAR[name].make()
        ids = [world.ids[column] for column in (source.state, source.next_state)]
        data = selectenv.from_arrays(
            ids[0], source.action, ids[1], source.terminated, source.hidden_reward, world=world
        )
        return selectenv.make_env(world, dataset=data, budget=3)

    agent = make_trained("sequential-greedy", env("Tree"))
    with pytest.raises(SavedAgentError, match="trained on Tree, not on CliffWalk"):
        agents.play(env("CliffWalk"), agent)


def test_invalid_calls_are_refused():
    env = gym.make(selectenv.env_id("Graph"), budget=3, dataset_size=500)
    obs, info = env.reset(seed=0)
    for k in (0, 16, 2.0, "2", None, True):
        for name in ("uniform", "guided"):
            with pytest.raises(LabelError):
                agents.make(name).select_many(obs, info, k, np.random.default_rng(0))
    for seed in (None, -1, 1.5):
        with pytest.raises(OptionError, match="seed"):
            agents.play(env, agents.make("uniform"), seed)
        with pytest.raises(OptionError, match="seed"):
            agents.make("es-50").train(env, seed)
    with pytest.raises(OptionError, match=r"agents\.make"):
        agents.play(env, "uniform")


def test_numpy_options_can_be_saved(tmp_path):
    env = gym.make(selectenv.env_id("Graph"), budget=3, dataset_size=500)
    agent = agents.make("es", iterations=np.int64(2), population=np.int32(5))
    agent.train(env, np.int64(3))
    assert agents.load(agent.save(tmp_path / "es.json")).iterations == 2


def test_ranking_strategies_need_no_mask_of_their_own():
    class MostVisited(agents.RankingAgent):
        name = "most-visited"
        taxonomy = agents.Taxonomy("closed", "none", "never")

        def scores(self, obs, info):
            return obs["visitation"]

    env = selectenv.make_env("FrozenLake", budget=4, dataset_size=2000)
    assert len(agents.play(env, MostVisited()).labels) == 4
