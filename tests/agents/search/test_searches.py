"""Strategies that search through the evaluator: what they find, what they cost, what they prove."""

import dataclasses
import itertools
from math import comb

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from agents.errors import SearchLimitError
from agents.search.branch_and_bound import Bound
from agents.search.search_agent import SearchTask
from selectenv.errors import BudgetWarning, OptionError
from selectenv.kernels.tabular.subsets import combination, fill_masks
from tests.selectenv import twins


def train(world, budget, name, problem=None, env_options=None, seed=0, **options):
    problem = problem or selectenv.make_problem(world)
    env = selectenv.RewardSelectionEnv(problem, budget, **(env_options or {}))
    agent = agents.make(name, **options)
    agent.train(env, seed)
    return agent, env


def found(world, budget, name, **options):
    return train(world, budget, name, **options)[0].memory["performance"]


@pytest.mark.parametrize(("labels", "best"), [(1, 3), (2, 5), (3, 7), (4, 8)])
def test_greedy_reaches_the_published_returns_on_graph(labels, best):
    agent, env = train("Graph", labels, "sequential-greedy")
    episode = agents.play(env, agent)
    assert episode.performance == pytest.approx(best)
    assert episode.asked == sum(15 - i for i in range(labels))


def test_greedy_on_tree():
    agent, env = train("Tree", 3, "sequential-greedy")
    episode = agents.play(env, agent)
    assert episode.ids.tolist() == [15, 23, 19]
    assert episode.asked == episode.computed == 31 + 30 + 29
    path = agent.memory["notes"]["performance_by_labels"]
    assert path == [pytest.approx(env.problem.score(episode.labels[: i + 1])) for i in range(3)]


def test_greedy_serves_smaller_budgets():
    agent, _ = train("Graph", 4, "sequential-greedy")
    smaller = selectenv.RewardSelectionEnv(selectenv.make_problem("Graph"), 2)
    assert agents.play(smaller, agent).performance == pytest.approx(5)


@pytest.mark.parametrize("learner", ["uds", "adapted"])
@pytest.mark.parametrize("labels", [1, 4, 8, 15])
def test_brute_force_exact_and_enumeration_agree_on_graph(labels, learner):
    problem = selectenv.make_problem("Graph", learner=learner)
    masks = np.array(list(itertools.product([False, True], repeat=15)))
    best = problem.performance_many(masks[masks.sum(axis=1) == labels]).max()
    assert found("Graph", labels, "brute-force", problem=problem) == pytest.approx(best, abs=1e-12)
    agent, _ = train("Graph", labels, "exact", problem=problem)
    assert agent.memory["performance"] == pytest.approx(best, abs=1e-12)
    assert agent.memory["notes"]["certified"]


@given(twins.worlds, st.integers(1, 4), st.sampled_from(["uds", "adapted"]), st.sampled_from([0, -1.0]), st.booleans())
@settings(max_examples=40)
def test_exact_agrees_with_brute_force_on_random_worlds(world, budget, learner, impute, exclude):
    impute = 0 if learner == "adapted" else impute
    problem = selectenv.make_problem(
        world, dataset_size=60, learner=learner, impute=impute, unseen="exclude" if exclude else "zero", cache=False
    )
    if budget > problem.dataset.labelable.sum():
        return
    brute, exact = (train(None, budget, name, problem=problem)[0].memory for name in ("brute-force", "exact"))
    assert exact["performance"] == pytest.approx(brute["performance"], abs=1e-9)
    assert exact["notes"]["certified"]
    assert exact["notes"]["upper_bound"] <= exact["notes"]["world_bound"] + 1e-9


@given(twins.worlds, st.sampled_from(["uds", "adapted"]), st.sampled_from(["zero", "exclude"]), st.integers(0, 50))
@settings(max_examples=60)
def test_bounds_hold_for_every_set_below_them(world, learner, unseen, seed):
    problem = selectenv.make_problem(
        world, dataset_size=50, dataset_seed=seed, learner=learner, unseen=unseen, cache=False
    )
    bound = Bound(SearchTask(selectenv.RewardSelectionEnv(problem, 1), 0))
    rng = np.random.default_rng(seed)
    possible = rng.random(problem.n_states) < 0.6
    below = (rng.random((20, problem.n_states)) < 0.6) & possible
    assert problem.performance_many(below).max() <= bound(possible) + 1e-9
    assert bound(possible) <= bound(np.ones_like(possible)) + 1e-9


@pytest.mark.parametrize(
    ("world", "budgets"),
    [
        ("Graph", range(1, 16)),
        ("FrozenLake", range(1, 12)),
        ("Tree", [3, 9]),
        ("TwoRooms", [1, 5, 45]),
        ("TwoRoomsTrap", [4, 39]),
    ],
)
def test_exact_certifies(world, budgets):
    problem = selectenv.make_problem(world)
    for budget in budgets:
        notes = train(world, budget, "exact", problem=problem)[0].memory["notes"]
        assert notes["certified"]
        assert notes["distance_to_bound"] == 0


def test_exact_states_a_bound_when_it_is_stopped():
    agent, _ = train("CliffWalk", 18, "exact", max_evaluations=5000)
    notes = agent.memory["notes"]
    assert not notes["certified"]
    assert notes["distance_to_bound"] == pytest.approx(notes["upper_bound"] - agent.memory["performance"])
    assert notes["upper_bound"] >= -59.24  # a set this good is known


def test_exact_refuses_what_it_cannot_prove():
    problem = selectenv.make_problem("Graph", evaluator="rollout", rollouts=10, dataset_size=500)
    with pytest.raises(OptionError, match="there are no bounds"):
        train("Graph", 2, "exact", problem=problem)


@pytest.mark.parametrize(("budget", "scratch"), [(12, -81.64), (18, -66.39)])
def test_swap_search_beats_greedy_on_cliff_walk(budget, scratch):
    greedy = found("CliffWalk", budget, "sequential-greedy")
    agent, env = train("CliffWalk", budget, "swap-search")
    assert agent.memory["performance"] > greedy + 0.1
    assert agent.memory["performance"] >= scratch
    assert agents.play(env, agent).performance == pytest.approx(agent.memory["performance"], abs=1e-12)
    assert agent.training_calls.cost <= 50_000


@given(twins.worlds, st.integers(1, 4), st.integers(0, 20))
@settings(max_examples=30)
def test_swap_search_and_beam_are_never_worse_than_greedy(world, budget, seed):
    problem = selectenv.make_problem(world, dataset_size=80, dataset_seed=seed, cache=False)
    budget = min(budget, int(problem.dataset.labelable.sum()))
    greedy, swap = (
        found(None, budget, name, problem=problem, **options)
        for name, options in (("sequential-greedy", {}), ("swap-search", {"max_evaluations": 200}))
    )
    assert swap >= greedy - 1e-12
    assert found(None, budget, "beam", problem=problem, width=1) == pytest.approx(greedy, abs=1e-9)
    best = found(None, budget, "brute-force", problem=problem)
    assert swap <= best + 1e-12
    assert found(None, budget, "beam", problem=problem, width=1000) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(("name", "calls"), [("es-50", 50), ("es-200", 200), ("es-1000", 1000), ("es", 200)])
def test_evolution_costs_iterations_times_population(name, calls):
    agent, env = train("Tree", 9, name)
    episode = agents.play(env, agent)
    assert episode.asked == calls
    assert episode.performance == pytest.approx(agent.memory["performance"])


def test_evolution_is_the_published_procedure():
    """Against a plain transcription: top B by score, best max(3, 0.2 population), population standard deviation."""
    agent, env = train("Graph", 3, "es", iterations=3, population=20, seed=4)
    from selectenv.streams import generator

    rng, problem = generator(4, "selection", "es", 3, 20, "tabular"), env.problem
    mean, spread = np.zeros(15), np.ones(15)
    for _ in range(3):
        scores = rng.normal(mean, spread, (20, 15))
        fitness = [problem.score(sorted(range(15), key=lambda s, row=row: -row[s])[:3]) for row in scores]
        elite = scores[sorted(range(20), key=lambda i: -fitness[i])[:4]]
        mean, spread = elite.mean(axis=0), np.sqrt(((elite - elite.mean(axis=0)) ** 2).mean(axis=0)) + 1e-8
    assert agent.memory["ranking"] == sorted(range(15), key=lambda s: -mean[s])


def test_brute_force_announces_its_work_and_refuses_too_much_of_it(capsys):
    train("Graph", 3, "brute-force")
    assert "455 sets of 3 out of 15 states" in capsys.readouterr().err
    with pytest.raises(
        SearchLimitError, match=r"20,160,075 sets of 9 out of 31 states, for .*raise it with max_evaluations="
    ):
        train("Tree", 9, "brute-force")
    agent, _ = train("Graph", 7, "brute-force", stop_at_best_possible=True)
    assert agent.memory["performance"] == pytest.approx(8)
    assert agent.training_calls.cost == agent.memory["notes"]["sets"] <= comb(15, 7)


def test_reduced_brute_force_searches_rewarding_states_only():
    agent, _ = train("TwoRoomsTrap", 13, "reduced-brute-force", sizes="largest")
    assert agent.memory["notes"] == {"sets": comb(18, 13), "states": 18}
    assert agent.taxonomy.oracle
    lake, _ = train("FrozenLake", 2, "reduced-brute-force")
    assert 14 in lake.memory["ranking"][:2]
    assert lake.training_calls.cost == 2  # with the one rewarding state, and without
    for options in ({"learner": "adapted"}, {"impute": "min"}, {"solver": "sampled"}):
        with pytest.raises(OptionError, match="only rewarding states matter"):
            train(
                "Graph", 2, "reduced-brute-force", problem=selectenv.make_problem("Graph", dataset_size=500, **options)
            )


@given(st.integers(0, 10_000), st.booleans(), st.integers(1, 4))
@settings(max_examples=40)
def test_reduced_brute_force_agrees_with_brute_force_on_sparse_worlds(seed, cyclic, budget):
    world = sparse(twins.random_world(seed, cyclic), seed)
    problem = selectenv.make_problem(world, dataset_size=40, dataset_seed=seed, cache=False)
    budget = min(budget, int(problem.dataset.labelable.sum()))
    best = found(None, budget, "brute-force", problem=problem)
    assert found(None, budget, "reduced-brute-force", problem=problem) == pytest.approx(best, abs=1e-9)
    assert found(None, budget, "exact", problem=problem) == pytest.approx(best, abs=1e-9)


def sparse(world, seed):
    """The same world with rewards in one state only."""
    keep = world.state == np.random.default_rng(seed).integers(world.n_states)
    return dataclasses.replace(world, reward=np.where(keep, world.reward, 0.0))


@pytest.mark.parametrize("seed", [117, 119, 127])
def test_certificates_hold_for_the_sampled_learner(seed):
    """Its noise depends on every label, so no label is silent."""
    problem = selectenv.make_problem("FrozenLake", solver="sampled", dataset_size=1500, dataset_seed=seed)
    best = found(None, 3, "brute-force", problem=problem)
    agent, _ = train(None, 3, "exact", problem=problem)
    assert agent.memory["notes"]["certified"]
    assert agent.memory["performance"] == pytest.approx(best, abs=1e-12)


def test_searches_label_all_candidates_of_a_capped_budget():
    with pytest.warns(BudgetWarning, match="reduced to"):
        env = gym.make(selectenv.env_id("Graph"), budget=15, initial_ratio=0.2, expert_share=1.0, dataset_size=500)
    for name in ("sequential-greedy", "es-50", "beam", "swap-search", "brute-force", "exact"):
        agent = agents.make(name)
        agent.train(env)
        assert len(agents.play(env, agent).labels) == env.unwrapped.problem.dataset.labelable.sum() < 15


def test_brute_force_refuses_numbers_beyond_floats():
    env = selectenv.make_env("Tree", depth=11, budget=0.3, dataset_size=100_000)
    with pytest.raises(SearchLimitError, match=r"over 10\^5\d\d sets"):
        agents.make("brute-force").train(env)


@given(st.integers(1, 9), st.integers(0, 9))
def test_combinations_come_in_order(m, k):
    k = min(k, m)
    expected = list(itertools.combinations(range(m), k))
    masks = np.zeros((len(expected), m + 2), bool)
    items = np.arange(m) + 2
    half = len(expected) // 2
    current = combination(0, m, k)
    for part in (masks[:half], masks[half:]):
        fill_masks(current, items, part)
    assert [tuple(np.flatnonzero(row) - 2) for row in masks] == expected
    assert [tuple(combination(i, m, k)) for i in range(len(expected))] == expected


@pytest.mark.parametrize("mode", ["scores", "swaps"])
@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "ga", "random", "QMCSampler"])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_optuna_samplers(sampler, mode):
    agent, env = train("Graph", 3, "optuna", sampler=sampler, mode=mode, max_evaluations=12, batch=4)
    episode = agents.play(env, agent)
    assert episode.performance == pytest.approx(agent.memory["performance"])
    assert episode.asked == 12 + (42 if mode == "swaps" else 0)
    again, _ = train("Graph", 3, "optuna", sampler=sampler, mode=mode, max_evaluations=12, batch=4)
    assert again.memory["ranking"] == agent.memory["ranking"]


def test_optuna_resumes_from_its_storage(tmp_path):
    storage = str(tmp_path / "deep" / "study.log")
    first, _ = train("Graph", 3, "optuna", max_evaluations=10, storage=storage)
    second, _ = train("Graph", 3, "optuna", max_evaluations=16, storage=storage)
    third, _ = train("Graph", 3, "optuna", max_evaluations=16, storage=storage)
    assert [agent.training_calls.cost for agent in (first, second, third)] == [10, 16, 16]
    assert [agent.training_calls.computed for agent in (first, second, third)] == [10, 6, 0]
    assert third.memory["performance"] >= first.memory["performance"]


def test_optuna_resumes_after_a_kill_inside_a_batch(tmp_path, monkeypatch):
    storage = tmp_path / "study.log"
    evaluate, calls = SearchTask.evaluate, []

    def dying(self, sets):
        calls.append(len(sets))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return evaluate(self, sets)

    monkeypatch.setattr(SearchTask, "evaluate", dying)
    with pytest.raises(KeyboardInterrupt):
        train("Graph", 3, "optuna", max_evaluations=12, batch=5, storage=storage, sampler="random")
    monkeypatch.setattr(SearchTask, "evaluate", evaluate)
    agent, env = train("Graph", 3, "optuna", max_evaluations=12, batch=5, storage=storage, sampler="random")
    assert agent.memory["notes"]["trials"] == 12
    assert agent.training_calls.to_dict() == {"asked": 12, "disclosed": 0, "computed": 7}
    import optuna

    backend = optuna.storages.journal.JournalFileBackend(str(storage))
    (study,) = optuna.study.get_all_study_summaries(optuna.storages.JournalStorage(backend))
    trials = optuna.load_study(study_name=study.study_name, storage=optuna.storages.JournalStorage(backend)).trials
    complete = [tuple(trial.params.values()) for trial in trials if trial.value is not None]
    assert len(complete) == len(set(complete)) == 12  # a resumed sampler does not repeat itself
    assert agents.play(env, agent).performance == pytest.approx(agent.memory["performance"])


def test_optuna_keeps_tasks_apart(tmp_path):
    storage = tmp_path / "study.log"
    train("Graph", 3, "optuna", max_evaluations=5, storage=storage)
    other = selectenv.make_problem("Graph", learner="adapted", dataset_size=500)
    agent, env = train("Graph", 3, "optuna", problem=other, max_evaluations=5, storage=storage)
    assert agent.training_calls.cost == 5
    assert agents.play(env, agent).performance == pytest.approx(agent.memory["performance"])
    train("Graph", 3, "optuna", max_evaluations=5, storage=storage, study="mine")
    with pytest.raises(OptionError, match="belongs to another task"):
        train("Graph", 3, "optuna", problem=other, max_evaluations=5, storage=storage, study="mine")


def test_invalid_optuna_storages_are_refused(tmp_path):
    damaged = tmp_path / "damaged.log"
    damaged.write_text("{not json\n{more\n")
    for storage in (damaged, tmp_path, "foo://x"):
        with pytest.raises(OptionError, match="cannot be used"):
            train("Graph", 3, "optuna", max_evaluations=2, storage=storage)
    for options in ({"storage": 5}, {"sampler_options": "bad"}):
        with pytest.raises(OptionError):
            agents.make("optuna", **options)
    with pytest.raises(OptionError, match="Did you mean 'QMCSampler'"):
        train("Graph", 3, "optuna", max_evaluations=2, sampler="QMCSample")
    with pytest.raises(OptionError, match="sampler_options"):
        train("Graph", 3, "optuna", max_evaluations=2, sampler_options={"bad": 1})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("es", {"iterations": 0}),
        ("es", {"population": 0}),
        ("es", {"population": 2.5}),
        ("es", {"form": "atari"}),
        ("beam", {"width": 0}),
        ("swap-search", {"max_evaluations": 0}),
        ("brute-force", {"max_evaluations": 0}),
        ("exact", {"seconds": 0}),
        ("exact", {"max_evaluations": 0}),
        ("brute-force", {"stop_at_best_possible": "no"}),
        ("reduced-brute-force", {"sizes": "x"}),
        ("optuna", {"max_evaluations": 0}),
        ("optuna", {"sampler": 3}),
        ("optuna", {"mode": "x"}),
        ("optuna", {"batch": True}),
    ],
)
def test_options_out_of_range(name, options):
    with pytest.raises(OptionError):
        agents.make(name, **options)


@pytest.mark.parametrize("name", ["sequential-greedy", "es-50", "beam", "swap-search", "brute-force", "exact"])
def test_initial_labels_are_kept(name):
    env = gym.make(selectenv.env_id("Graph"), budget=4, initial_ratio=0.15, dataset_size=2000)
    agent = agents.make(name)
    agent.train(env, seed=3)
    episode = agents.play(env, agent, seed=3)
    initial = env.reset(seed=3)[1]["initial"]
    assert episode.labels[:2].tolist() == initial.tolist()
    assert not set(agent.memory["ranking"][:2]) & set(initial.tolist())
    assert episode.performance == pytest.approx(agent.memory["performance"])


def test_best_of_keeps_the_best_of_its_draws():
    problem = selectenv.make_problem("Tree", dataset_size=5_000)
    env = selectenv.RewardSelectionEnv(problem, 5)
    agent = agents.make("best-of", max_evaluations=6)
    agent.train(env, 3)
    returns = agent._memory["notes"]["returns"]
    assert len(set(returns)) > 1
    episode = agents.play(env, agent, 3)
    assert episode.performance == max(returns)
    assert episode.asked == 6
    with pytest.raises(OptionError):
        agents.make("best-of", max_evaluations=0)


def test_small_evolution_strategies_depend_on_their_evaluator():
    """If every vector of the MinAtar form were an elite, fitness would not change the answer."""
    problem = selectenv.make_problem("Tree", dataset_size=5_000)
    found = []
    for sign in (1, -1):
        env = selectenv.RewardSelectionEnv(problem, 5)
        agent = agents.make("es", iterations=1, population=4, form="minatar")
        env.problem.performance_many = lambda masks, sign=sign: sign * problem.performance_many(masks)
        agent.train(env)
        found.append(agent._memory["ranking"][:5])
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("options", "identity"),
    [
        ({}, "b01cb3aa049c4537"),
        ({"learner": "adapted"}, "3c6f96b71e031e34"),
        ({"impute": "dataset-min"}, "2f2b9982c6610dc9"),
        ({"solver": "sampled"}, "9a48d215ad846eb6"),
    ],
)
def test_optuna_identifies_tasks_as_when_the_committed_results_were_made(options, identity):
    """The seed of the sampler derives from it."""
    env = selectenv.make_env("Graph", budget=3, dataset_size=500, **options)
    assert agents.make("optuna")._identity(SearchTask(env, 0), None) == identity
