"""Policies: tables and networks answer the same calls, alone and in batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from selectenv.errors import PolicyError
from selectenv.policies import PolicyList, TablePolicies, TablePolicy, UniformPolicy, greedy, known


def random_tables(seed: int, count: int, n: int, actions: int):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(actions), (count, n))


def in_lanes(tables, lanes: int) -> TablePolicies:
    """Lay tables out in blocks of lanes, as the compiled learners do."""
    count, n, actions = tables.shape
    blocks = np.full((-(-count // lanes), n, actions, lanes), np.nan)
    for i, table in enumerate(tables):
        blocks[i // lanes, :, :, i % lanes] = table
    return TablePolicies(blocks, count)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))
def test_a_batch_answers_like_its_policies(seed, count, n, actions, lanes):
    tables = random_tables(seed, count, n, actions)
    batch, single = in_lanes(tables, lanes), PolicyList([TablePolicy(table) for table in tables])
    assert len(batch) == len(single) == count
    rng = np.random.default_rng(seed)
    which, states = rng.integers(count, size=20), rng.integers(-1, n, size=20)
    np.testing.assert_array_equal(batch.probabilities(which, states), single.probabilities(which, states))
    blocks = batch.tables(n)
    for i in range(count):
        np.testing.assert_array_equal(blocks[i // lanes, :, :, i % lanes], single.tables(n)[i, :, :, 0])


@pytest.mark.parametrize("world", ["Graph", "TwoRooms", "FrozenLake"])
@pytest.mark.parametrize("evaluator", ["exact", "rollout"])
def test_engines_do_not_care_how_policies_come(world, evaluator):
    problem = selectenv.make_problem(world, dataset_size=2000, cache=False, evaluator=evaluator, rollouts=50)
    n, actions = problem.n_states, problem.dataset.n_actions
    tables = random_tables(1, 5, n, actions)
    many = problem.evaluator.returns(in_lanes(tables, 3))
    single = problem.evaluator.returns(PolicyList([TablePolicy(table) for table in tables]))
    np.testing.assert_allclose(many, single, rtol=1e-12)
    alone = [problem.evaluator.evaluate(TablePolicy(table)) for table in tables]
    np.testing.assert_allclose(many, alone, rtol=1e-12)


def test_unknown_states_are_said_to_be_unknown():
    policy = TablePolicy(np.array([[0.25, 0.75]]))
    found = policy.probabilities(np.array([0, -1]))
    np.testing.assert_array_equal(found[0], [0.25, 0.75])
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(known(found), [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_array_equal(policy.table, [[0.25, 0.75]])


def test_ties_are_split_uniformly():
    np.testing.assert_array_equal(greedy(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])), [[0.5, 0.5, 0], [0, 1, 0]])


class Rude:
    """Answers with whatever it is given."""

    def __init__(self, answer):
        self.answer = answer

    def probabilities(self, states, observations=None):
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "no",
        [[0.5, 0.6]] * 15,
        [[1.5, -0.5]] * 15,
        [[0.5, 0.5]] * 14,
        [0.5] * 15,
        [[0.5, 0.5], [1.0]],
        [[np.nan, 1.0]] * 15,
        [[np.inf, 0.0]] * 15,
        [[1 / 3] * 3] * 15,
    ],
)
def test_evaluators_reject_what_is_not_a_policy(answer):
    evaluator = selectenv.make_problem("Graph", dataset_size=200, cache=False).evaluator
    with pytest.raises(PolicyError):
        evaluator.evaluate(Rude(answer))


def test_policies_of_other_worlds_are_rejected():
    graph, tree = (selectenv.make_problem(name, dataset_size=500, cache=False) for name in ("Graph", "Tree"))
    for policy in (tree.learn([]).policy, TablePolicy(np.full((15, 3), 1 / 3)), object()):
        with pytest.raises(PolicyError):
            graph.evaluator.evaluate(policy)
    assert graph.evaluator.evaluate(UniformPolicy(2)) == pytest.approx(0.0)
