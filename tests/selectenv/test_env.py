"""The environment: episodes, rewards, phases, observations, and the promises to Gymnasium and Stable-Baselines3."""

import json
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import selectenv
from selectenv.budget import number_of_labels
from selectenv.errors import ActionError, BudgetError, EpisodeError, NoEvaluatorError, OptionError, PhaseError
from selectenv.evaluation.evaluator import Calls
from selectenv.observation import on_policy_visitation
from selectenv.policies import PolicyList
from tests.selectenv import twins

IDS = [selectenv.env_id(name) for name in selectenv.TABULAR]
SMALL = {"dataset_size": 2000}


def make(name="Tree", **options):
    return gym.make(selectenv.env_id(name), **SMALL | options)


def play(env, actions, seed=0):
    """Return everything an episode shows: observations, rewards and infos."""
    return [env.reset(seed=seed), *(env.step(action) for action in actions)]


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_checkers_pass_without_warnings(env_id, mode):
    check_env(gym.make(env_id, render_mode=mode).unwrapped)
    sb3_check_env(gym.make(env_id, render_mode=mode))


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize(
    "options", [{"reward_mode": "marginal"}, {"phase": "test"}, {"learner": "adapted"}, {"solver": "sampled"}]
)
def test_checkers_pass_with_options(env_id, options):
    check_env(gym.make(env_id, **SMALL, **options).unwrapped, skip_render_check=True)


def test_import_is_light():
    """Neither torch nor matplotlib, and no kernel compiled."""
    code = (
        "import sys, selectenv\n"
        "from selectenv.kernels.tabular import solve, returns, sample, qlearning, occupancy\n"
        "assert not {'torch', 'matplotlib', 'stable_baselines3'} & set(sys.modules), 'heavy'\n"
        "functions = [f for m in (solve, returns, sample, qlearning, occupancy) for f in vars(m).values()]\n"
        "kernels = [f for f in functions if hasattr(f, 'signatures')]\n"
        "assert len(kernels) > 10 and not any(k.signatures for k in kernels), 'compiled'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_module_prefix_registers():
    code = "import gymnasium as gym; gym.make('selectenv:RewardSelection-Graph-v0', dataset_size=100)"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(
    st.sampled_from(["Graph", "Tree", "FrozenLake"]),
    st.sampled_from(["final", "marginal"]),
    st.integers(1, 10),
    st.sampled_from([0.0, 0.1, 0.2]),
    st.sampled_from(["uds", "adapted"]),
    st.integers(0, 1000),
)
def test_return_is_the_performance_of_the_labels(name, mode, budget, initial, learner, seed):
    """In both modes, for any order, with wasted labels and with an initial ratio."""
    n = {"Graph": 15, "Tree": 31, "FrozenLake": 11}[name]
    if int(initial * n) >= budget:
        return
    env = make(name, budget=budget, reward_mode=mode, initial_ratio=initial, learner=learner)
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    labels, total, terminated = set(info["initial"].tolist()), 0.0, False
    assert len(labels) == int(initial * n)
    steps = 0
    while not terminated:
        action = int(rng.integers(0, n))
        _, reward, terminated, truncated, info = env.step(action)
        assert info["wasted"] == (action in labels)
        labels.add(action)
        total += reward
        steps += 1
        assert not truncated
        assert ("performance" in info) == terminated
    assert steps == budget - int(initial * n)
    assert total == pytest.approx(info["performance"], abs=1e-9)
    assert info["performance"] == pytest.approx(env.unwrapped.problem.performance(labels), abs=1e-12)
    assert sorted(env.unwrapped.labels) == sorted(labels)


def test_the_mode_decides_how_many_performances_are_disclosed():
    for mode, disclosed, computed in (("final", 1, 1), ("marginal", 5, 4)):
        env = make(budget=5, reward_mode=mode)
        play(env, [3, 3, 9, 15, 20])  # the second label is wasted: its performance is cached
        assert env.unwrapped.calls == Calls(0, disclosed, computed, 0)


def test_counts_are_per_environment_and_survive_resets():
    problem = selectenv.make_problem("Graph", **SMALL)
    one, two = (selectenv.RewardSelectionEnv(problem, 2) for _ in range(2))
    for env in (one, two):
        play(env, [0, 1])
    one.problem.performance([0])
    one.reset()
    one.problem.performance([0])
    assert (one.problem.evaluator.calls, one.calls.computed, two.calls.asked) == (2, 2, 0)
    assert problem.evaluator.calls == 0


def test_test_phase_refuses_the_evaluator_until_the_end():
    env = make("Graph", phase="test", budget=2)
    problem = env.unwrapped.problem
    env.reset(seed=0)
    for ask in (
        lambda: problem.performance([0]),
        lambda: problem.performance_many(np.zeros((1, 15), bool)),
        lambda: problem.evaluator.evaluate(problem.learn([0]).policy),
        lambda: problem.score([0]),
        lambda: problem.with_calls().performance([0]),
        lambda: problem.evaluator.returns(problem.learn([0]).batch),
        lambda: problem.evaluator.returns(PolicyList([problem.learn([0]).policy])),
    ):
        with pytest.raises(PhaseError, match="until the episode has ended"):
            ask()
    env.step(0)
    _, reward, terminated, _, info = env.step(1)
    assert terminated
    assert reward == info["performance"] == problem.performance([0, 1])
    env.reset()
    with pytest.raises(PhaseError):
        env.unwrapped.problem.performance([0])
    with pytest.raises(PhaseError, match="marginal"):
        make(phase="test", reward_mode="marginal")


def test_observation_features():
    env = make(budget=4, dataset_size=20_000)
    obs, info = env.reset(seed=0)
    problem = env.unwrapped.problem
    assert env.observation_space.contains(obs)
    assert info["states"].tolist() == problem.states.tolist()
    np.testing.assert_allclose(obs["visitation"], problem.dataset.visitation, rtol=1e-6)
    np.testing.assert_allclose(obs["termination"], problem.dataset.termination, rtol=1e-6)
    assert not obs["value"].any()
    assert not obs["predecessors"].any()
    obs, _, _, _, _ = env.step(15)
    assert obs["labelled"][15] == np.float32(0.25)
    assert obs["budget"] == np.float32(0.75)
    values = problem.learn([15]).values
    np.testing.assert_allclose(obs["value"], values / np.abs(values).max(), rtol=1e-6)
    first, state, count = problem.dataset.predecessors
    mine = slice(first[15], first[16])
    np.testing.assert_allclose(obs["predecessors"][state[mine]], count[mine] / count[mine].sum(), rtol=1e-6)
    assert obs["on_policy_visitation"].sum() == pytest.approx(1, abs=1e-5)
    policy = problem.learn([15]).table
    p, _, _ = twins.dense_data(problem.dataset)
    chain = np.einsum("sa,sat->st", policy, p)
    occupancy = np.linalg.solve(np.eye(31) - 0.99 * chain.T, problem.dataset.start)
    np.testing.assert_allclose(obs["on_policy_visitation"], occupancy / occupancy.sum(), atol=1e-6)


def test_published_occupancy_loses_the_mass_of_ties():
    env = make("CliffWalk", occupancy="published", dataset_size=20_000)
    obs, _ = env.reset(seed=0)
    problem = env.unwrapped.problem
    p, _, _ = twins.dense_data(problem.dataset)
    policy = problem.learn([]).table
    chain = np.einsum("sa,sat->st", (policy > 0) / 4, p)
    expected = np.linalg.solve(np.eye(37) - 0.99 * chain.T, problem.dataset.start)
    np.testing.assert_allclose(obs["on_policy_visitation"], expected / expected.sum(), atol=1e-6)
    greedy = np.zeros((37, 4))
    greedy[:, 0] = 1
    flow = on_policy_visitation(problem, greedy, np.zeros(37, bool), "published")
    assert not np.allclose(flow, on_policy_visitation(problem, greedy, np.zeros(37, bool)))


@pytest.mark.parametrize(("per_refit", "refits"), [(1, 9), (3, 3), (0.1, 3), (9, 1)])
@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_refits(monkeypatch, per_refit, refits, solver):
    env = make(budget=9, labels_per_refit=per_refit, solver=solver, dataset_size=2_000)
    learner = type(env.unwrapped.problem.learner)
    learned, fit = [], learner.fit

    def counting(self, dataset, rewards, labels=None):
        learned.append(labels.sum())
        return fit(self, dataset, rewards, labels)

    monkeypatch.setattr(learner, "fit", counting)
    before, changes = env.reset(seed=0)[0], 0
    learned.clear()
    for i, action in enumerate([15, 23, 19, 7, 11, 3, 1, 0, 30]):
        after = env.step(action)[0]
        same = [np.array_equal(before[name], after[name]) for name in ("value", "on_policy_visitation", "predecessors")]
        changes += not all(same)
        if (i + 1) % max(1, int(per_refit * 31 if isinstance(per_refit, float) else per_refit)):
            assert all(same)
        before = after
    assert changes == refits
    if solver == "sampled":  # the exact learner is refitted in the compiled pass
        assert len(learned) == refits  # the last fit serves the final score too


def test_wasted_labels_and_masks():
    env = make("Graph", budget=3)
    _, info = env.reset(seed=0)
    assert info["action_mask"].dtype == np.int8
    assert info["action_mask"].all()
    assert env.unwrapped.action_masks().dtype == np.bool_
    info = env.step(4)[-1]
    assert not info["wasted"]
    assert info["state"] == 4
    assert not info["action_mask"][4]
    assert not env.unwrapped.action_masks()[4]
    assert env.step(4)[-1]["wasted"]
    unseen = make("Graph", expert_share=1.0, budget=2)
    unseen.reset(seed=0)
    closed = np.flatnonzero(~unseen.unwrapped.action_masks())
    assert np.array_equal(closed, np.flatnonzero(~unseen.unwrapped.problem.dataset.labelable))
    assert unseen.step(int(closed[0]))[-1]["wasted"]


@pytest.mark.parametrize(
    ("budget", "n", "labels"),
    [
        (1, 31, 1),
        (31, 31, 31),
        (1.0, 31, 31),
        (0.3, 31, 9),
        (0.01, 31, 1),
        (0.3, 10, 3),
        (np.int64(4), 9, 4),
        (0.7, 10, 7),
    ],
)
def test_budgets(budget, n, labels):
    assert number_of_labels(budget, n) == labels


@pytest.mark.parametrize("budget", [0, -1, 32, 0.0, -0.5, 1.5, float("nan"), float("inf"), "3", True, None, [3]])
def test_budgets_out_of_range(budget):
    with pytest.raises(BudgetError, match="allowed: an int from 1 to 31"):
        make(budget=budget)


def test_a_float_that_should_have_been_an_int():
    with pytest.raises(BudgetError, match="Did you mean the int 3"):
        make(budget=3.0)


INVALID_ACTIONS = [-1, 31, 1.0, "1", None, True, [1], np.float32(2), np.array([1.0]), np.array([[1]]), np.array([31])]


@pytest.mark.parametrize("action", INVALID_ACTIONS)
def test_invalid_actions_are_refused(action):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(ActionError):
        env.step(action)
    assert env.labels_spent == 0


@pytest.mark.parametrize("action", [3, np.int32(3), np.uint8(3), np.array(3)])
def test_actions_of_any_integer_type(action):
    env = make().unwrapped
    env.reset(seed=0)
    env.step(action)
    assert env.labels.tolist() == [3]


def test_step_before_reset_and_after_the_end():
    env = make(budget=1)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env = env.unwrapped
    with pytest.raises(EpisodeError, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(EpisodeError, match="after the last label"):
        env.step(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward_mode": "sparse"}, "final, marginal"),
        ({"phase": "eval"}, "train, test"),
        ({"labels_per_refit": 0}, "labels_per_refit"),
        ({"labels_per_refit": -0.5}, "labels_per_refit"),
        ({"labels_per_refit": True}, "labels_per_refit"),
        ({"labels_per_refit": 2.5}, "labels_per_refit"),
        ({"labels_per_refit": float("nan")}, "labels_per_refit"),
        ({"labels_per_refit": "x"}, "labels_per_refit"),
        ({"initial_ratio": "x"}, "initial_ratio"),
        ({"initial_ratio": 1.5}, "initial_ratio"),
        ({"initial_ratio": 0.3, "budget": 3}, "at least one must be left"),
        ({"occupancy": "true"}, "normalised, published"),
        ({"exploit": "worst"}, "best, pooled"),
        ({"bugdet": 3}, "Did you mean 'budget'"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        make(**options)


def test_initial_labels_differ_between_episodes_and_repeat_with_the_seed():
    env = make(initial_ratio=0.2, budget=10)
    first, second, again = (env.reset(seed=seed)[1]["initial"].tolist() for seed in (0, 1, 0))
    assert first == again != second
    obs, _ = env.reset(seed=0)
    assert sorted(np.flatnonzero(obs["labelled"])) == sorted(first)


def equal_shown(one, other):
    """Compare observations, rewards and infos of two episodes."""
    flat = [gym.spaces.utils.flatten(make().observation_space, part[0]) for part in (one, other)]
    return np.array_equal(*flat) and one[1:-1] == other[1:-1]


def test_same_seed_same_episode():
    actions = [3, 8, 20, 1]
    episodes = [play(make(budget=4, initial_ratio=0), actions, seed=5) for _ in range(2)]
    assert all(equal_shown(one, other) for one, other in zip(*episodes, strict=True))


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("options", [{"initial_ratio": 0.1}, {"dataset_seed": None}])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_vector_environments_play_the_same_episodes(mode, options):
    options = SMALL | {"budget": 5, "reward_mode": "marginal"} | options
    vector = gym.make_vec(selectenv.env_id("Tree"), num_envs=2, vectorization_mode=mode, **options)
    singles = [gym.make(selectenv.env_id("Tree"), **options) for _ in range(2)]
    seen, info = vector.reset(seed=[7, 8])
    alone = [env.reset(seed=seed) for env, seed in zip(singles, (7, 8), strict=True)]
    assert info["action_mask"].shape == (2, 31)
    steps = 5 - len(alone[0][1]["initial"])
    for step in range(steps):
        for i in range(2):
            for name, feature in alone[i][0].items():
                np.testing.assert_array_equal(seen[name][i], feature)
        actions = np.array([2 * step, 30 - step])
        seen, rewards, terminated, _, info = vector.step(actions)
        alone = [env.step(int(action)) for env, action in zip(singles, actions, strict=True)]
        np.testing.assert_array_equal(rewards, [part[1] for part in alone])
    assert terminated.all()
    np.testing.assert_array_equal(info["performance"], [part[-1]["performance"] for part in alone])
    vector.close()


def test_fresh_data_at_every_reset():
    env = make("Graph", dataset_seed=None, budget=2)
    prints = []
    for seed in (0, None, 0):
        env.reset(seed=seed)
        prints.append(env.unwrapped.problem.dataset.fingerprint)
    assert prints[0] == prints[2] != prints[1]


def test_a_source_must_keep_the_number_of_states():
    sizes = iter([3, 3, 4])
    env = selectenv.RewardSelectionEnv(lambda rng: selectenv.make_problem("Tree", depth=next(sizes), **SMALL), budget=2)
    env.reset(seed=0)
    with pytest.raises(OptionError, match="must keep the number of states, 7: it made 15"):
        env.reset(seed=0)


@pytest.mark.parametrize("env_id", IDS)
def test_spec_round_trip_through_json(env_id):
    env = gym.make(env_id, budget=0.2, learner="adapted", **SMALL)
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(EnvSpec.from_json(text))
    one, other = play(env, [1, 2]), play(again, [1, 2])
    for a, b in zip(one, other, strict=True):
        for name in a[0]:
            np.testing.assert_array_equal(a[0][name], b[0][name])


@pytest.mark.parametrize("options", [{}, {"dataset_seed": None}])
def test_pickling_in_the_middle_of_an_episode(options):
    env = make(budget=4, reward_mode="marginal", **options)
    play(env, [3, 8])
    twin = pickle.loads(pickle.dumps(env))
    for action in (20, 1):
        one, other = env.step(action), twin.step(action)
        assert one[1:4] == other[1:4]
        for name in one[0]:
            np.testing.assert_array_equal(one[0][name], other[0][name])
    np.testing.assert_array_equal(env.reset()[1]["states"], twin.reset()[1]["states"])


def test_data_without_a_world_play_for_nothing():
    """A practitioner with unlabelled data can still play, and take the labels."""
    data = selectenv.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 0], [False, False, True])
    for dataset in (
        data,
        selectenv.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 0], [False, False, True], rewards=[0, 0, 1]),
    ):
        env = selectenv.make_env(dataset=dataset, budget=2)
        env.reset(seed=0)
        env.step(2)
        _, reward, terminated, _, info = env.step(1)
        assert (reward, terminated, "performance" in info) == (0.0, True, False)
        assert env.labels.tolist() == [2, 1]
    with pytest.raises(NoEvaluatorError, match="marginal rewards need an evaluator"):
        selectenv.make_env(dataset=data, budget=2, reward_mode="marginal")


def test_rewards_missing_in_a_world():
    """Performance needs rewards to learn from: everything says so at once, and nothing is counted."""
    world = selectenv.TABULAR["Graph"].make()
    source = selectenv.make_problem("Graph", dataset_size=200).dataset
    data = selectenv.from_arrays(source.state, source.action, source.next_state, source.terminated, world=world)
    problem = selectenv.make_problem(world, dataset=data)
    for ask in (lambda: problem.performance([0]), lambda: problem.performance_many(np.ones((2, 15), bool))):
        with pytest.raises(NoEvaluatorError, match="needs rewards"):
            ask()
    assert problem.evaluator.calls == 0
    env = selectenv.RewardSelectionEnv(problem, 2)
    assert [part[1] for part in play(env, [0, 1])[1:]] == [0.0, 0.0]
    with pytest.raises(NoEvaluatorError, match="marginal"):
        selectenv.RewardSelectionEnv(problem, 2, reward_mode="marginal")


@pytest.mark.parametrize("problem", [None, "Tree", lambda rng: 3])
def test_invalid_problems_are_refused(problem):
    with pytest.raises(OptionError, match="SelectionProblem"):
        selectenv.RewardSelectionEnv(problem, 2)


def test_fresh_data_and_given_data_exclude_each_other():
    gym.make(selectenv.env_id("Graph"), dataset_seed=None, cache=False, dataset_size=200)
    data = selectenv.make_problem("Graph", dataset_size=200).dataset
    with pytest.raises(OptionError, match="the data are given"):
        selectenv.make_env("Graph", dataset=data, dataset_seed=None)


def test_an_array_of_numbers_labels_them_all():
    one, other = make(budget=3).unwrapped, make(budget=3).unwrapped
    batch = play(one, [np.array([3, 8, 3])])[-1]
    single = play(other, [3, 8, 3])[-1]
    assert batch[1:4] == single[1:4]
    assert batch[4]["wasted"] == 1


def test_unknown_ids_of_environments_get_gymnasiums_hint():
    with pytest.raises(gym.error.Error, match="RewardSelection"):
        gym.make("RewardSelection-Forest-v0")
