"""Training runs that are evaluated on their way: moments, both readings, and resuming."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from experiments.studies.minatar.evaluated_training import EvaluatedTraining, moments
from selectenv.datasets import minatar_collection as play
from selectenv.evaluation import Evaluator
from selectenv.learners import training_run
from selectenv.problem import SelectionProblem


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(play, "GAMES_AT_ONCE", 4)  # long enough to earn something
    monkeypatch.setattr(training_run, "STRETCH", 2)
    monkeypatch.setattr(training_run, "CHECKPOINT_EVERY", 4)


def problem(learner="iql", updates=10, **options):
    return selectenv.make_problem(
        "Asterix", dataset_size=2_400, rollouts=2, learner=learner, updates=updates, cache=False, **options
    )


def test_ten_evaluations_over_the_last_40_percent(monkeypatch):
    monkeypatch.setattr(training_run, "STRETCH", 250)
    last = tuple(range(80_000, 125_001, 5_000))
    assert moments(125_000, 10) == last
    assert moments(125_000, 10, whole=True) == (*range(12_500, 75_001, 12_500), *last)
    assert moments(25_000, 10) == tuple(range(16_000, 25_001, 1_000))
    assert moments(20_000, 10)[:3] == (13_000, 13_750, 14_500)  # the next stretch after 12,800, 13,600, 14,400
    assert moments(25_000, 1) == (25_000,)


@given(st.integers(1, 100_000), st.integers(1, 20), st.booleans())
def test_moments_are_ends_of_stretches_in_the_last_part(updates, evaluations, whole):
    found = moments(updates, evaluations, whole=whole)
    assert list(found) == sorted(set(found))
    assert found[-1] == updates
    assert all(moment % training_run.STRETCH == 0 or moment == updates for moment in found)
    if not whole:
        assert len(found) <= evaluations
        assert found[0] >= 0.6 * updates


def test_both_readings_come_from_one_run(tmp_path):
    task = problem()
    everything = task.dataset.labelable
    record, curve = EvaluatedTraining(task, tmp_path, 2).run(everything, whole=True)
    assert [point["updates"] for point in curve] == [2, 4, 6, 8, 10]
    assert record["evaluations"] == [point["curve"] for point in curve[-2:]]
    assert record["return"] == pytest.approx(np.mean(record["evaluations"]))
    assert record["last weights"] == task.score(everything)
    for point in curve[:-1]:
        stopped = problem(updates=point["updates"])
        assert stopped.score(everything) == point["curve"]


def test_the_adapted_rule_is_evaluated_with_its_clone(tmp_path):
    task = problem("iql-adapted")
    some = np.arange(task.n_states) % 2 == 0
    record, curve = EvaluatedTraining(task, tmp_path, 2).run(some)
    assert record["last weights"] == task.score(some)
    assert len(curve) == 2


def test_cloning_needs_no_labels(tmp_path):
    task = problem("bc-greedy")
    record, _ = EvaluatedTraining(task, tmp_path, 2).run(task.dataset.labelable)
    assert record["last weights"] == task.score([])


def test_without_known_rewards_nothing_is_trained(tmp_path):
    task = problem()
    record, curve = EvaluatedTraining(task, tmp_path, 2).run(np.zeros(0, np.int64))
    assert set(record["evaluations"]) == {task.score([])}
    assert len(curve) == 2


def test_fresh_episodes_are_other_episodes(tmp_path):
    task, other = problem(), problem(evaluation_seed=1)
    everything = task.dataset.labelable
    record, _ = EvaluatedTraining(task, tmp_path, 1, other.evaluator).run(everything)
    assert record["fresh"] == other.score(everything)
    assert record["return"] == task.score(everything)


def test_an_interrupted_run_resumes_with_its_evaluations(tmp_path, monkeypatch):
    task = problem()
    everything = task.dataset.labelable
    undisturbed = EvaluatedTraining(task, tmp_path / "undisturbed", 3).run(everything, whole=True)
    advance, done = training_run.IqlRun.advance, []

    def killed(self, chosen, before):
        done.append(before)
        if len(done) == 4:
            raise KeyboardInterrupt
        advance(self, chosen, before)

    monkeypatch.setattr(training_run.IqlRun, "advance", killed)
    with pytest.raises(KeyboardInterrupt):
        EvaluatedTraining(task, tmp_path / "killed", 3).run(everything, whole=True)
    asked = []
    counting = SelectionProblem(task.dataset, replace(task.learner), _Counting(task.evaluator, asked))
    assert EvaluatedTraining(counting, tmp_path / "killed", 3).run(everything, whole=True) == undisturbed
    assert done == [0, 2, 4, 6, 4, 6, 8]  # from the checkpoint after 4 updates
    assert len(asked) == 2  # after 8 and 10 updates: 2, 4 and 6 were evaluated before


class _Counting(Evaluator):
    """An evaluator that lists what it is asked for."""

    def __init__(self, evaluator, asked):
        super().__init__(evaluator.engine)
        self.asked = asked

    def returns(self, policies):
        self.asked.append(len(policies))
        return super().returns(policies)
