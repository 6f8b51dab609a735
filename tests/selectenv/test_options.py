"""Options: four dataclasses with defaults, checks and documentation; flat keywords are routed by field name."""

import inspect
import re
from dataclasses import FrozenInstanceError, fields

import gymnasium as gym
import pytest

import selectenv
from selectenv.errors import OptionError, UnknownNameError
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


@pytest.mark.parametrize(("function", "groups"), [(selectenv.make_problem, GROUPS[:3]), (selectenv.make_env, GROUPS)])
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
