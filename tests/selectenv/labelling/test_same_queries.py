"""A session asks for the states that the environment's episode labels, resumed or not."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from agents.base import RankingAgent, Taxonomy
from selectenv.errors import BudgetWarning
from selectenv.wrappers import BatchLabels
from tests.selectenv.labelling.teller import FREE, answer_all, episode, truth
from tests.selectenv.twins import random_world
from tests.stress import repetitions

WORLDS = ("Graph", "Tree", "FrozenLake", "CliffWalk", "TwoRooms")
SEEDS = 20


@cache
def published(world):
    return selectenv.make_problem(world, dataset_size=repetitions(5_000, 100_000), cache=False)


def without_noise(problem):
    """Return the problem with the mean reward of each distinct transition, which is all that a person can tell."""
    data, unique = problem.dataset, problem.dataset.unique_transitions
    means = unique.mean_rewards(data.hidden_reward)[0]
    return selectenv.SelectionProblem(replace(data, hidden_reward=means[unique.index]), problem.learner)


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("world", WORLDS)
def test_published_worlds(world, name, tmp_path):
    """Every seed in `make stress`; in the suite, one seed per combination of world and strategy."""
    problem = published(world)
    bare, budget = problem.dataset.without_rewards, 9
    first = (WORLDS.index(world) * len(FREE) + FREE.index(name)) % SEEDS
    for seed in range(first, first + repetitions(1, SEEDS)):
        wanted = episode(problem, name, budget, seed % SEEDS)
        session = selectenv.LabellingSession(bare, name, budget, seed=seed % SEEDS)
        assert answer_all(session, problem.dataset) == wanted
        path = tmp_path / f"{seed}.sqlite"
        with selectenv.LabellingSession(bare, name, budget, path, seed=seed % SEEDS) as session:
            before = answer_all(session, problem.dataset, budget=1 + seed % (budget - 1))
            session.ask()  # handed out and never answered
        with selectenv.LabellingSession.open(path) as session:
            assert before + answer_all(session, problem.dataset) == wanted


@settings(max_examples=repetitions(40, 2000))
@given(data=st.data())
def test_random_worlds_and_options(data, tmp_path_factory):
    """Random worlds, learners and options; half of the sessions are closed and opened again after some answers."""
    world = random_world(data.draw(st.integers(0, 10_000)))
    learner, impute = data.draw(st.sampled_from([("uds", 0), ("uds", "min"), ("uds", -2.5), ("adapted", 0)]))
    options = {"learner": learner, "impute": impute, "solver": data.draw(st.sampled_from(["exact", "sampled"]))}
    options |= {
        "gamma": data.draw(st.sampled_from([0.5, 0.99])),
        "unseen": data.draw(st.sampled_from(["zero", "exclude"])),
    }
    problem = without_noise(selectenv.make_problem(world, dataset_size=300, cache=False, **options))
    name, seed = data.draw(st.sampled_from(FREE)), data.draw(st.integers(0, 1000))
    budget, refit = data.draw(st.integers(1, problem.n_states)), data.draw(st.sampled_from([None, 1, 2, 3]))
    occupancy = data.draw(st.sampled_from(["normalised", "published"]))
    more = {"labels_per_refit": refit, "occupancy": occupancy}
    wanted = episode(problem, name, budget, seed, **more)
    pause = data.draw(st.none() | st.integers(0, budget))
    path = None if pause is None else tmp_path_factory.mktemp("session") / "labels.sqlite"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        session = selectenv.LabellingSession(
            problem.dataset.without_rewards, name, budget, path, seed=seed, **more, **options
        )
    asked = answer_all(session, problem.dataset, budget=pause)
    if path is not None:
        session.close()
        session = selectenv.LabellingSession.open(path)
        asked += answer_all(session, problem.dataset)
    assert asked == wanted
    result = problem.learn(problem.actions(wanted))
    np.testing.assert_array_equal(session.policy().table, result.table)
    np.testing.assert_array_equal(session.rewards, problem.dataset.reveal(problem.mask(problem.actions(wanted))))
    session.close()


@pytest.mark.parametrize("name", [name for name in FREE if agents.make(name).taxonomy.test_loop == "closed"])
def test_batches_are_those_of_the_wrapper(name):
    problem = published("CliffWalk")
    env = BatchLabels(selectenv.RewardSelectionEnv(problem, 10), 4)
    wanted = agents.play(env, agents.make(name), seed=3).ids.tolist()
    session, asked = selectenv.LabellingSession(problem.dataset.without_rewards, name, 10, seed=3), []
    while queries := session.ask(4):
        asked += [query.id for query in queries]
        for query in reversed(queries):  # the order of the answers does not matter
            session.tell(query.id, truth(problem.dataset, query))
    assert asked == wanted


class Witness(RankingAgent):
    """Keeps what it is shown."""

    name = "witness"
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")

    def __init__(self, one_at_a_time):
        self.one_at_a_time, self.seen = one_at_a_time, []

    def begin(self, view):
        self.view = view

    def scores(self, obs, info):
        self.seen.append((obs, {**info, "rewards": self.view.rewards.copy(), "labels": self.view.labels_to_choose}))
        return np.where(info["action_mask"] > 0, obs["on_policy_visitation"] + obs["reward"], np.nan)


@pytest.mark.parametrize("labels_per_refit", [1, 3])
@pytest.mark.parametrize("one_at_a_time", [False, True])
@pytest.mark.parametrize("falling", [False, True])
def test_strategies_see_what_they_would_see_there(labels_per_refit, one_at_a_time, falling):
    """Values grow with the labels in Tree, and fall in one random world: they are scaled by the largest one so far."""
    made = selectenv.make_problem(random_world(33), dataset_size=300, cache=False) if falling else published("Tree")
    problem = without_noise(made)
    there, here = Witness(one_at_a_time), Witness(one_at_a_time)
    wanted = episode(problem, there, 7, 0, labels_per_refit=labels_per_refit)
    session = selectenv.LabellingSession(problem.dataset.without_rewards, here, 7, labels_per_refit=labels_per_refit)
    assert answer_all(session, problem.dataset) == wanted
    assert len(here.seen) == len(there.seen)
    assert falling == any(0 < np.abs(obs["value"]).max() < 1 for obs, _ in there.seen)
    for (obs, info), (obs2, info2) in zip(there.seen, here.seen, strict=True):
        assert list(obs) == list(obs2)
        for key in obs:
            np.testing.assert_array_equal(obs[key], obs2[key], err_msg=key)
        np.testing.assert_equal(info2, info)


def test_an_undone_answer_leaves_no_trace():
    problem = published("Tree")
    wanted = episode(problem, "guided", 6, 1)
    session, asked = selectenv.LabellingSession(problem.dataset.without_rewards, "guided", 6, seed=1), []
    while query := session.ask():
        session.tell(query.id, 1e6)
        assert session.undo() == query.id
        assert session.ask().id == query.id
        session.tell(query.id, truth(problem.dataset, query))
        asked.append(query.id)
    assert asked == wanted
