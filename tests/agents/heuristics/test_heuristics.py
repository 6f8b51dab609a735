"""Strategies that need no training: their formulas, their distributions, and the published results of two of them."""

import csv
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
import selectenv
from agents.base import gumbel_top_k, top_k
from agents.errors import NotTrainedError
from agents.heuristics.guided import SMALLEST, SMALLEST_POOLED, exploration, pooled_exploration
from agents.heuristics.terminal import steps_to_termination
from selectenv.errors import LabelError, MissingFeatureError, OptionError, PhaseError
from selectenv.kernels.tabular.occupancy import pooled_predecessors

PUBLISHED = Path(__file__).parents[3] / "experiments" / "protocol" / "published_tables" / "heuristics_uds.csv"
HEURISTICS = [name for name, row in agents.AGENTS.items() if row.kind.taxonomy.training == "none"]


def published(world, strategy):
    with PUBLISHED.open() as file:
        rows = [row for row in csv.DictReader(file) if (row["domain"], row["strategy"]) == (world, strategy)]
    return [(float(row["mean"]), float(row["stderr"])) for row in rows]


@pytest.mark.parametrize("strategy", ["uniform", "visitation"])
def test_graph_agrees_with_the_published_results(strategy):
    """Budgets of 3, 6, 9, 12 labels, many seeds, within three combined standard errors."""
    problem = selectenv.make_problem("Graph")
    agent = agents.make(strategy)
    for labels, (mean, error) in zip((3, 6, 9, 12), published("Graph", strategy), strict=False):
        env = selectenv.RewardSelectionEnv(problem, labels)
        returns = [agents.play(env, agent, seed).performance for seed in range(400)]
        ours = np.std(returns) / np.sqrt(len(returns))
        assert abs(np.mean(returns) - mean) <= 3 * np.hypot(error, ours)


@pytest.mark.parametrize("name", HEURISTICS)
def test_scores_show_what_can_be_drawn(name):
    env = gym.make(selectenv.env_id("Tree"), budget=5, dataset_size=5000)
    agent = agents.make(name)
    agent.train(env)
    obs, info = env.reset(seed=0)
    agent.begin(env.unwrapped.view())
    for action in (15, 3):
        obs, _, _, _, news = env.step(action)
        info = {**info, **news}
    scores = agent.scores(obs, info)
    assert scores.shape == (31,)
    assert np.array_equal(np.isnan(scores), info["action_mask"] == 0)
    if isinstance(agent, agents.SamplingAgent):
        assert np.nansum(scores) == pytest.approx(1)
        assert np.nanmin(scores) >= 0
    chosen = agent.select_many(obs, info, 4, np.random.default_rng(0))
    assert len(set(chosen.tolist()) - {15, 3}) == 4


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in HEURISTICS), ("adaptive-mixture", {"exploit": "on_policy_visitation"})],
)
def test_features_that_a_strategy_needs(name, options):
    """With them alone it plays the same episode; without any of them, an error lists them all."""
    agent = agents.make(name, **options)

    def episode(features):
        env = selectenv.make_env("Tree", budget=5, dataset_size=2000, features=features)
        agent.train(env)
        return agents.play(env, agent, seed=1)

    needed = list(agent.features)
    np.testing.assert_array_equal(episode(needed or ["budget"]).labels, episode(None).labels)
    for missing in needed:
        with pytest.raises(MissingFeatureError, match=f"{name} needs .* lacks '{missing}': .*without `features`"):
            episode([other for other in needed if other != missing] or ["reward"])


def test_a_missing_feature_is_named_without_play():
    env = selectenv.make_env("Graph", budget=2, features=["labelled"], dataset_size=500)
    with pytest.raises(MissingFeatureError, match=r"features=\['labelled', 'visitation'\]"):
        agents.make("visitation").select(*env.reset(seed=0), np.random.default_rng(0))


def test_gumbel_draws_without_replacement_in_proportion():
    """The first draw follows the weights, the second the weights without the first."""
    weights, rng = np.array([0.5, 0.3, 0.2, 0.0]), np.random.default_rng(0)
    draws = np.array([gumbel_top_k(weights, np.ones(4, bool), 3, rng) for _ in range(20_000)])
    first = np.bincount(draws[:, 0], minlength=4) / len(draws)
    np.testing.assert_allclose(first, weights, atol=0.015)
    second = np.bincount(draws[draws[:, 0] == 0, 1], minlength=4) / (draws[:, 0] == 0).sum()
    np.testing.assert_allclose(second, [0, 0.6, 0.4, 0], atol=0.02)
    assert not (draws == 3).any()
    only = gumbel_top_k(weights, np.array([False, True, False, True]), 2, rng)
    assert only.tolist() == [1, 3]  # weight 0 comes last, when nothing else is left


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=1, max_size=80), st.integers(1, 8))
def test_top_k_is_a_stable_sort(scores, k):
    scores = np.array(scores)
    order = [i for i in np.argsort(-np.nan_to_num(scores, nan=-1.0), kind="stable") if not np.isnan(scores[i])]
    if k > len(order):
        with pytest.raises(LabelError, match="can still be labelled"):
            top_k(scores, k)
    else:
        assert top_k(scores, k).tolist() == order[:k]


def test_guided_schedules():
    """T = floor(0.5 * 32) = 16 in a world of 31 states."""
    linear = [exploration(b, 31, "linear", 6.0, 0.5) for b in (1, 2, 8, 15, 16, 31)]
    np.testing.assert_allclose(linear, [1, 1 - 1 / 15, 1 - 7 / 15, 1 - 14 / 15, SMALLEST, SMALLEST])
    convex = [exploration(b, 31, "convex", 6.0, 0.5) for b in (1, 2, 8)]
    np.testing.assert_allclose(convex, np.exp([0, -6 / 15, -42 / 15]))
    assert exploration(8, 31, "concave", 6.0, 0.5) == pytest.approx(1 - np.exp(-6 * 8 / 15))
    assert [exploration(b, 31, "linear", 6.0, 0.0) for b in (1, 2)] == [1.0, SMALLEST]
    assert (
        exploration(2, 31, "concave", 6.0, 1.0)
        > exploration(2, 31, "linear", 6.0, 1.0)
        > exploration(2, 31, "convex", 6.0, 1.0)
    )


def test_guided_schedule_of_the_games():
    """1,001 states, so T = floor(0.5 * 1001) = 500, in batches of 100: one alpha per batch, at the labels after it."""

    def concave(b):
        return 1 - np.exp(-6 * (500 - b) / 499)

    def alpha(b, labels=np.inf, batch=100):
        return pooled_exploration(b, 1001, "concave", 6.0, 0.5, batch, labels)

    assert {alpha(b) for b in range(1, 101)} == {1.0}
    for batch, after in ((2, 100), (3, 200), (4, 300), (5, 400)):
        assert {alpha(b) for b in range(100 * batch - 99, 100 * batch + 1)} == {alpha(100 * batch)}
        assert alpha(100 * batch) == pytest.approx(concave(after))
    assert alpha(501) == alpha(900) == SMALLEST_POOLED
    assert alpha(301, labels=350) == pytest.approx(concave(250))  # the last batch has 50 labels
    assert alpha(2, batch=1) == pytest.approx(concave(1))
    assert [pooled_exploration(b, 3, "concave", 6.0, 0.5, 1) for b in (1, 2)] == [1.0, SMALLEST_POOLED]
    assert pooled_exploration(150, 1001, "linear", 6.0, 0.5, 100) == pytest.approx(1 - 99 / 499)


def test_guided_follows_the_environment():
    """In the games it pools predecessors and decays late; the first batch is drawn by visitation alone."""
    env = gym.make(selectenv.env_id("Breakout"), budget=300, labels_per_refit=100, dataset_size=3_000, cache=False)
    agent = agents.make("guided")
    obs, info = env.reset(seed=0)
    agent.begin(env.unwrapped.view())
    np.testing.assert_allclose(agent.weights(obs, info), obs["visitation"], rtol=1e-6)
    problem = env.unwrapped.problem
    rewarded = np.unique(problem.dataset.state[problem.dataset.hidden_reward > 0])
    batch = np.concatenate([rewarded, np.setdiff1d(np.arange(problem.n_states), rewarded)])[:100]
    obs, _, _, _, info = env.step(batch)
    learned = problem.learn(batch)
    labelled = np.isin(np.arange(problem.n_states), batch)
    pooled = pooled_predecessors(learned.values, labelled, *problem.dataset.predecessors)
    assert pooled.any()
    np.testing.assert_allclose(obs["predecessors"], pooled, rtol=1e-6)
    alpha = pooled_exploration(101, problem.n_states, "concave", 6.0, 0.5, 100)
    expected = alpha * obs["visitation"] + (1 - alpha) * obs["predecessors"]
    np.testing.assert_allclose(agent.weights(obs, info), expected, rtol=1e-6)
    chosen = agent.select_many(obs, info, 100, np.random.default_rng(0))
    assert len(np.unique(np.concatenate([chosen, batch]))) == 200


def test_guided_needs_the_predecessors_that_it_is_told_to_exploit():
    tree = {"budget": 4, "dataset_size": 2000}
    pooled, best = (agents.make("guided", exploit=exploit) for exploit in ("pooled", "best"))
    with pytest.raises(OptionError, match="make the environment with exploit='pooled'"):
        agents.play(gym.make(selectenv.env_id("Tree"), **tree), pooled)
    with pytest.raises(OptionError, match="make the environment with exploit='best'"):
        agents.play(gym.make(selectenv.env_id("Tree"), exploit="pooled", **tree), best)
    default, told = (
        agents.play(gym.make(selectenv.env_id("Tree"), exploit="pooled", **tree), agent, seed=3)
        for agent in (agents.make("guided"), pooled)
    )
    assert default.labels.tolist() == told.labels.tolist()
    plain = agents.play(gym.make(selectenv.env_id("Tree"), **tree), agents.make("guided"), seed=3)
    linear = agents.play(
        gym.make(selectenv.env_id("Tree"), exploit="best", **tree), agents.make("guided", decay="linear"), seed=3
    )
    assert plain.labels.tolist() == linear.labels.tolist()


def test_guided_mixes_visitation_and_predecessors():
    env = gym.make(selectenv.env_id("Tree"), budget=10, dataset_size=20_000, initial_ratio=0.1)
    agent = agents.make("guided")
    obs, info = env.reset(seed=0)
    np.testing.assert_allclose(agent.weights(obs, info), obs["visitation"], rtol=1e-6)  # the first label explores
    for action in np.flatnonzero(info["action_mask"])[:4]:
        obs, _, _, _, news = env.step(int(action))
        info = {**info, **news}
    alpha = 1 - 4 / 15  # the fifth label after the initial ones
    expected = alpha * obs["visitation"] + (1 - alpha) * obs["predecessors"]
    np.testing.assert_allclose(agent.weights(obs, info), expected, rtol=1e-6)
    on_policy = agents.make("guided-on-policy").weights(obs, info)
    expected = alpha * obs["on_policy_visitation"] + (1 - alpha) * obs["predecessors"]
    np.testing.assert_allclose(on_policy, expected, rtol=1e-6)


def test_guided_draws_batches_as_it_draws_one_by_one():
    """Each label of a batch has its own alpha: shares of explored states, label by label, against single draws."""
    n, k, runs = 20, 6, 4000
    obs = {"labelled": np.zeros(n), "visitation": np.zeros(n), "predecessors": np.zeros(n)}
    obs["labelled"][0] = 0.1
    obs["visitation"][1:10], obs["predecessors"][10:] = np.arange(1, 10) / 45, np.arange(1, 11) / 55
    obs["visitation"][12], obs["predecessors"][3] = 0.2, 0.1
    info = {"action_mask": (np.arange(n) > 0).astype(np.int8), "initial": np.empty(0, int)}
    agent = agents.make("guided", decay="concave")
    counts = np.zeros((2, k, n))
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        counts[0, np.arange(k), agent.select_many(obs, info, k, rng)] += 1
        mask, labelled = info["action_mask"].copy(), obs["labelled"].copy()
        for i in range(k):
            state = agent.select({**obs, "labelled": labelled}, {**info, "action_mask": mask}, rng)
            counts[1, i, state] += 1
            mask[state], labelled[state] = 0, 0.5
    share = counts / runs
    error = np.sqrt((share[0] * (1 - share[0]) + share[1] * (1 - share[1])) / runs)
    assert (np.abs(share[0] - share[1]) <= 5 * error + 2e-3).all()


def test_guided_counts_labels_in_a_plain_loop():
    """Every step's own info says which labels were initial."""
    env = gym.make(selectenv.env_id("Tree"), budget=20, initial_ratio=0.3, dataset_size=2000)
    agent = agents.make("guided")
    obs, info = env.reset(seed=0)
    for _ in range(3):
        merged = info
        obs, _, _, _, info = env.step(agent.select(obs, info, np.random.default_rng(0)))
        np.testing.assert_array_equal(agent.weights(obs, info), agent.weights(obs, {**merged, **info}))


def test_terminal_proceeds_backwards_from_termination():
    problem = selectenv.make_problem("TwoRooms")
    steps = steps_to_termination(problem.dataset)
    assert problem.states[steps == 0].tolist() == [40, 49]
    x, y = problem.layout.positions.T
    right_room = x > 5
    np.testing.assert_array_equal(steps[right_room], (10 - x + 4 - y)[right_room] - 1)
    episode = agents.play(selectenv.RewardSelectionEnv(problem, 5), agents.make("terminal"))
    assert set(episode.ids[:2]) == {40, 49}
    assert episode.performance == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("world", "labels", "at_least"),
    [
        ("TwoRooms", 5, 1.0),
        ("TwoRoomsTrap", 4, 1.0),
        ("FrozenLake", 2, 0.74),
        ("Tree", 3, 15.5),
        ("CliffWalk", 3, -100),
    ],
)
def test_terminal_guided_at_the_smallest_budgets(world, labels, at_least):
    env = gym.make(selectenv.env_id(world), budget=labels)
    assert agents.play(env, agents.make("terminal-guided")).performance >= at_least - 1e-9


def test_adaptive_mixture_weighs_by_the_error_of_its_own_estimate():
    env = gym.make(selectenv.env_id("Graph"), budget=5, dataset_size=20_000)
    agent = agents.make("adaptive-mixture", scale=0.7)
    agent.train(env)
    obs, info = env.reset(seed=0)
    agent.begin(env.unwrapped.view())
    problem = env.unwrapped.problem
    obs, _, _, _, info = env.step(11)
    learned = problem.learn([11])
    true = problem.evaluator.evaluate(learned.policy, discount=0.99)
    w = np.exp(-abs(true - problem.dataset.start @ learned.values) / 0.7)
    visits = np.asarray(obs["visitation"], float)
    expected = w * (1 / visits) / (1 / visits).sum() + (1 - w) * visits
    np.testing.assert_allclose(agent.weights(obs, info), expected, rtol=1e-5)
    uniform = agents.make("adaptive-mixture", explore="uniform", exploit="on_policy_visitation")
    uniform.train(env)
    assert agents.play(env, uniform).asked == 5


def test_adaptive_mixture_is_refused_in_the_test_phase():
    env = gym.make(selectenv.env_id("Graph"), phase="test", budget=2, dataset_size=500)
    agent = agents.make("adaptive-mixture")
    agent.train(env)
    with pytest.raises(PhaseError, match="test phase"):
        agents.play(env, agent)


def test_adaptive_mixture_plays_only_the_environment_that_it_was_trained_on():
    env, other = (gym.make(selectenv.env_id("Graph"), budget=2, dataset_size=size) for size in (500, 600))
    agent = agents.make("adaptive-mixture")
    with pytest.raises(NotTrainedError, match=r"call agent\.train\(env\)"):
        agents.play(env, agent)
    agent.train(env)
    assert len(agents.play(env, agent).labels) == 2
    with pytest.raises(NotTrainedError, match=r"call agent\.train\(env\)"):
        agents.play(other, agent)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("guided", {"decay": "steep"}),
        ("guided", {"temperature": 0}),
        ("guided", {"temperature": float("inf")}),
        ("guided", {"fixtime": 1.5}),
        ("guided", {"exploit": "worst"}),
        ("terminal-guided", {"floor": 0}),
        ("adaptive-mixture", {"scale": 0}),
        ("adaptive-mixture", {"exploit": "x"}),
        ("adaptive-mixture", {"explore": "x"}),
    ],
)
def test_options_out_of_range(name, options):
    with pytest.raises(OptionError):
        agents.make(name, **options)


@pytest.mark.parametrize("name", [name for name in HEURISTICS if name != "adaptive-mixture"])
@pytest.mark.filterwarnings("ignore::selectenv.errors.LargeWorldWarning")
def test_large_problems_take_one_pass_per_batch(name):
    """100,000 states and 10,000 labels: k states in one pass, not k passes over all states."""
    n = 100_000
    numbers = np.arange(n)
    data = selectenv.from_arrays(
        numbers, numbers % 2, (numbers + 1) % n, numbers % 50 == 49, rewards=(numbers % 50 == 49) * 1.0
    )
    env = selectenv.make_env(dataset=data, budget=10_000, labels_per_refit=2500)
    episode = agents.play(env, agents.make(name))
    assert len(np.unique(episode.labels)) == 10_000
