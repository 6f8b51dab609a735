"""The native vector environment: members, views, errors, threads and wrappers; `test_vector_equality` compares it."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as vector_wrappers

import selectenv
from selectenv.errors import (
    ActionError,
    BudgetError,
    EpisodeError,
    LabelError,
    OptionError,
    OptionTypeError,
    PhaseError,
    UnknownNameError,
)
from selectenv.wrappers import FlatObservation
from tests.selectenv.vector_twins import assert_same, make_native, make_sync

TABULAR = [selectenv.env_id(name) for name in selectenv.TABULAR]
RANDOM = selectenv.env_id("Random")
SMALL = {"dataset_size": 1_000}
WRAPPERS_OF_OBSERVATIONS = (
    lambda envs: vector_wrappers.NormalizeObservation(FlatObservation(envs)),
    vector_wrappers.FlattenObservation,
)
"""Gymnasium refuses them with `AutoresetMode.SAME_STEP`."""


class Shy:
    """A learner of somebody else, which counts its fits."""

    fits = 0

    def fit(self, dataset, rewards):
        type(self).fits += 1
        return selectenv.TablePolicy(np.full((dataset.n_states, dataset.n_actions), 1 / dataset.n_actions))


def test_learners_of_others_are_fitted_once_per_label_set():
    data = selectenv.make_problem("Graph", **SMALL).dataset
    envs = selectenv.RewardSelectionVectorEnv(selectenv.SelectionProblem(data, Shy()), 3, budget=2)
    envs.reset(seed=0)
    assert Shy.fits == 1  # without labels, once for all
    obs, rewards, *_ = envs.step(np.array([0, 1, 2]))
    assert Shy.fits == 4
    assert not rewards.any()
    assert not obs["value"].any()
    envs.step(np.array([0, 1, 2]))  # all wasted: nothing to learn
    assert Shy.fits == 4


def test_make_vec_takes_the_native_vector_by_default():
    for env_id in (*TABULAR, RANDOM, *map(selectenv.env_id, selectenv.GAMES)):
        assert gym.spec(env_id).vector_entry_point is not None
    envs = gym.make_vec("RewardSelection-Graph-v0", num_envs=2, budget=2, **SMALL)
    assert isinstance(envs, selectenv.RewardSelectionVectorEnv)
    assert "RewardSelection-Graph-v0" in repr(envs)
    again = gym.make_vec(envs.spec)
    assert again.num_envs == 2
    assert again.options == envs.options


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("selectenv.episode_batch.WORTH_A_THREAD", 1)
    plays = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SELECTENV_THREADS", threads)
        envs = make_native("RewardSelection-TwoRooms-v0", 150, budget=3, reward_mode="marginal", **SMALL)
        rng = np.random.default_rng(0)
        plays.append([envs.reset(seed=0), *(envs.step(rng.integers(50, size=150)) for _ in range(5))])
    for one, other in zip(*plays, strict=True):
        assert_same(one, other)


def test_what_is_not_asked_for_is_not_computed(monkeypatch):
    """Without learned features and before the end, nothing is learned at all."""
    calls = []
    monkeypatch.setattr("selectenv.episode_batch.learned_features", lambda *given: calls.append(given[6]) or ({}, 0.0))
    for make in (
        selectenv.make_env,
        lambda *given, **options: selectenv.make_vector_env(*given, num_envs=2, **options),
    ):
        env = make("Graph", budget=3, solver="sampled", features=["labelled", "visitation"], **SMALL)
        obs = env.reset(seed=0)[0]
        assert list(obs) == ["labelled", "visitation"]
        env.step(1 if isinstance(env, gym.Env) else np.array([1, 2]))
        assert not calls
        make("Graph", budget=3, solver="sampled", features=["value"], **SMALL).reset(seed=0)
        assert calls.pop() == ["value"]


def test_features_are_those_of_the_full_observation():
    whole, part = (
        selectenv.make_env("Tree", budget=4, features=names, **SMALL) for names in (None, ["budget", "value"])
    )
    assert set(part.observation_space.spaces) == {"budget", "value"}
    assert part.options.features == ("value", "budget")
    for action in (None, 3, 15, 7):
        steps = [env.reset(seed=0) if action is None else env.step(action) for env in (whole, part)]
        for name, feature in steps[1][0].items():
            np.testing.assert_array_equal(feature, steps[0][0][name])


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        (["values"], UnknownNameError, "Did you mean 'value'"),
        ([], OptionError, "at least one"),
        (["value", "value"], OptionError, "different names"),
        ("value", OptionError, "a list of names"),
        (3, OptionError, "a list of names"),
    ],
)
def test_wrong_features_are_refused(features, error, message):
    for make in (selectenv.make_env, selectenv.make_vector_env):
        with pytest.raises(error, match=message):
            make("Graph", features=features, **SMALL)


def test_errors():
    envs = make_native("RewardSelection-Graph-v0", 3, AutoresetMode.DISABLED, budget=2, **SMALL)
    with pytest.raises(EpisodeError, match="call reset"):
        envs.step(np.zeros(3, int))
    with pytest.raises(EpisodeError, match="first reset must reset all"):
        envs.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(EpisodeError, match="no episode has begun"):
        envs.call("view")
    envs.reset(seed=0)
    for actions in (np.zeros(2, int), np.zeros((3, 1), int), np.zeros(3), "abc", None):
        with pytest.raises(ActionError, match="actions must be"):
            envs.step(actions)
    for wrong in (-1, 15):
        with pytest.raises(ActionError, match=f"no state number {wrong}"):
            envs.step(np.array([0, wrong, 0]))
    assert envs.call("labels_spent") == (0, 0, 0)  # a refused step changes nothing
    for mask, error in (
        ([True] * 3, OptionTypeError),
        (np.ones(2, bool), OptionError),
        (np.zeros(3, bool), OptionError),
    ):
        with pytest.raises(error, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    for options, error in (
        ({"budgets": 1}, UnknownNameError),
        ({"budget": 99}, BudgetError),
        ({"initial": [99]}, LabelError),
    ):
        with pytest.raises(error):
            envs.reset(options=options)
    for seed in ([1, 2], "1", 1.5, [-1, 0, 1]):
        with pytest.raises(OptionError, match="seed"):
            envs.reset(seed=seed)
    envs.step(np.array([0, 1, 2]))
    envs.step(np.array([0, 1, 2], np.uint8))
    for ended in (3, 2, 1):  # until all of them are reset
        with pytest.raises(EpisodeError, match=f"{ended} episodes have ended"):
            envs.step(np.array([0, 1, 2]))
        envs.reset(options={"reset_mask": np.arange(3) == ended - 1})
    envs.step(np.array([0, 1, 2]))
    with pytest.raises(OptionError, match="num_envs"):
        make_native("RewardSelection-Graph-v0", 0, **SMALL)
    with pytest.raises(UnknownNameError, match="NextStep"):
        make_native("RewardSelection-Graph-v0", 1, "next", **SMALL)
    with pytest.raises(UnknownNameError, match="Did you mean 'budget'"):
        make_native("RewardSelection-Graph-v0", 1, budgte=3, **SMALL)


def test_modes_by_name():
    envs = make_native("RewardSelection-Graph-v0", 1, "SameStep", **SMALL)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_members_show_what_single_environments_show():
    envs = make_native("RewardSelection-Tree-v0", 2, budget=3, render_mode="ansi", **SMALL)
    single = gym.make("RewardSelection-Tree-v0", budget=3, render_mode="ansi", **SMALL).unwrapped
    envs.reset(seed=0)
    single.reset(seed=0)
    for action in (3, 3):
        envs.step(np.array([action, 8]))
        single.step(action)
    assert envs.call("render")[0] == single.render() == envs.render()[0]
    assert envs.get_attr("render_mode") == ("ansi", "ansi")
    assert envs.get_attr("labels")[0].tolist() == [3]
    assert envs.get_attr("marginal") == (False, False)
    assert envs.get_attr("options")[0] == single.options
    assert envs.call("unwrapped")[1].action_space == single.action_space
    assert envs.call("observation_space")[0] == single.observation_space
    assert envs.call("metadata")[0]["render_fps"] == 2
    assert envs.call("spec")[0].id == envs.spec.id
    assert envs.call("twin")[0].options == single.options
    envs.set_attr("tag", ["a", "b"])
    assert envs.get_attr("tag") == ("a", "b")
    envs.set_attr("tag", 3)
    assert envs.get_attr("tag") == (3, 3)
    with pytest.raises(OptionError, match="2 environments and 3 values"):
        envs.set_attr("tag", [1, 2, 3])
    with pytest.raises(OptionError, match="budget cannot be set"):
        envs.set_attr("budget", 9)
    with pytest.raises(AttributeError, match="take their steps together"):
        envs.call("step", 1)
    with pytest.raises(AttributeError, match="no attribute 'labeled'"):
        envs.get_attr("labeled")
    with pytest.warns(UserWarning, match="render_mode"):
        assert make_native("RewardSelection-Tree-v0", 1, **SMALL).render() is None


@pytest.mark.parametrize("options", [{}, {"exploit": "pooled", "labels_per_refit": 2, "learner": "adapted"}])
def test_views_are_those_of_single_environments(options):
    options = {"budget": 6, "initial_ratio": 0.1, **options, **SMALL}
    one, other = (make("RewardSelection-Tree-v0", 2, **options) for make in (make_sync, make_native))
    for envs in (one, other):
        envs.reset(seed=3)
        envs.step(np.array([4, 5]))
    for mine, theirs in zip(one.call("view"), other.call("view"), strict=True):
        for name in (*(name for name in vars(mine) if name[0] != "_" and name != "dataset"), "rewards"):
            assert_same(getattr(mine, name), getattr(theirs, name), name)


def test_views_are_updated_and_end_with_their_episode():
    envs = make_native("RewardSelection-Tree-v0", 2, budget=3, **SMALL)
    single = gym.make("RewardSelection-Tree-v0", budget=3, **SMALL).unwrapped
    single.reset(seed=0)
    envs.reset(seed=0, options={"initial": [4]})
    view, ours = envs.call("view")[1], single.view()
    single.step(4)
    envs.step(np.array([3, 8]))
    single.step(8)
    np.testing.assert_array_equal(view.rewards, ours.rewards)
    assert view.initial.tolist() == [4]
    assert envs.call("view")[1] is view
    envs.step(np.array([3, 9]))
    envs.step(np.array([3, 9]))  # reset
    assert envs.call("view")[1] is not view
    assert np.isnan(envs.call("view")[1].rewards).all()


def test_the_test_phase_locks_the_evaluator_of_every_environment():
    envs = make_native("RewardSelection-Graph-v0", 2, phase="test", budget=2, **SMALL)
    envs.reset(seed=0)
    problems = envs.get_attr("problem")
    for labels in (1, 2):
        with pytest.raises(PhaseError, match="locked"):
            problems[0].performance([1])
        info = envs.step(np.array([labels, labels]))[4]
    assert problems[0].performance([1, 2]) == info["performance"][0]
    envs.step(np.array([0, 0]))
    with pytest.raises(PhaseError, match="locked"):
        problems[0].performance([1])
    assert [calls.asked for calls in envs.calls] == [1, 0]


def test_scores_of_judged_episodes_are_no_cost():
    envs = make_native("RewardSelection-Graph-v0", 2, budget=1, **SMALL)
    envs.reset(seed=0)
    envs.members[1].judge()
    envs.step(np.array([0, 1]))
    assert [(calls.cost, calls.uncounted) for calls in envs.calls] == [(1, 0), (0, 1)]
    envs.step(np.array([0, 1]))
    envs.step(np.array([0, 1]))
    assert [(calls.cost, calls.uncounted) for calls in envs.calls] == [(2, 0), (1, 1)]


def test_initial_labels_of_different_numbers():
    """Gymnasium's own vectors cannot stack them, so single environments are played one by one."""
    options = {"budget": (0.3, 0.5), "initial_ratio": 0.2, "padding": 40, "largest": 40, "reward_mode": "marginal"}
    envs = make_native(RANDOM, 4, AutoresetMode.DISABLED, **options)
    singles = [gym.make(RANDOM, **options).unwrapped for _ in range(4)]
    obs, info = envs.reset(seed=0)
    shown = [single.reset(seed=number) for number, single in enumerate(singles)]
    assert info["initial"].dtype == object
    rng = np.random.default_rng(0)
    for _ in range(25):
        for number, (seen, *_, alone) in enumerate(shown):
            for name, feature in seen.items():
                np.testing.assert_array_equal(obs[name][number], feature)
            if info["_initial"][number]:  # after a reset of some environments, those of the others are missing
                np.testing.assert_array_equal(info["initial"][number], alone["initial"])
            for state, by_action in alone.get("initial_revealed", {}).items():
                for action, mean in by_action.items():
                    assert info["initial_revealed"][state][action][number] == mean
                    assert info["initial_revealed"][state][f"_{action}"][number]
        actions = rng.integers(40, size=4)
        obs, rewards, ended, _, info = envs.step(actions)
        shown = [single.step(action) for single, action in zip(singles, actions, strict=True)]
        assert rewards.tolist() == [step[1] for step in shown]
        assert ended.tolist() == [step[2] for step in shown]
        if ended.any():
            obs, info = envs.reset(options={"reset_mask": ended})
            for number in np.flatnonzero(ended):
                shown[number] = singles[number].reset()


def test_ids_that_are_strings():
    words = ["a", "b", "c"]
    data = selectenv.from_arrays(words, [0, 1, 0], ["b", "c", "a"], [False, False, True], rewards=[0, 1, 2])
    envs = selectenv.make_vector_env(dataset=data, budget=2, num_envs=2)
    sync = gym.vector.SyncVectorEnv([lambda: selectenv.make_env(dataset=data, budget=2)] * 2)
    assert_same(sync.reset(seed=0), envs.reset(seed=0))
    for _ in range(3):
        assert_same(sync.step(np.array([0, 2])), envs.step(np.array([0, 2])))


def test_sources_whose_ids_and_learners_change():
    """A problem source may return anything with the same number of states."""

    def source(rng):
        kind = int(rng.integers(3))
        words = np.array(["x", "y", "z"]) if kind == 0 else np.array([1, 2, 3]) * kind
        following = np.roll(words, 1)
        data = selectenv.from_arrays(words, [0, 1, 1], following, [False, False, True], rewards=[1, kind, 0])
        return selectenv.SelectionProblem(data, selectenv.learners.ExactLearner() if kind else Shy())

    envs = selectenv.RewardSelectionVectorEnv(source, 4, 2)
    alone = [selectenv.RewardSelectionEnv(source, 2) for _ in range(4)]
    obs = envs.reset(seed=0)[0]
    singles = [env.reset(seed=seed) for seed, env in enumerate(alone)]
    for action in (0, 2, None, 1):
        for number, single in enumerate(singles):
            for name, feature in single[0].items():
                np.testing.assert_array_equal(obs[name][number], feature)
        obs = envs.step(np.full(4, action or 0))[0]
        singles = [env.reset() if action is None else env.step(action) for env in alone]


@pytest.mark.parametrize("world", ["Tree", "Random"])
def test_pickling_in_the_middle_of_an_episode(world):
    options = {"padding": 20, "largest": 20} if world == "Random" else SMALL
    envs = make_native(selectenv.env_id(world), 3, budget=3, reward_mode="marginal", **options)
    envs.reset(seed=0)
    envs.step(np.array([1, 2, 3]))
    twin = pickle.loads(pickle.dumps(envs))
    for action in range(5):
        assert_same(envs.step(np.full(3, action)), twin.step(np.full(3, action)))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_wrappers_of_gymnasium(mode):
    """They see the same as over Gymnasium's own vectors."""
    for wrap in (
        vector_wrappers.RecordEpisodeStatistics,
        vector_wrappers.NormalizeReward,
        lambda envs: vector_wrappers.ClipReward(envs, 0.0, 0.5),
        *([] if mode == AutoresetMode.SAME_STEP else WRAPPERS_OF_OBSERVATIONS),
    ):
        pair = [wrap(make("RewardSelection-Graph-v0", 3, mode, budget=3, **SMALL)) for make in (make_sync, make_native)]
        rng, shown = np.random.default_rng(0), [envs.reset(seed=1) for envs in pair]
        for _ in range(8):
            for info in (shown[0][-1], shown[1][-1]):
                info.get("episode", {}).pop("t", None)  # the time an episode takes
            assert_same(*shown)
            actions = rng.integers(15, size=3)
            shown = [envs.step(actions) for envs in pair]


def test_many_environments_cost_little_memory():
    """All of them share the problem."""
    envs = make_native("RewardSelection-Tree-v0", 64, budget=2, **SMALL)
    envs.reset(seed=0)
    problems = envs.get_attr("problem")
    assert len({id(problem.dataset) for problem in problems}) == 1
    assert len({id(problem.evaluator.counts) for problem in problems}) == 64
