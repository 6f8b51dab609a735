"""What imagine and auto have in common: only bought rewards matter, every rule is played, and labels repeat."""

from dataclasses import replace

import numpy as np
import pytest

import agents
import selectenv
from selectenv.env import RewardSelectionEnv

BUDGET = 4
STRATEGIES = {"imagine": {"particles": 24}, "auto": {}}


def problem(world="Tree", **options):
    return selectenv.make_problem(world, dataset_size=5_000, cache=False, **options)


def episode(task, strategy, seed=0):
    return agents.play(RewardSelectionEnv(task, BUDGET), agents.make(strategy, **STRATEGIES[strategy]), seed)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_rewards_that_were_not_bought_do_not_matter(learner, strategy):
    task = problem(learner=learner)
    truth = task.dataset.hidden_reward
    labels = episode(task, strategy).labels.tolist()
    bought = np.isin(task.dataset.state, labels)
    garbage = np.random.default_rng(0).normal(scale=1e6, size=len(truth))
    spoiled = replace(task.dataset, hidden_reward=np.where(bought, truth, garbage), _shared={})
    other = selectenv.SelectionProblem(spoiled, task.learner, task.evaluator)
    assert episode(other, strategy).labels.tolist() == labels


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "options",
    [
        {"learner": "uds"},
        {"learner": "adapted"},
        {"impute": "min"},
        {"impute": -1.0},
        {"unseen": "exclude", "expert_share": 1.0},
        {"gamma": 0.5},
    ],
)
def test_every_rule_is_played_and_repeats(options, strategy):
    task = problem("CliffWalk", **options)
    first = episode(task, strategy)
    assert len(set(first.labels.tolist())) == BUDGET
    assert task.dataset.labelable[first.labels].all()
    assert first.cost == 0
    again = episode(task, strategy, seed=9)  # the episode's seed is not used
    assert again.labels.tolist() == first.labels.tolist()
