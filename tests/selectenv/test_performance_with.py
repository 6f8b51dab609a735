"""Performances that start from a similar label set against those that are learned from scratch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from agents.search.beam import _distinct_extensions
from selectenv.errors import LabelError, NoEvaluatorError, PhaseError
from selectenv.problem import SelectionProblem
from tests.selectenv.wide_worlds import wide_world


def added(n, labels, candidates):
    """The label sets [sets, n] of `performance_with`."""
    masks = np.zeros((len(candidates), n), bool)
    masks[:, labels] = True
    masks[np.arange(len(candidates)), candidates] = True
    return masks


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.sampled_from([2, 1000]),
    st.integers(0, 30),
    st.sampled_from([{"learner": "adapted"}, {}, {"impute": "min"}, {"impute": -0.5}, {"impute": 1}]),
    st.sampled_from(["zero", "exclude"]),
)
def test_returns_are_those_of_performance_many(seed, reach, size, options, unseen):
    problem = selectenv.make_problem(
        wide_world(seed, reach), dataset_size=3000, dataset_seed=seed, unseen=unseen, cache=False, **options
    )
    rng, n = np.random.default_rng(seed), problem.n_states
    labels, candidates = rng.choice(n, size, replace=False), rng.integers(n, size=10)  # some of them are labelled
    found = problem.performance_with(labels, candidates)
    np.testing.assert_allclose(found, problem.performance_many(added(n, labels, candidates)), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", ["Tree", "CliffWalk"])
@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_small_worlds_are_evaluated_as_by_performance_many(name, solver):
    problem = selectenv.make_problem(name, dataset_size=2000, solver=solver)
    candidates = np.arange(problem.n_states)
    found = problem.performance_with([3, 5], candidates)
    np.testing.assert_array_equal(found, problem.performance_many(added(problem.n_states, [3, 5], candidates)))
    assert not problem.warm_starts


def sparse(**options):
    return selectenv.make_problem("Sparse", n_states=150, dataset_size=3000, **options)


@pytest.mark.parametrize("make", [sparse, lambda: selectenv.make_problem("Tree", dataset_size=500)])
def test_every_set_counts_as_one_call(make):
    problem = make().with_calls()
    problem.performance_with([], np.arange(7))
    problem.performance_with(np.zeros(problem.n_states, bool), [1, 1])
    calls = problem.evaluator.counts
    assert (calls.asked, calls.disclosed, calls.computed, calls.uncounted) == (9, 0, 9, 0)
    assert problem.performance_with([0], []).shape == (0,)
    assert problem.evaluator.calls == 9


@pytest.mark.parametrize("candidates", [[-1], [150], [0.5], [[0, 1]], "ab", [True] * 151])
def test_other_candidates_are_rejected(candidates):
    with pytest.raises(LabelError, match="candidates"):
        sparse().performance_with([0], candidates)


def test_a_locked_or_missing_evaluator_is_named():
    env = selectenv.make_env("Sparse", n_states=150, dataset_size=3000, phase="test", budget=3)
    env.reset(seed=0)
    with pytest.raises(PhaseError):
        env.problem.performance_with([0], [1])
    with pytest.raises(NoEvaluatorError):
        selectenv.make_problem(dataset=sparse().dataset).performance_with([0], [1])


def test_results_do_not_depend_on_threads_or_on_other_candidates(monkeypatch):
    problem, candidates = sparse(), np.arange(40)
    whole = problem.performance_with([7], candidates)
    monkeypatch.setenv("SELECTENV_THREADS", "2")
    np.testing.assert_array_equal(problem.performance_with([7], candidates), whole)
    np.testing.assert_array_equal(problem.performance_with([7], candidates[5:9]), whole[5:9])


def test_many_candidates_need_little_memory(monkeypatch):
    monkeypatch.setattr("selectenv.problem.MASK_BYTES", 3 * 31)
    problem = selectenv.make_problem("Tree", dataset_size=2000)
    rows = []
    ask = problem.performance_many
    monkeypatch.setattr(problem, "performance_many", lambda masks: (rows.append(len(masks)), ask(masks))[1])
    np.testing.assert_array_equal(problem.performance_with([2], np.arange(7)), ask(added(31, [2], np.arange(7))))
    assert rows == [3, 3, 1]


@pytest.mark.parametrize(
    ("name", "options"), [("sequential-greedy", {}), ("beam", {"width": 3}), ("swap-search", {"max_evaluations": 100})]
)
def test_searches_find_the_same_with_and_without_warm_starts(name, options, monkeypatch):
    env = selectenv.RewardSelectionEnv(sparse(), 3, initial_ratio=0.01)
    warm, cold = agents.make(name, **options), agents.make(name, **options)
    warm.train(env, seed=1)
    monkeypatch.setattr(SelectionProblem, "warm_starts", False)
    cold.train(env, seed=1)
    assert warm.memory["ranking"][:2] == cold.memory["ranking"][:2]
    assert warm.memory["performance"] == pytest.approx(cold.memory["performance"], abs=1e-12)
    assert warm.training_calls == cold.training_calls


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_extensions_of_a_beam_are_distinct_and_complete(seed, size):
    rng = np.random.default_rng(seed)
    candidates = np.flatnonzero(rng.random(9) < 0.8)
    size = min(size, max(0, len(candidates) - 1))
    beams = np.zeros((4, 9), bool)
    for beam in beams:
        beam[rng.choice(candidates, size, replace=False) if size else []] = True
    beams = np.unique(beams, axis=0)
    row, state = _distinct_extensions(beams, candidates)
    found = beams[row]
    found[np.arange(len(row)), state] = True
    expected = []
    for beam in beams:
        for candidate in candidates[~beam[candidates]]:
            extended = beam.copy()
            extended[candidate] = True
            if extended.tolist() not in expected:
                expected.append(extended.tolist())
    assert found.tolist() == expected
