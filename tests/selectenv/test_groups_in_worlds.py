"""Groups in tabular worlds: one group per state changes nothing, and larger groups follow from the definitions."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import selectenv
from selectenv.errors import OptionError
from selectenv.learners.registry import make_learner
from selectenv.policies import PolicyList, TablePolicy

FREE = [name for name, row in agents.AGENTS.items() if row.kind.taxonomy.evaluator == "never"]


@pytest.mark.parametrize("world", list(selectenv.TABULAR))
@settings(max_examples=8)
@given(
    seed=st.integers(0, 1000),
    options=st.fixed_dictionaries(
        {},
        optional={
            "learner": st.sampled_from(["uds", "adapted"]),
            "reward_mode": st.sampled_from(["final", "marginal"]),
            "solver": st.sampled_from(["exact", "exact", "sampled"]),
            "unseen": st.sampled_from(["zero", "exclude"]),
            "initial_ratio": st.sampled_from([0.0, 0.1]),
        },
    ),
    strategy=st.sampled_from(FREE),
)
def test_one_group_per_state_gives_identical_episodes(world, seed, options, strategy):
    options = {"dataset_size": 800, "cache": False, "budget": 0.3, **options}
    states = selectenv.make_env(world, **options)
    groups = selectenv.make_env(world, groups=states.problem.states, **options)
    assert groups.problem.dataset.groups is not None
    one, other = ([], [])
    for env, played in ((states, one), (groups, other)):
        agent = agents.make(strategy)
        observation, info = env.reset(seed=seed)
        agent.begin(env.view())
        rng, over = np.random.default_rng(seed), False
        while not over:
            action = agent.select(observation, info, rng)
            observation, reward, over, _, info = env.step(action)
            played.append((action, reward, {name: part.tobytes() for name, part in observation.items()}, str(info)))
    assert one == other


@settings(max_examples=20)
@given(
    seed=st.integers(0, 1000), rule=st.sampled_from(["uds", "adapted"]), world=st.sampled_from(["Tree", "FrozenLake"])
)
def test_a_table_over_groups_acts_alike_within_a_group(seed, rule, world):
    rng = np.random.default_rng(seed)
    plain = selectenv.make_problem(world, dataset_size=2_000, cache=False, learner=rule)
    own = rng.integers(5, size=plain.n_states)
    problem = selectenv.make_problem(world, dataset=plain.dataset, groups=own, learner=rule)
    labels = rng.random(problem.n_states) < 0.5
    table = problem.learn(labels).table[np.searchsorted(np.unique(own), own)]
    expected = plain.evaluator.returns(PolicyList([TablePolicy(table)]))[0]
    assert problem.performance(labels) == pytest.approx(expected, abs=1e-9)
    masks = rng.random((5, problem.n_states)) < 0.5
    np.testing.assert_allclose(
        problem.performance_many(masks), [problem.performance(mask) for mask in masks], atol=1e-9
    )


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), rule=st.sampled_from(["uds", "adapted"]))
def test_labels_on_episodes_reveal_their_transitions(seed, rule):
    """A table learns from the transitions of labelled episodes as if they were all that is known, or all there is."""
    rng = np.random.default_rng(seed)
    plain = selectenv.make_problem("FrozenLake", dataset_size=600, dataset_seed=seed, cache=False, learner=rule)
    problem = selectenv.make_problem("FrozenLake", dataset=plain.dataset, groups="episode", learner=rule)
    data = plain.dataset
    assert problem.n_states == data.episode_start.sum()
    labels = rng.random(problem.n_states) < 0.4
    known = labels[np.cumsum(data.episode_start) - 1]
    if rule == "uds":
        table = make_learner("uds").fit(data, np.where(known, data.hidden_reward, 0.0)).table
    else:
        kept = (
            selectenv.from_arrays(
                data.ids[data.state][known],
                data.action[known],
                np.where(data.next_state >= 0, data.ids[data.next_state], -1)[known],
                data.terminated[known],
                data.hidden_reward[known],
                world=selectenv.TABULAR["FrozenLake"].make(),
            )
            if known.any()
            else None
        )
        table = data.action_frequencies.copy()
        if kept is not None:
            found = make_learner("adapted").fit(kept, kept.hidden_reward).table
            table[kept.labelable] = found[kept.labelable]
    np.testing.assert_allclose(problem.learn(labels).policy.table, table, atol=1e-12)
    expected = plain.evaluator.returns(PolicyList([TablePolicy(table)]))[0]
    assert problem.performance(labels) == pytest.approx(expected, abs=1e-9)


def test_all_episodes_labelled_is_all_states_labelled():
    plain = selectenv.make_problem("Tree", dataset_size=2_000, cache=False)
    episodes = selectenv.make_problem("Tree", dataset=plain.dataset, groups="episode")
    assert episodes.performance(np.ones(episodes.n_states, bool)) == pytest.approx(
        plain.performance(np.ones(plain.n_states, bool)), abs=1e-12
    )
    env = selectenv.make_env("Tree", dataset=plain.dataset, groups="episode", budget=3)
    episode = agents.play(env, agents.make("visitation"), seed=0)
    assert len(episode.labels) == 3


def test_groups_are_an_option_of_gymnasium_and_of_vector_environments():
    own = np.arange(31) // 4
    env = gym.make("RewardSelection-Tree-v0", groups=own, budget=2, dataset_size=500)
    assert env.action_space.n == 8
    assert env.reset(seed=0)[1]["states"].tolist() == list(range(8))
    vector = gym.make_vec(
        "RewardSelection-Tree-v0",
        num_envs=3,
        vectorization_mode="vector_entry_point",
        groups=own,
        budget=2,
        dataset_size=500,
    )
    vector.reset(seed=0)
    *_, info = vector.step(np.array([1, 2, 3]))
    assert info["action_mask"].shape == (3, 8)


def test_groups_that_do_not_fit_the_data():
    with pytest.raises(OptionError, match="one per state"):
        selectenv.make_problem("Tree", groups=np.arange(30), dataset_size=100, cache=False)
    with pytest.raises(OptionError, match="these states have none"):
        selectenv.make_problem("Tree", groups=5, dataset_size=100, cache=False)


@pytest.mark.parametrize("solver", [{"solver": "exact"}, {"solver": "sampled", "passes": 1}])
def test_imputing_the_smallest_reward_of_the_data_in_episodes(solver):
    plain = selectenv.make_problem("CliffWalk", dataset_size=2_000)
    smallest = plain.dataset.smallest_reward
    named, number = (
        selectenv.make_problem("CliffWalk", dataset=plain.dataset, groups="episode", impute=impute, **solver)
        for impute in ("dataset-min", smallest)
    )
    assert smallest == -100
    for labels in ([], [0, 1], range(named.n_states)):
        np.testing.assert_array_equal(named.learn(labels).values, number.learn(labels).values)
        assert named.performance(labels) == number.performance(labels)


def test_single_states_are_cached_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SELECTENV_CACHE", str(tmp_path))
    for _ in range(2):
        selectenv.make_problem("CartPole", dataset_size=200, groups="state", rollouts=1)
    assert len(list(tmp_path.iterdir())) == 1
