"""A strategy plays in a process of its own, knows nothing but its view, and plays there as it plays here."""

import os

import numpy as np
import pytest

import agents
import selectenv
from experiments.benchmarks.suite.remote_agent import RemoteAgent, StrategyProcess
from experiments.errors import ChannelError, StrategyFailedError, UndeclaredEvaluatorError
from selectenv.env import RewardSelectionEnv
from tests.experiments.benchmarks.suite import cheats

CHEAT, TRAINING_CHEAT = (f"{cheats.__name__}:{name}" for name in ("Cheat", "TrainingCheat"))
BUDGET = 4


@pytest.fixture(scope="module")
def problem():
    return selectenv.make_problem("Tree", dataset_size=2_000, cache=False)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Return the path of a file that no cheat manages to create."""
    path = tmp_path_factory.mktemp("cheats") / "executed"
    os.environ["CHEAT_FILE"] = str(path)
    yield path
    del os.environ["CHEAT_FILE"]


@pytest.fixture(scope="module")
def processes(executed):
    """Return a function from the name of a strategy to its process; starting one takes seconds."""
    started = {}

    def process(strategy):
        if strategy not in started:
            started[strategy] = StrategyProcess(strategy)
        return started[strategy]

    yield process
    for one in started.values():
        one.close()


def played(process, problem, seed=0, budget=BUDGET, **options):
    env, agent = RewardSelectionEnv(problem.with_calls(), budget, **options), RemoteAgent(process)
    agent.train(env, seed)
    episode = agents.play(env, agent, seed)
    agent.end()
    return episode


@pytest.mark.parametrize(
    ("trick", "error", "message"),
    [
        (cheats.read_attributes, StrategyFailedError, r"FoundError: 0 rewards, 0 problems, source \{\}"),
        (cheats.unwrap, StrategyFailedError, "'SelectionView' object has no attribute 'unwrapped'"),
        (cheats.pickle_the_view, StrategyFailedError, "FoundError: 0 rewards in the copy"),
        (cheats.read_the_cache, StrategyFailedError, "FoundError: 0 files"),
        (cheats.die, StrategyFailedError, "ended in the middle of an episode"),
    ],
)
def test_cheat_fails(trick, error, message, problem, processes):
    selectenv.make_problem("Tree", dataset_size=2_000)  # the same data, with rewards, in the cache of this process
    with pytest.raises(error, match=message):
        played(processes(CHEAT), problem, budget=cheats.budget_of(trick))


@pytest.mark.parametrize(
    ("trick", "error", "message"),
    [
        (cheats.send_a_pickle, ChannelError, "something else than a message"),
        (cheats.send_objects, ChannelError, "something else than numbers and text"),
        (cheats.send_other_labels, ChannelError, "must answer with the numbers of 1 states"),
        (cheats.ask_the_evaluator, UndeclaredEvaluatorError, "while it was playing, .* evaluator='never'"),
    ],
)
def test_what_a_cheat_sends_is_refused_and_never_unpickled(trick, error, message, problem, executed):
    process = StrategyProcess(CHEAT)
    with pytest.raises(error, match=message):
        played(process, problem, budget=cheats.budget_of(trick))
    process.close()
    assert not executed.exists()


@pytest.mark.parametrize(
    ("trick", "message"),
    [
        (cheats.learn_from_all_rewards, "NoEvaluatorError: this dataset has no rewards"),
        (cheats.label_before_the_episode, "cannot play training episodes"),
    ],
)
def test_training_leads_to_the_evaluator_alone(trick, message, problem, processes):
    with pytest.raises(StrategyFailedError, match=message):
        played(processes(TRAINING_CHEAT), problem, budget=1 + cheats.TRAINING.index(trick))


def test_an_evaluator_that_is_declared_for_training_is_refused_while_playing(problem, executed):
    process = StrategyProcess(TRAINING_CHEAT)
    with pytest.raises(UndeclaredEvaluatorError, match=r"while it was playing, .* evaluator='training'"):
        played(process, problem, budget=1 + cheats.TRAINING.index(cheats.do_nothing))
    process.close()


@pytest.mark.parametrize("trick", [cheats.remember, cheats.print_something])
def test_nothing_is_remembered_and_nothing_that_is_printed_disturbs(trick, problem, processes):
    budget = cheats.budget_of(trick)
    for _ in range(2):
        assert played(processes(CHEAT), problem, budget=budget).labels.tolist() == list(range(budget))


@pytest.mark.parametrize("options", [{}, {"labels_per_refit": 2}], ids=["every label", "two labels per refit"])
@pytest.mark.parametrize("strategy", ["uniform", "guided", "learned", "es-50"])
def test_a_strategy_plays_as_in_this_process(strategy, options, problem, processes):
    process = processes(strategy)
    for seed in range(2):
        found = played(process, problem, seed, **options)
        env, agent = RewardSelectionEnv(problem.with_calls(), BUDGET, **options), agents.make(strategy)
        agent.train(env, seed)
        here = agents.play(env, agent, seed)
        np.testing.assert_array_equal(found.labels, here.labels)
        assert (found.performance, found.cost) == (here.performance, here.cost)


@pytest.mark.parametrize(
    ("world", "options"),
    [("Breakout", {"dataset_size": 3_000}), ("CartPole", {"dataset_size": 1_000, "groups": 10})],
)
def test_images_and_groups_arrive(world, options, processes):
    problem = selectenv.make_problem(world, learner="uds", cache=False, rollouts=1, **options)
    here = agents.play(RewardSelectionEnv(problem.with_calls(), BUDGET), agents.make("guided"), 0)
    np.testing.assert_array_equal(played(processes("guided"), problem).labels, here.labels)


def test_a_strategy_that_cannot_be_made_is_reported():
    with pytest.raises(StrategyFailedError, match="has no agent 'Nobody'"):
        StrategyProcess(f"{cheats.__name__}:Nobody")
