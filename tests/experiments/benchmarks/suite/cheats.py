"""Strategies that try to learn more than they may know; the budget says which trick they try.

What they find is the message of the error that they raise.
"""

import gc
import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import agents
from experiments.benchmarks.suite.channel import Channel
from selectenv.datasets.storage import cache_folder
from selectenv.env import RewardSelectionEnv
from selectenv.problem import SelectionProblem

HONEST = 3
"""The budget with which no trick is tried; the process warms up with it."""


class FoundError(Exception):
    """What a strategy found."""


def channel_of_this_process():
    gc.unfreeze()
    (found,) = [thing for thing in gc.get_objects() if isinstance(thing, Channel)]
    return found


def read_attributes(view):
    data = view.dataset
    known = ~np.isnan(np.concatenate([data.all_rewards, view.rewards]))
    gc.unfreeze()
    held = [thing for thing in gc.get_objects() if isinstance(thing, (SelectionProblem, RewardSelectionEnv))]
    alike = [thing for thing in held if getattr(thing, "problem", thing).dataset.n_states == data.n_states]
    raise FoundError(f"{known.sum()} rewards, {len(alike)} problems, source {dict(data.spec)}")


def unwrap(view):
    view.unwrapped.problem.performance([0])


def pickle_the_view(view):
    copy = pickle.loads(pickle.dumps(view))
    raise FoundError(f"{(~np.isnan(copy.rewards)).sum()} rewards in the copy")


def read_the_cache(view):
    raise FoundError(f"{len(list(cache_folder().glob('**/*')))} files")


def ask_the_evaluator(view):
    channel = channel_of_this_process()
    channel.send("evaluate", {"masks": np.ones((1, view.dataset.n_states), bool)})
    raise FoundError(f"performance {channel.receive().arrays['values'][0]}")


def remember(view):
    if hasattr(sys, "remembered"):
        raise FoundError("what an earlier episode revealed")
    sys.remembered = view


def print_something(view):
    print("hello")


def die(view):
    os._exit(0)


class Touch:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path(os.environ["CHEAT_FILE"]),)


def send_a_pickle(view):
    os.write(channel_of_this_process()._writing, pickle.dumps(Touch()))


def send_objects(view):
    channel_of_this_process().send("begun", {"labels": np.array([Touch()], dtype=object)})


def send_other_labels(view):
    channel_of_this_process().send("begun")
    channel_of_this_process().send("labels", {"labels": np.arange(5)})


TRICKS = (
    read_attributes,
    unwrap,
    pickle_the_view,
    read_the_cache,
    ask_the_evaluator,
    remember,
    print_something,
    die,
    send_a_pickle,
    send_objects,
    send_other_labels,
)


def budget_of(trick):
    """Return the budget with which a trick is tried."""
    return HONEST + 1 + TRICKS.index(trick)


@dataclass
class Cheat(agents.RankingAgent):
    """Tries a trick, then labels the states with the lowest numbers."""

    name = "cheat"
    taxonomy = agents.Taxonomy(test_loop="closed", training="none", evaluator="never")

    def begin(self, view):
        if view.budget > HONEST:
            TRICKS[view.budget - HONEST - 1](view)

    def scores(self, obs, info):
        return np.where(info["action_mask"] > 0, -np.arange(len(info["action_mask"]), dtype=float), np.nan)


def learn_from_all_rewards(env):
    problem = env.unwrapped.problem
    if problem.dataset.hidden_reward is not None or problem.evaluator.engine is not None:
        raise FoundError("rewards, or the evaluator itself")
    problem.learn([0])


def label_before_the_episode(env):
    env.reset(seed=0)
    env.step(0)


def do_nothing(env):
    pass


TRAINING = (learn_from_all_rewards, label_before_the_episode, do_nothing)


@dataclass
class TrainingCheat(Cheat):
    """Declares training; tries a trick there or, with the last budget, asks the evaluator while it plays."""

    taxonomy = agents.Taxonomy(test_loop="closed", training="batch", evaluator="training")

    def train(self, env, seed=0):
        TRAINING[env.budget - 1](env)

    def begin(self, view):
        ask_the_evaluator(view)
