"""Problems for the training of selectors, and the teacher's plan in them."""

from itertools import combinations

import numpy as np
import pytest

from experiments.training import training_worlds
from experiments.training.selector_teacher import MOST_TRIED, Episode
from experiments.training.training_worlds import LARGEST, SMALLEST, TrainingProblems, draw_world
from selectenv.domains.tabular.random_worlds import is_published
from selectenv.errors import OptionError
from selectenv.streams import generator


def test_worlds_vary_in_kind_and_size():
    rng = generator(0, "worlds of a test")
    worlds = [draw_world(rng) for _ in range(120)]
    assert {"lake", "corridor", "cliff", "entries", "tree", "layers", "grid", "sparse"} <= {w.name for w in worlds}
    sizes = [world.n_states for world in worlds]
    assert SMALLEST <= min(sizes) < 15
    assert 64 < max(sizes) <= LARGEST
    assert not any(map(is_published, worlds))
    assert {world.n_states <= 20 for world in (draw_world(rng, 20) for _ in range(20))} == {True}


def test_dangers_are_penalised_and_experts_may_be_careless():
    rng = generator(1, "worlds of a test")
    worlds = [draw_world(rng) for _ in range(120)]
    assert any(world.name == "cliff" and world.reward.min() == -100 for world in worlds)
    careless = [world for world in worlds if world.published_expert is not None]
    assert careless
    assert {world.name for world in careless} <= {"lake", "corridor", "cliff"}
    assert all(world.published_expert.any(axis=1).all() for world in careless)


@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_labels_matter_in_every_problem(learner):
    source = TrainingProblems(learner, 40)
    problems = [source(generator(seed, "problems of a test")) for seed in range(12)]
    for problem in problems:
        assert problem.learner.rule == learner
        none = problem.score(np.zeros(problem.n_states, bool))
        assert problem.score(problem.dataset.labelable) > none
    shares = {problem.dataset.spec["expert_share"] for problem in problems}
    assert len(shares) > 6
    again = source(generator(3, "problems of a test"))
    assert again.dataset.fingerprint == problems[3].dataset.fingerprint


def test_impossible_sizes_and_worlds_are_refused(monkeypatch):
    with pytest.raises(OptionError, match="largest"):
        TrainingProblems("uds", 4)
    monkeypatch.setattr(training_worlds, "WORTHWHILE", 2.0)  # more than everything is worth
    monkeypatch.setattr(training_worlds, "TRIES", 3)
    with pytest.raises(OptionError, match="labels do not matter"):
        TrainingProblems("uds", 12)(generator(0, "problems of a test"))


def test_the_plan_is_close_to_the_best_set():
    """Small worlds: following the teacher earns nearly as much as the best of all sets."""
    shares = []
    for seed in range(12):
        rng = generator(seed, "plans of a test")
        episode = Episode(TrainingProblems("adapted", 14), rng, (), 1.0)
        problem, budget = episode.env.problem, episode.env.budget
        states = np.flatnonzero(problem.dataset.labelable)
        masks = np.zeros((0, problem.n_states), bool)
        for chosen in combinations(states, budget):
            masks = np.concatenate([masks, np.isin(np.arange(problem.n_states), chosen)[None]])
        best, none = problem.performance_many(masks).max(), problem.score(np.zeros(problem.n_states, bool))
        over = False
        while not over:
            over = episode.step(int(np.nanargmax(episode.gains())))
        earned = problem.score(episode.env.labelled_at > 0)
        shares.append(1.0 if best - none < 1e-9 else (earned - none) / (best - none))
    assert np.mean(shares) > 0.9


def test_only_some_states_of_large_worlds_are_tried():
    source = TrainingProblems("uds")
    for seed in range(100):
        rng = generator(seed, "large problems of a test")
        if draw_world(generator(seed, "large problems of a test")).n_states > MOST_TRIED:
            episode = Episode(source, rng, (), 0.5)
            if episode.env.problem.budget_states > MOST_TRIED:
                gains = episode.gains()
                assert np.count_nonzero(~np.isnan(gains)) == MOST_TRIED
                return
    raise AssertionError("no large world was drawn")
