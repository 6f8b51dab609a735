"""Options: five dataclasses with defaults, checks and documentation; flat keywords are routed by field name."""

import inspect
import re
from dataclasses import FrozenInstanceError, fields

import gymnasium as gym
import numpy as np
import pytest

import selectenv
from selectenv.errors import OptionError, UnknownNameError
from selectenv.learners import LEARNERS, make_learner
from selectenv.options import GROUPS, DataOptions, EnvironmentOptions, LearnerOptions, names, own_options, take

SMALL = {"dataset_size": 300, "cache": False}


@pytest.mark.parametrize("group", GROUPS)
def test_groups_are_small_frozen_and_documented(group):
    assert 1 <= len(fields(group)) <= 10
    documented = re.findall(r"^        (\w+): ", group.__doc__, flags=re.MULTILINE)
    assert documented == names(group)
    with pytest.raises(FrozenInstanceError):
        setattr(group(), names(group)[0], None)


def test_no_field_belongs_to_two_groups():
    every = names(*GROUPS)
    assert len(every) == len(set(every))


@pytest.mark.parametrize(("function", "groups"), [(selectenv.make_problem, GROUPS[:4]), (selectenv.make_env, GROUPS)])
def test_signature_and_documentation_are_generated(function, groups):
    parameters = inspect.signature(function).parameters
    assert list(parameters) == ["world", *names(*groups), "own_options"]
    for group in groups:
        for option in fields(group):
            assert parameters[option.name].default == option.default
            assert f"{option.name}: " in function.__doc__


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("bugdet", "budget"),
        ("expert_shar", "expert_share"),
        ("gama", "gamma"),
        ("rollout", "rollouts"),
        ("dept", "depth"),
    ],
)
def test_unknown_options_name_the_nearest(option, meant):
    with pytest.raises(UnknownNameError, match=f"Did you mean '{meant}'"):
        gym.make("RewardSelection-Tree-v0", **SMALL, **{option: 1})


def test_options_reach_their_group():
    env = gym.make(
        "RewardSelection-Tree-v0",
        **SMALL,
        budget=2,
        phase="test",
        learner="adapted",
        gamma=0.5,
        evaluator="rollout",
        rollouts=7,
        discount=0.9,
        depth=3,
        dataset_seed=4,
    ).unwrapped
    problem = env.problem
    assert env.options == EnvironmentOptions(budget=2, phase="test", labels_per_refit=1)
    assert (problem.n_states, problem.learner.rule, problem.learner.gamma) == (7, "adapted", 0.5)
    assert problem.evaluator.discount == 0.9
    assert len(problem.evaluator.engine.episode_returns(problem.learn([]).policy)[0]) == 7
    assert problem.dataset.spec["seed"] == 4


def test_a_group_takes_what_is_its_own():
    given = {"gamma": 0.5, "budget": 3, "dataset_seed": 2}
    assert take(DataOptions, given) == DataOptions(dataset_seed=2)
    assert take(LearnerOptions, given) == LearnerOptions(gamma=0.5)
    assert own_options({"gamma": 1, "depth": 2}, ["depth"], names(LearnerOptions)) == {"depth": 2}


@pytest.mark.parametrize(
    "wrong",
    [
        {"dataset_seed": -1},
        {"dataset_size": 0},
        {"cache": "yes"},
        {"scale": "huge"},
        {"gamma": 1.0},
        {"impute": "max"},
        {"impute": float("nan")},
        {"updates": 0},
        {"checkpoints": 3},
        {"learner_runs": 0},
        {"evaluator": "exactly"},
        {"rollouts": 0},
        {"discount": 0.0},
    ],
)
def test_values_are_checked(wrong):
    with pytest.raises(OptionError if "dataset_size" not in wrong else ValueError, match=next(iter(wrong))):
        selectenv.make_problem("Graph", **{**SMALL, **wrong})


class Impatient:
    """A learner without options of its own but ``impute``."""

    def __init__(self, gamma=0.5, impute=1.0):
        self.gamma, self.impute = gamma, impute

    def fit(self, dataset, rewards):
        return selectenv.TablePolicy(np.full((dataset.n_states, dataset.n_actions), 1 / dataset.n_actions))


def without_options():
    return Impatient()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(LEARNERS, "_rows", dict(LEARNERS._rows))
    selectenv.register_learner("impatient")(Impatient)
    selectenv.register_learner("without-options")(without_options)


@pytest.mark.usefixtures("impatient")
def test_a_registered_learner_refuses_options_that_it_does_not_take():
    for option, value in {"impute": 3, "solver": "sampled", "updates": 5, "gamma": 0.9, "learner_seed": 1}.items():
        with pytest.raises(OptionError, match=f"'without-options' has no option '{option}'"):
            selectenv.make_problem("Graph", learner="without-options", **{option: value}, **SMALL)
        with pytest.raises(OptionError, match=option):
            make_learner("without-options", **{option: value})
    assert selectenv.make_problem("Graph", learner="without-options", **SMALL).learner.gamma == 0.5


@pytest.mark.usefixtures("impatient")
def test_a_registered_learner_gets_options_that_it_shares_with_others():
    for given, expected in (({}, 1.0), ({"impute": 3}, 3), ({"impute": 0}, 0)):
        problem = selectenv.make_problem("Graph", learner="impatient", gamma=0.9, **given, **SMALL)
        assert (problem.learner.learner.impute, problem.learner.gamma) == (expected, 0.9)
        assert make_learner("impatient", **given).learner.impute == expected


def test_random_worlds_are_not_one_world():
    for make in (selectenv.make_env, selectenv.make_problem):
        with pytest.raises(UnknownNameError, match=r'gym\.make\("RewardSelection-Random-v0"\)'):
            make("Random")
