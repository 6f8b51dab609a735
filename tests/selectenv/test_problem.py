"""Performance: the published exact values, and two ways of computing each thing."""

import itertools
from math import comb

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from selectenv.errors import (
    DatasetError,
    LabelError,
    NoEvaluatorError,
    OptionError,
    PolicyError,
    UnknownNameError,
    UnknownStateError,
    WorldError,
)
from selectenv.learners import SampledLearner
from selectenv.learners.imputed_reward import imputed_reward
from selectenv.policies import TablePolicy, UniformPolicy
from selectenv.problem import CACHE_SIZE, SelectionProblem
from tests.selectenv import twins

PROBLEMS = {
    (name, learner): selectenv.make_problem(name, learner=learner)
    for name in selectenv.TABULAR
    for learner in ("uds", "adapted")
}


def all_sets(n, size):
    chosen = np.array(list(itertools.combinations(range(n), size)))
    masks = np.zeros((len(chosen), n), bool)
    np.put_along_axis(masks, chosen, True, axis=1)
    return masks


def random_masks(n, sets, seed=0):
    return np.random.default_rng(seed).random((sets, n)) < 0.5


@pytest.mark.parametrize(("labels", "best"), [(1, 3), (2, 5), (3, 7), (4, 8)])
def test_graph_best_returns_by_brute_force(labels, best):
    assert PROBLEMS["Graph", "uds"].performance_many(all_sets(15, labels)).max() == pytest.approx(best, abs=1e-9)


def test_tree_best_set_of_three():
    problem = PROBLEMS["Tree", "uds"]
    masks = all_sets(31, 3)
    returns = problem.performance_many(masks)
    assert returns.max() == pytest.approx(16.904525, abs=1e-6)
    assert np.flatnonzero(masks[returns.argmax()]).tolist() == [15, 19, 23]
    assert problem.performance([15, 19, 23]) == pytest.approx(16.904525, abs=1e-6)


def test_tree_greedy_finds_it():
    problem, chosen = PROBLEMS["Tree", "uds"], []
    for _ in range(3):
        masks = np.zeros((31, 31), bool)
        masks[:, chosen] = True
        np.fill_diagonal(masks, True)
        chosen.append(int(problem.performance_many(masks).argmax()))
    assert chosen == [15, 23, 19]


def test_frozen_lake_depends_on_one_state():
    problem = PROBLEMS["FrozenLake", "uds"]
    (goal_side,) = problem.actions([14])
    assert problem.performance([goal_side]) == pytest.approx(0.740165, abs=1e-6)
    masks = np.array(list(itertools.product([False, True], repeat=11)))
    without = problem.performance_many(masks[~masks[:, goal_side]])
    np.testing.assert_allclose(without, 0.013940, atol=1e-6)


def test_graph_adapted_published_value():
    found = [
        selectenv.make_problem("Graph", learner="adapted", dataset_seed=seed).performance([7, 9, 11])
        for seed in range(10)
    ]
    assert np.abs(np.array(found) - 5.33).max() <= 0.06 * 3
    assert np.mean(found) == pytest.approx(5.33, abs=0.06)


@pytest.mark.parametrize("budget", [5, 15, 25])
def test_uniform_labels_in_two_rooms(budget):
    """Only the two cells beside the goal matter: the return is the chance to have labelled one of them."""
    rng = np.random.default_rng(0)
    masks = np.argsort(rng.random((4000, 50)), axis=1) < budget
    expected = 1 - comb(48, budget) / comb(50, budget)
    found = PROBLEMS["TwoRooms", "uds"].performance_many(masks)
    assert found.mean() == pytest.approx(expected, abs=4 * found.std() / np.sqrt(len(found)) + 0.01)


@pytest.mark.parametrize(("name", "learner"), PROBLEMS)
def test_single_and_batched_agree(name, learner):
    problem = PROBLEMS[name, learner]
    masks = random_masks(problem.n_states, 150)
    batched = problem.performance_many(masks)
    single = [problem.performance(mask) for mask in masks]
    np.testing.assert_allclose(batched, single, rtol=0, atol=1e-12)
    evaluated = [problem.evaluator.evaluate(problem.learn(mask).policy) for mask in masks[:20]]
    np.testing.assert_allclose(batched[:20], evaluated, rtol=0, atol=1e-12)


@given(twins.worlds, st.integers(0, 50), st.sampled_from(["uds", "adapted"]))
def test_performance_agrees_with_numpy_from_end_to_end(world, seed, learner):
    problem = selectenv.make_problem(world, dataset_size=80, dataset_seed=seed, learner=learner, gamma=0.9, cache=False)
    data = problem.dataset
    masks = random_masks(problem.n_states, 5, seed)
    p, r, _ = twins.dense_world(world)
    expected = []
    for mask in masks:
        _, _, policy = twins.learn(
            *twins.dense_data(data),
            mask & data.labelable,
            0.9,
            adapted=learner == "adapted",
            behaviour=data.action_frequencies,
            sweeps=400,
        )
        expected.append(twins.expected_return(p, r, policy, world.start, world.horizon))
    np.testing.assert_allclose(problem.performance_many(masks), expected, atol=1e-9)


NEAR_TIES = {
    ("Tree", "uds"): 0.85,
    ("FrozenLake", "uds"): 0.8,
    ("FrozenLake", "adapted"): 0.5,
    ("CliffWalk", "adapted"): 0.1,
}
"""Where the published learner stops short of the exact solution in more than 5 % of the label sets.

Its constant step size leaves noise that flips near-ties in the stochastic worlds (the published FrozenLake test scores,
0.72 to 0.74 where 0.740 is exact, show the same), and its early stop leaves unequal what should be ties in CliffWalk
under the adapted rule: rarely tried actions then look better than they are. The next two tests pin these reasons down.
"""


def agreement(sampled, exact, masks, tolerance=1e-6):
    return np.mean(np.abs(sampled.performance_many(masks) - exact.performance_many(masks)) < tolerance)


@pytest.mark.parametrize(("name", "learner"), PROBLEMS)
def test_exact_and_sampled_agree(name, learner):
    exact, sampled = PROBLEMS[name, learner], selectenv.make_problem(name, learner=learner, solver="sampled")
    masks = random_masks(exact.n_states, 200, seed=1)
    assert agreement(sampled, exact, masks) >= NEAR_TIES.get((name, learner), 0.95)


@pytest.mark.parametrize(
    ("name", "learner", "cure", "tolerance"),
    [
        ("Tree", "uds", {"step_size": 0.005, "passes": 60}, 1e-6),
        ("FrozenLake", "uds", {"step_size": 0.005, "passes": 60}, 1e-6),
        ("FrozenLake", "adapted", {"step_size": 0.005, "passes": 60}, 0.05),
        ("CliffWalk", "adapted", {"passes": 60}, 1e-6),
    ],
)
def test_sampled_agrees_without_noise_and_early_stopping(name, learner, cure, tolerance):
    exact = PROBLEMS[name, learner]
    patient = SampledLearner(learner, tolerance=0.0, **cure)
    masks = random_masks(exact.n_states, 100, seed=1)
    assert agreement(SelectionProblem(exact.dataset, patient, exact.evaluator), exact, masks, tolerance) >= 0.95


@pytest.mark.parametrize(("name", "learner"), NEAR_TIES)
def test_sampled_action_values_approach_the_exact_ones(name, learner):
    exact = PROBLEMS[name, learner]
    patient = SampledLearner(learner, step_size=0.01, passes=100, tolerance=0.0)
    often = exact.dataset.visits[:, None] * exact.dataset.action_frequencies >= 100
    for mask in random_masks(exact.n_states, 4, seed=2):
        q, found = exact.learn(mask).q, patient.fit(exact.dataset, exact.dataset.all_rewards, mask).q
        scale = max(1.0, np.abs(q).max())
        assert np.abs(q - found)[often].max() <= 0.1 * scale
        assert np.abs(q - found)[often].mean() <= 0.01 * scale


def test_sampled_learning_is_a_function_of_the_label_set():
    problem = selectenv.make_problem("Tree", solver="sampled", dataset_size=2000)
    again = selectenv.make_problem("Tree", solver="sampled", dataset_size=2000)
    other = selectenv.make_problem("Tree", solver="sampled", dataset_size=2000, learner_seed=1)
    masks = random_masks(31, 9)
    many = problem.performance_many(masks)
    np.testing.assert_array_equal(many, again.performance_many(masks[::-1])[::-1])
    np.testing.assert_allclose(many, [again.performance(mask) for mask in masks], atol=1e-12)
    assert not np.array_equal(problem.learn(masks[0]).q, other.learn(masks[0]).q)


def test_sampled_learning_uses_noisy_rewards_as_they_are():
    rng = np.random.default_rng(0)
    zero, ends = np.zeros(4000, int), np.ones(4000, bool)
    noisy = selectenv.from_arrays(zero, rng.integers(0, 2, 4000), zero, ends, rewards=rng.normal(1, 5, 4000))
    q = {solver: selectenv.make_problem(dataset=noisy, solver=solver).learn([0]).q for solver in ("exact", "sampled")}
    assert not np.array_equal(q["exact"], q["sampled"])
    np.testing.assert_allclose(q["exact"], q["sampled"], atol=4)


@pytest.mark.parametrize("name", selectenv.TABULAR)
def test_exact_evaluator_lies_within_four_standard_errors_of_rollouts(name):
    exact = PROBLEMS[name, "uds"]
    rollouts = selectenv.make_problem(name, evaluator="rollout", rollouts=10_000)
    for mask in random_masks(exact.n_states, 5):
        returns, _ = rollouts.evaluator.engine.episode_returns(exact.learn(mask).policy)
        assert abs(returns.mean() - exact.performance(mask)) <= 4 * returns.std() / 100 + 1e-9
        assert rollouts.performance(mask) == returns.mean()


def test_discounted_evaluation():
    exact = selectenv.make_problem("TwoRooms", discount=0.9)
    assert 0 < exact.performance(range(50)) < 1
    policy = exact.learn(range(50)).policy
    assert exact.evaluator.evaluate(policy, discount=1.0) == pytest.approx(1)


def test_imputation_and_unseen_actions():
    data = selectenv.make_problem("CliffWalk").dataset
    nothing, cliff = np.zeros(data.n_states, bool), data.labelable
    for impute, labels, reward in (
        ("min", nothing, 0.0),
        ("min", cliff, -100.0),
        ("dataset-min", nothing, -100.0),
        (3, cliff, 3.0),
    ):
        assert imputed_reward(impute, data, data.all_rewards, labels) == reward
    zero, exclude = (
        selectenv.make_problem("Graph", expert_share=1.0, dataset_size=500, unseen=unseen)
        for unseen in ("zero", "exclude")
    )
    assert zero.learn([0]).q[0].tolist() == [1.0, 0.0]  # the expert never took action 1
    assert np.isnan(exclude.learn([0]).q[0, 1])
    seen = exclude.dataset.labelable
    assert (exclude.learn([]).table[seen, 0] == 1).sum() == seen.sum() - 1  # the last state's actions are both expert


def test_labels_the_data_never_saw_change_nothing():
    problem = selectenv.make_problem("Graph", expert_share=1.0, dataset_size=100)
    unseen = np.flatnonzero(~problem.dataset.labelable)
    assert len(unseen) > 0
    assert problem.performance([0, *unseen]) == problem.performance([0])


def test_counting():
    problem = selectenv.make_problem("Graph", dataset_size=500)
    problem.performance([0])
    problem.performance([0])
    problem.performance_many(np.zeros((7, 15), bool))
    problem.score([1])
    counts = problem.evaluator.counts
    assert (problem.evaluator.calls, counts.asked, counts.computed, counts.uncounted) == (9, 9, 8, 1)
    other = problem.with_calls()
    other.performance([0])
    assert (other.evaluator.calls, other.evaluator.counts.computed, problem.evaluator.calls) == (1, 0, 9)


def test_the_cache_is_bounded():
    problem = selectenv.make_problem("Graph", dataset_size=500)
    for mask in random_masks(15, CACHE_SIZE + 300):
        problem.performance(mask)
    assert len(problem._cache) <= CACHE_SIZE


def test_ids_and_numbers():
    problem = PROBLEMS["FrozenLake", "uds"]
    assert problem.actions([14, 0]).tolist() == [10, 0]
    assert problem.states[10] == 14
    with pytest.raises(UnknownStateError, match="there is no state with id 5"):
        problem.actions([5])


@pytest.mark.parametrize(
    "labels",
    [
        [15],
        [-1],
        [0.5],
        ["0"],
        np.zeros(14, bool),
        np.zeros((2, 15), bool),
        [[1, 2]],
        [True, False],
        5,
        None,
        [[1], [2, 3]],
    ],
)
def test_invalid_labels_are_refused(labels):
    with pytest.raises(LabelError):
        PROBLEMS["Graph", "uds"].performance(labels)


@pytest.mark.parametrize(
    "masks", [np.zeros((2, 14), bool), np.zeros(15, bool), np.zeros((2, 15)), np.zeros((2, 15), int), [[True] * 15]]
)
def test_invalid_masks_are_refused(masks):
    with pytest.raises(LabelError, match=r"boolean array of shape \(sets, 15\)"):
        PROBLEMS["Graph", "uds"].performance_many(masks)


def test_no_sets():
    assert PROBLEMS["Graph", "uds"].performance_many(np.zeros((0, 15), bool)).shape == (0,)
    assert PROBLEMS["Graph", "uds"].performance([]) == PROBLEMS["Graph", "uds"].performance(np.zeros(15, bool))


def test_data_without_a_world_support_everything_but_performance():
    source = PROBLEMS["Graph", "uds"].dataset
    data = selectenv.from_arrays(
        source.state,
        source.action,
        source.next_state,
        source.terminated,
        source.hidden_reward,
        truncated=source.truncated,
    )
    problem = selectenv.make_problem(dataset=data)
    np.testing.assert_array_equal(problem.learn([7, 9]).q, PROBLEMS["Graph", "uds"].learn([7, 9]).q)
    for ask in (lambda: problem.performance([0]), lambda: problem.performance_many(np.zeros((1, 15), bool))):
        with pytest.raises(NoEvaluatorError, match="without a world"):
            ask()
    assert problem.evaluator.calls == 0


def test_data_without_rewards_can_be_learned_from_only_without_labels():
    problem = selectenv.make_problem(dataset=selectenv.from_arrays([0, 1], [0, 0], [1, 0], [False, False]))
    assert (problem.learn([]).values == 0).all()
    with pytest.raises(NoEvaluatorError, match="no rewards"):
        problem.learn([0])


def test_a_toy_text_environment_is_a_world():
    problem = selectenv.make_problem(gym.make("FrozenLake-v1", is_slippery=False), dataset_size=3000)
    assert problem.performance(range(problem.n_states)) == pytest.approx(1)


class Corridor(gym.Env):
    """Three cells, no table: action 1 goes right, entering the end pays 1."""

    observation_space, action_space = gym.spaces.Discrete(4), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = 0, 0
        return self.cell, {}

    def step(self, action):
        self.cell, self.steps = self.cell + int(action), self.steps + 1
        return self.cell, float(self.cell == 3), self.cell == 3, self.steps == 10, {}


def test_an_environment_without_a_table_is_evaluated_by_rollouts():
    data = selectenv.from_arrays(
        [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [0, 1, 1, 2, 2, 3], [False] * 5 + [True], rewards=[0, 0, 0, 0, 0, 1]
    )
    problem = selectenv.make_problem(Corridor(), dataset=data, evaluator="rollout", rollouts=20)
    assert problem.performance([2]) == 1.0
    assert problem.performance([]) < 1.0
    with pytest.warns(UserWarning, match="rollouts"):
        selectenv.make_problem(Corridor(), dataset=data)
    with pytest.raises(OptionError, match="rollouts"):
        selectenv.make_problem(Corridor(), dataset=data, evaluator="rollout", rollouts=0)
    three = selectenv.from_arrays([0], [0], [1], [False], n_actions=3)
    with pytest.raises(OptionError, match="3 actions, the environment has 2"):
        selectenv.make_problem(Corridor(), dataset=three, evaluator="rollout")
    with pytest.raises(DatasetError, match="observations of 4 columns, and the data have no vectors"):
        selectenv.make_problem(gym.make("CartPole-v1"), dataset=data, evaluator="rollout")


def test_an_environment_is_stepped_by_one_thread_at_a_time(monkeypatch):
    monkeypatch.setenv("SELECTENV_THREADS", "3")
    data = selectenv.from_arrays(
        [0, 0, 1, 1, 2, 2], [0, 1] * 3, [0, 1, 1, 2, 2, 3], [False] * 5 + [True], [0] * 5 + [1]
    )
    problem = selectenv.make_problem(Corridor(), dataset=data, evaluator="rollout", rollouts=10, solver="sampled")
    masks = random_masks(3, 24)
    np.testing.assert_array_equal(problem.performance_many(masks), [problem.performance(mask) for mask in masks])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"world": "tree"}, UnknownNameError, "Did you mean 'Tree'"),
        ({"world": "TwoRoom"}, UnknownNameError, "Did you mean 'TwoRooms'"),
        ({"world": 7}, WorldError, "not int"),
        ({"world": "Graph", "learner": "udss"}, UnknownNameError, "Did you mean 'uds'"),
        ({"world": "Graph", "solver": "fast"}, UnknownNameError, "exact, sampled"),
        ({"world": "Graph", "evaluator": "rollouts"}, UnknownNameError, "Did you mean 'rollout'"),
        ({"world": "Graph", "dataset": "test-0.5"}, UnknownNameError, "Did you mean 'test-0.55'"),
        ({"world": "Graph", "learnr": "uds"}, UnknownNameError, "Did you mean 'learner'"),
        ({"world": "Graph", "depth": 3}, UnknownNameError, "unknown option 'depth'"),
        ({"world": "Graph", "mixture": "none"}, UnknownNameError, "non-expert"),
        ({"world": "Graph", "expert": "best"}, UnknownNameError, "optimal"),
        ({"world": "Graph", "unseen": "drop"}, UnknownNameError, "exclude"),
        ({"world": "Graph", "expert_share": 1.5}, OptionError, "expert_share must be"),
        ({"world": "Graph", "expert_share": (0.2, 0.8)}, OptionError, "only in control worlds"),
        ({"world": "Breakout", "expert_share": (0.2, 0.8)}, OptionError, "only in control worlds"),
        ({"world": "CartPole", "expert_share": (0.8, 0.2)}, OptionError, "pair of such numbers with low <= high"),
        ({"world": "CartPole", "expert_share": (0.2, "x")}, OptionError, "pair of such numbers"),
        ({"world": "Graph", "dataset": "test-0.55", "expert_share": 0.5}, OptionError, "fixes the expert share"),
        ({"world": "Graph", "gamma": 1.0}, OptionError, "gamma"),
        ({"world": "Graph", "impute": "max"}, OptionError, "impute"),
        ({"world": "Graph", "impute": float("nan")}, OptionError, "impute"),
        ({"world": "Graph", "learner": "adapted", "impute": "min"}, OptionError, "nothing to impute"),
        ({"world": "Graph", "evaluator": "rollout", "rollouts": 0}, OptionError, "rollouts"),
        ({"world": "Graph", "discount": 0}, OptionError, "discount"),
        ({"world": "Graph", "passes": 0}, OptionError, "passes"),
        ({}, DatasetError, "pass `dataset=`"),
    ],
)
def test_invalid_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        selectenv.make_problem(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": "x"},
        {"gamma": None},
        {"passes": "x"},
        {"passes": 2.5},
        {"discount": "x"},
        {"impute": None},
        {"impute": [1]},
        {"expert_share": "x"},
        {"learner_seed": "x"},
        {"dataset_seed": None},
        {"dataset_seed": 1.5},
        {"evaluation_seed": None},
        {"mixture": ""},
        {"dataset": None},
        {"dataset": 12345},
        {"dataset": True},
    ],
)
def test_options_of_the_wrong_type(options):
    with pytest.raises((OptionError, DatasetError)):
        selectenv.make_problem("Graph", **{"dataset_size": 100} | options if "dataset" not in options else options)


def test_numpy_numbers_are_numbers():
    selectenv.make_problem(
        "Graph", dataset_size=np.int64(100), evaluator="rollout", rollouts=np.int32(5), gamma=np.float32(0.5)
    )


@pytest.mark.parametrize(
    "table", [np.ones((2, 2)), np.full((15, 2), [np.nan, 1.0]), np.ones((15, 2)), "x", [[1], [2, 3]], np.eye(15)]
)
def test_invalid_policies_are_refused_and_not_counted(table):
    evaluator = selectenv.make_problem("Graph", dataset_size=100).evaluator
    for make in (lambda: table, lambda: TablePolicy(table)):
        with pytest.raises(PolicyError, match=r"(?i)polic"):
            evaluator.evaluate(make())
    assert evaluator.calls == 0


def test_a_policy_is_evaluated_as_uniform_in_states_that_it_does_not_know():
    evaluator = selectenv.make_problem("Graph", dataset_size=100).evaluator
    ignorant, uniform = (TablePolicy(np.full((15, 2), value)) for value in (np.nan, 0.5))
    assert evaluator.evaluate(ignorant) == evaluator.evaluate(uniform) == evaluator.evaluate(UniformPolicy(2))


def test_a_dataset_of_another_world():
    with pytest.raises(DatasetError, match="not those of the world 'Tree'"):
        selectenv.make_problem("Tree", dataset=PROBLEMS["Graph", "uds"].dataset)
