"""Features of the data's behaviour: what they mean, and that they follow the learner without seeing hidden rewards."""

import numpy as np
import pytest

import selectenv
from agents.learned.behaviour_features import DYNAMIC, STATIC, LabelEffects, behaviour_of
from agents.learned.feature_context import FeatureContext
from agents.learned.state_features import ALL_NAMES
from selectenv.kernels.tabular.followed_policy import in_pairs, label_effects, policy_values
from selectenv.kernels.tabular.single import learn_one
from selectenv.random_problems import RandomProblems


def columns_after(env, labels, seed=0):
    obs, info = env.reset(seed=seed)
    context = FeatureContext.of(env.view(), (), ALL_NAMES)
    for label in labels:
        obs, _, _, _, news = env.step(label)
        info |= news
    return dict(zip(ALL_NAMES, context.features(obs, info).T, strict=True))


def by_id(env, column, state):
    return column[env.problem.dataset.numbers([state])[0]]


def transitions(data, policy):
    """[n, n] of a policy [n, actions] in the empirical model."""
    model = data.empirical_model()
    out = np.zeros((data.n_states, data.n_states))
    for s in range(data.n_states):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                out[s, model.next_state[k]] += policy[s, model.action[choice]] * model.probability[k]
    return out


@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_features_are_finite_and_of_moderate_size(learner):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        env = selectenv.RewardSelectionEnv(RandomProblems(padding=40, learner=learner)(rng), 0.5)
        labels = rng.permutation(np.flatnonzero(env.problem.dataset.labelable))[: env.budget - 1]
        columns = columns_after(env, labels)
        unseen = ~env.problem.dataset.labelable
        for name in (*STATIC, *DYNAMIC):
            assert np.abs(columns[name]).max() <= 1 + 1e-6, name
            assert (columns[name][unseen] == 0).all()


def test_the_goal_of_frozen_lake_is_sought_and_holes_are_not():
    env = selectenv.make_env("FrozenLake", budget=4)
    columns = columns_after(env, [])
    sought = columns["sought termination"]
    assert sought.argmax() == env.problem.dataset.numbers([14])[0]  # beside the goal
    assert sought.min() < 0
    towards = columns["towards sought termination"]
    assert by_id(env, towards, 14) > by_id(env, towards, 10) > by_id(env, towards, 0) > 0


def test_random_data_favour_nothing():
    data = {
        share: selectenv.make_problem("TwoRooms", expert_share=share, mixture="all").dataset for share in (0.0, 0.8)
    }
    decided = {share: behaviour_of(one).columns["decided"].mean() for share, one in data.items()}
    assert decided[0.0] < 0.1 < 0.4 < decided[0.8]


def test_agreement_follows_the_labels():
    env = selectenv.make_env("Graph", budget=4)
    before = columns_after(env, [])
    after = columns_after(env, [13])
    assert by_id(env, before["agreement"], 11) == pytest.approx(0.5)  # a tie between both actions
    assert by_id(env, after["agreement"], 11) == 1
    assert by_id(env, after["missing share"], 13) < by_id(env, before["missing share"], 13)
    assert by_id(env, after["next value"], 11) > 0


def test_estimated_gains_find_the_state_before_the_goal():
    env = selectenv.make_env("TwoRooms", budget=4, learner="adapted")
    columns = columns_after(env, [49])
    best = int(columns["estimated gain"].argmax())
    after = {s: env.problem.score(env.problem.actions([49, s])) for s in (best, 0)}
    assert env.problem.dataset.ids[best] in (39, 48)  # above and left of it
    assert after[best] > env.problem.score(env.problem.actions([49])) > after[0] - 1e-9


def test_values_of_a_policy():
    data = selectenv.make_problem("FrozenLake", dataset_size=5_000).dataset
    model, rng = data.empirical_model(), np.random.default_rng(0)
    reward = rng.normal(size=len(model.action))
    policy = rng.dirichlet(np.ones(data.n_actions), data.n_states)
    expected = np.zeros(data.n_states)
    for s in range(data.n_states):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            expected[s] += policy[s, model.action[choice]] * reward[choice]
    wanted = np.linalg.solve(np.eye(data.n_states) - 0.9 * transitions(data, policy), expected)
    np.testing.assert_allclose(policy_values(model, reward, policy, 0.9, 1_000), wanted, atol=1e-6)


def test_effects_by_hand():
    """State 0 leads to 1 (action 0) or 2 (action 1); the data prefer 0, the learner values 2."""
    state, action, after = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 1, 0, 0]), np.array([1, 1, 2, 1, 2])
    ends = np.array([False, False, False, True, True])
    data = selectenv.from_arrays(state, action, after, ends, n_actions=2)
    model = data.empirical_model()
    behaviour, favoured = data.action_frequencies, behaviour_of(data).favoured
    assert favoured[0].tolist() == [1.0, 0.0]
    learned = np.array([0.0, 0.0, 10.0])
    out = [np.zeros(3) for _ in range(5)]
    label_effects(
        model,
        np.zeros(len(model.action)),
        behaviour,
        favoured,
        np.array([1.0, 0.0, 0.0]),
        behaviour,
        learned,
        learned,
        0.5,
        *out,
    )
    gain, reached, favoured_reached, agreement, missing = out
    assert gain[0] == pytest.approx(5.0 - 5.0 / 3)  # action 1 instead of one third of it
    assert reached[0] == pytest.approx(5.0)
    assert favoured_reached[0] == 0
    assert agreement[0] == pytest.approx(2 / 3)
    assert missing.tolist() == pytest.approx([0.0, 1 / 3, 0.0])


@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_the_learner_is_the_one_of_the_environment(learner):
    env = selectenv.make_env("CliffWalk", budget=6, learner=learner, dataset_size=20_000)
    env.reset(seed=0)
    labels = [30, 35, 24, 11]
    for label in labels:
        env.step(label)
    effects, data = LabelEffects(env.view()), env.problem.dataset
    mask = np.isin(np.arange(data.n_states), labels)
    effects.columns(mask, np.ones(data.n_states))
    model = data.empirical_model()
    fitted = model._replace(reward=in_pairs(model, effects._known, effects._rewards, 0.0))
    values, _, policy = learn_one(fitted, mask, 0.99, 0.0, learner == "adapted", data.action_frequencies)
    wanted = env.problem.learner.fit(data, data.reveal(mask))
    np.testing.assert_allclose(values, wanted.values, atol=1e-9)
    np.testing.assert_allclose(policy, wanted.table, atol=1e-9)
