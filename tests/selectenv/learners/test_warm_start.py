"""Warm starts: refits that continue from earlier networks, and the performance, which never does."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

import selectenv
from selectenv.errors import OptionError
from selectenv.kernels.network.updates import Transitions
from selectenv.learners import IqlLearner, Settings
from selectenv.learners import training_run as training
from selectenv.learners.architectures import architecture_of
from selectenv.learners.training_run import IqlRun
from selectenv.streams import generator

SHORT = Settings(updates=12, batch=16)


@pytest.fixture(scope="module")
def data():
    return selectenv.make_problem("Breakout", dataset_size=1_500, cache=False).dataset


@pytest.fixture(scope="module")
def labels(data):
    """Two label sets, the first of which is a part of the second; both reveal rewards."""
    rewarding = np.unique(data.state[data.hidden_reward != 0])
    sets = np.zeros((2, data.n_states), bool)
    sets[0, rewarding[: 2 * len(rewarding) // 3]] = sets[1, rewarding] = True
    return sets


def weights(result):
    return np.concatenate([part.ravel() for network in result.policy.networks for part in network])


def chain(learner, data, labels):
    """Return the results for all label sets, each of which continues from the one before."""
    results = [learner.fit(data, data.all_rewards, labels[0])]
    for mask in labels[1:]:
        results.append(learner.fit_from(results[-1], data, data.all_rewards, mask))
    return results


def test_a_refit_continues_with_the_new_labels(data, labels):
    """The same by hand: 12 updates with the rewards of the first labels, then 3 with those of the second."""
    first, second = chain(IqlLearner(settings=SHORT, warm_start=True), data, labels)
    rewards = [np.where(mask[data.state], data.all_rewards, 0).astype(np.float32) for mask in labels]
    plain = Transitions(data.state, data.action, data.next_state, rewards[0].copy())
    run = IqlRun(plain, architecture_of(data), data.n_actions, 0.99, SHORT, generator(0, "learner", 0, "weights"))

    def advance(begun, updates):
        rows = generator(0, "learner", 0, "batches", begun).integers(len(data), size=(training.STRETCH, 16))
        run.advance(rows[:updates], begun)
        return np.concatenate([part.ravel() for network in run.action_values for part in network])

    np.testing.assert_array_equal(weights(first), advance(0, 12))
    plain.reward[:] = rewards[1]
    np.testing.assert_array_equal(weights(second), advance(12, 3))
    assert second.updates.tolist() == [15]


def test_results_do_not_change_when_they_are_continued(data, labels):
    learner = IqlLearner(settings=SHORT, warm_start=True, warm_share=0.5)
    before = learner.fit(data, data.all_rewards, labels[0])
    kept = weights(before)
    after = learner.fit_from(before, data, data.all_rewards, labels[1])
    np.testing.assert_array_equal(weights(before), kept)
    assert (weights(after) != kept).any()
    assert learner.fit_from(before, data, data.all_rewards, labels[0]) is before
    scratch = weights(IqlLearner(settings=SHORT).fit(data, data.all_rewards, labels[1]))
    np.testing.assert_array_equal(weights(learner.fit(data, data.all_rewards, labels[1])), scratch)
    assert IqlLearner(settings=SHORT).fit_from(before, data, data.all_rewards, labels[1]) is None


def test_there_is_nothing_to_continue_before_a_reward_is_known(data, labels):
    learner = IqlLearner(settings=SHORT, warm_start=True)
    problem = selectenv.SelectionProblem(data, learner)
    nothing = problem.learn([])
    assert learner.fit_from(nothing, data, data.all_rewards, labels[0]) is None
    assert problem.learn(labels[0], nothing) is problem.learn(labels[0])


def test_a_refit_begins_anew_once_the_labels_have_grown_enough(data):
    """Refits with 2, 3, 4, 5, 8 and 9 labels: growth counts from the last training from scratch, not the last refit."""
    rewarding = np.unique(data.state[data.hidden_reward != 0])
    learner = IqlLearner(settings=SHORT, warm_start=True, warm_growth=2.0)
    problem = selectenv.SelectionProblem(data, learner)
    updates, last = [], None
    for count in (2, 3, 4, 5, 8, 9):
        last = problem.learn(rewarding[:count], last)
        updates.append(int(last.updates[-1]))
    assert updates == [12, 15, 12, 15, 12, 15]


@pytest.mark.parametrize("stop", [2, 4, 5])
def test_a_chain_of_refits_can_be_resumed(data, labels, stop, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "STRETCH", 4)
    monkeypatch.setattr(training, "CHECKPOINT_EVERY", 4)
    learner = IqlLearner(settings=SHORT, warm_start=True, warm_share=0.6)  # stretches of 4, 4 and 4, then of 4 and 4
    undisturbed = [weights(result) for result in chain(learner, data, labels)]
    seen = []

    def kill(done, run):
        seen.append(done)
        if len(seen) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chain(replace(learner, checkpoints=tmp_path, watch=kill), data, labels)
    stored = replace(learner, checkpoints=tmp_path)
    for _ in range(2):
        for found, wanted in zip(chain(stored, data, labels), undisturbed, strict=True):
            np.testing.assert_array_equal(weights(found), wanted)
        stored = replace(stored)  # forgets what it learned
        monkeypatch.setattr(training.IqlRun, "advance", lambda *_: pytest.fail("trained again"))


def test_an_episode_continues_and_its_performance_does_not(data, monkeypatch):
    made = []
    advance = training.IqlRun.advance

    def count(run, chosen, done, *rate):
        made.append((done, len(chosen)))
        advance(run, chosen, done, *rate)

    monkeypatch.setattr(training.IqlRun, "advance", count)
    options = {"dataset": data, "learner": "iql", "updates": 10, "rollouts": 2}
    rewarding = np.unique(data.state[data.hidden_reward != 0])[:6]
    env = selectenv.make_env("Breakout", **options, warm_start=True, warm_growth=inf, budget=6, labels_per_refit=2)
    for _ in range(2):
        env.reset(seed=0)
        for numbers in rewarding.reshape(3, 2):
            *_, info = env.step(numbers)
    # Three refits, of which two continue, and the performance; the second episode trains only what is not kept.
    assert made == [(0, 10), (10, 2), (12, 2), (0, 10), (10, 2), (12, 2)]
    assert info["performance"] == selectenv.make_problem("Breakout", **options).performance(rewarding)


def test_tables_learn_the_same_from_any_start():
    problem = selectenv.make_problem("Tree", dataset_size=500, cache=False)
    first = problem.learn([1, 2])
    np.testing.assert_array_equal(problem.learn([1, 2, 3], first).q, problem.learn([1, 2, 3]).q)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"learner": "uds", "warm_start": True}, "is a table"),
        ({"learner": "iql", "warm_start": 1}, "warm_start"),
        ({"learner": "iql", "warm_share": 0.0}, "warm_share"),
        ({"learner": "iql", "warm_share": 1.5}, "warm_share"),
        ({"learner": "iql", "warm_growth": 1.0}, "warm_growth"),
        ({"learner": "iql", "warm_growth": float("nan")}, "warm_growth"),
    ],
)
def test_options_that_make_no_sense(data, options, text):
    with pytest.raises(OptionError, match=text):
        selectenv.make_problem("Breakout", dataset=data, **options)
