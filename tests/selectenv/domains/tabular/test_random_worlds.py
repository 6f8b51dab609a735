"""Random worlds: sound, of the right size, never a published one; padded ones play like themselves."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import agents
import selectenv
from selectenv.domains.tabular import random_worlds
from selectenv.domains.tabular.random_worlds import KINDS, pad, random_world
from selectenv.errors import BudgetError, OptionError, UnknownNameError, WorldError
from selectenv.policies import TablePolicy, UniformPolicy
from selectenv.random_problems import RandomProblems

seeds = st.integers(0, 100_000)


@given(seeds, st.sampled_from(sorted(KINDS)))
@settings(max_examples=80)
def test_worlds_are_sound(seed, kind):
    world = random_world(np.random.default_rng(seed), kind)
    assert world.name == kind
    assert 8 <= world.n_states <= 100
    assert len(world.layout.positions) == world.n_states
    total = np.bincount(world.state * world.n_actions + world.action, world.probability)
    np.testing.assert_allclose(total, 1)
    assert world.start.sum() == pytest.approx(1)
    assert np.isfinite(world.best_return())
    assert world.best_return() >= world.worst_return()
    again = random_world(np.random.default_rng(seed), kind)
    assert again.fingerprint == world.fingerprint


def test_worlds_differ_in_what_matters():
    rng = np.random.default_rng(0)
    worlds = [random_world(rng) for _ in range(300)]
    assert {world.name for world in worlds} == set(KINDS)
    assert len({world.fingerprint for world in worlds}) == 300
    assert min(world.n_states for world in worlds) < 12
    assert max(world.n_states for world in worlds) > 80
    rewards = [world.reward for world in worlds]
    assert any((reward >= 0).all() for reward in rewards)
    assert any((reward <= 0).all() for reward in rewards)
    shares = np.array([np.mean(reward != 0) for reward in rewards])
    assert (shares < 0.2).sum() > 20
    assert (shares > 0.9).sum() > 20
    certain = np.array([np.all(world.probability == 1) for world in worlds])
    assert 0.1 < certain.mean() < 0.9


def test_published_worlds_are_never_drawn(monkeypatch):
    rng = np.random.default_rng(0)
    for row in selectenv.TABULAR.values():
        known = row.make()
        order = rng.permutation(known.n_states)  # the same world by other numbers, with other rewards and chances
        numbers = np.append(order, -1)
        rows = np.lexsort((known.action, order[known.state]))  # outcomes stay sorted by state and action
        other = replace(
            known,
            state=order[known.state][rows],
            action=known.action[rows],
            probability=known.probability[rows],
            next_state=numbers[known.next_state][rows],
            start=known.start[np.argsort(order)],
            reward=-known.reward[rows],
        )
        assert random_worlds.shape_of(other) == random_worlds.shape_of(known) in random_worlds._published()
        assert random_worlds.is_published(known)
    shapes = {random_worlds.shape_of(random_world(rng)) for _ in range(100)}
    assert len(shapes) > 90
    known = selectenv.TABULAR["Tree"].make()
    other = random_world(np.random.default_rng(0), "grid")
    drawn = iter([known, other])
    monkeypatch.setitem(KINDS, "tree", lambda rng, n: next(drawn))
    assert random_world(np.random.default_rng(0), "tree") is other


@given(seeds)
@settings(max_examples=25)
def test_padding_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    world = random_world(rng, largest=60)
    padded = pad(world, 64)
    assert padded.n_states == 64
    assert len(np.unique(padded.ids)) == 64
    options = {"dataset_size": 1_500, "cache": False, "expert": "optimal"}
    small = selectenv.make_problem(world, **options)
    data = selectenv.from_arrays(
        padded.ids[small.dataset.state],
        small.dataset.action,
        padded.ids[small.dataset.next_state],
        small.dataset.terminated,
        small.dataset.hidden_reward,
        truncated=small.dataset.truncated,
        world=padded,
    )
    large = selectenv.make_problem(padded, dataset=data)
    masks = rng.random((5, world.n_states)) < 0.5
    wide = np.concatenate([masks, rng.random((5, 64 - world.n_states)) < 0.5], axis=1)
    np.testing.assert_allclose(large.performance_many(wide), small.performance_many(masks), atol=1e-9)
    assert not large.dataset.labelable[world.n_states :].any()
    uniform = UniformPolicy(world.n_actions)
    assert large.evaluator.evaluate(uniform) == pytest.approx(small.evaluator.evaluate(uniform))
    tables = [TablePolicy(np.full((n, world.n_actions), 1 / world.n_actions)) for n in (64, world.n_states)]
    assert large.evaluator.evaluate(tables[0]) == pytest.approx(small.evaluator.evaluate(tables[1]))


def test_worlds_that_do_not_fit():
    world = selectenv.TABULAR["TwoRooms"].make()
    with pytest.raises(WorldError, match="50 states and cannot be padded to 40"):
        pad(world, 40)
    assert pad(world, 50).n_states == 50
    with pytest.raises(OptionError, match="must not exceed padding"):
        RandomProblems(padding=40, largest=50)
    with pytest.raises(UnknownNameError, match="Did you mean 'grid'"):
        RandomProblems(kinds=("gird",))
    with pytest.raises(OptionError):
        RandomProblems(kinds=())
    with pytest.raises(WorldError):
        random_world(np.random.default_rng(0), smallest=4)


def test_a_new_world_every_episode():
    env = gym.make("RewardSelection-Random-v0", budget=(0.2, 0.8))
    base = env.unwrapped
    worlds, budgets, seen = set(), set(), set()
    for seed in range(12):
        _, info = env.reset(seed=seed)
        problem = base.problem
        world = problem.evaluator.engine.world
        assert info["action_mask"].sum() == problem.budget_states == problem.dataset.labelable.sum()
        assert 1 <= base.budget <= problem.budget_states
        assert info["budget"] == base.budget
        worlds.add(world.fingerprint)
        budgets.add(base.budget)
        seen.add(world.name)
    assert len(worlds) == 12
    assert len(budgets) > 4
    assert len(seen) > 2
    first = agents.play(env, agents.make("uniform"), seed=3)
    again = agents.play(env, agents.make("uniform"), seed=3)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.performance == again.performance


def test_small_worlds_take_what_fits():
    env = gym.make("RewardSelection-Random-v0", budget=20).unwrapped
    mixed = gym.make("RewardSelection-Random-v0", budget=(0.2, 0.6), initial_ratio=0.3).unwrapped
    budgets = []
    for seed in range(20):
        env.reset(seed=seed)
        budgets.append(env.budget)
        assert env.budget == min(20, env.problem.budget_states)
        _, info = mixed.reset(seed=seed)
        assert len(info["initial"]) == min(int(0.3 * mixed.problem.budget_states + 1e-9), mixed.budget - 1)
    assert min(budgets) < max(budgets) == 20
    with pytest.raises(BudgetError):
        gym.make("RewardSelection-Random-v0", budget=101)


def test_the_random_environment_keeps_the_contract():
    for learner in ("uds", "adapted"):
        env = gym.make("RewardSelection-Random-v0", learner=learner, padding=40, reward_mode="marginal")
        check_env(env.unwrapped)
        sb3_check_env(env.unwrapped)
    assert env.action_space.n == 40


def test_labels_matter_in_drawn_problems():
    source = RandomProblems(padding=50)
    rng = np.random.default_rng(1)
    for _ in range(20):
        problem = source(rng)
        assert problem.performance(problem.dataset.labelable) > problem.performance([])
        assert problem.evaluator.calls == 2  # what drawing looked at is not counted


@pytest.mark.parametrize("budget", [(0.5, 0.2), (0.0, 0.5), (0.1, 1.5), (0.1,), (1, 2)])
def test_pairs_of_budgets_must_be_shares(budget):
    with pytest.raises(BudgetError, match=r"a \(low, high\) pair"):
        gym.make("RewardSelection-Tree-v0", budget=budget)


def test_a_pair_of_shares_in_a_world_of_ones_own():
    env = gym.make("RewardSelection-Tree-v0", budget=(0.1, 0.9), dataset_size=2_000)
    budgets = [env.reset(seed=seed)[1]["budget"] for seed in range(20)]
    assert min(budgets) < 10
    assert max(budgets) > 20
    assert budgets == [env.reset(seed=seed)[1]["budget"] for seed in range(20)]


def test_the_smallest_grids_have_room():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        world = KINDS["grid"](rng, 8)  # walls, goals and dangers may not take every cell
        assert np.isclose(world.start.sum(), 1.0)
