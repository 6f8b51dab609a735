"""Sessions about groups of vectors: the queries of the environment's episode, and what they show."""

import numpy as np
import pytest

import selectenv
from experiments.labelling.query_texts import query_text
from selectenv.errors import ObservationError
from selectenv.labelling.group_summary import BINS, MEMBERS
from selectenv.labelling.state_policy import StatePolicy
from tests.selectenv.labelling.teller import answer_all, episode
from tests.selectenv.labelling.test_same_queries import without_noise


@pytest.fixture(scope="module")
def problem():
    """CartPole whose rewards differ between groups, but not between equal transitions of a group."""
    made = selectenv.make_problem("CartPole", dataset_size=2_000, groups=15, rollouts=2, cache=False)
    return without_noise(made)


@pytest.mark.parametrize("name", ["uniform", "guided", "terminal-guided"])
def test_sessions_ask_about_the_groups_that_an_episode_labels(problem, name, tmp_path):
    bare = problem.dataset.without_rewards
    wanted = episode(problem, name, 5, 3)
    with selectenv.LabellingSession(bare, name, 5, tmp_path / "s.sqlite", seed=3) as session:
        before = answer_all(session, problem.dataset, budget=2)
    with selectenv.LabellingSession.open(tmp_path / "s.sqlite") as session:
        assert session.dataset.fingerprint == bare.fingerprint
        assert before + answer_all(session, problem.dataset) == wanted
        result = problem.learn(problem.actions(wanted))
        np.testing.assert_array_equal(session.policy().table, result.table)
        session.policy().save(tmp_path / "policy.npz")
        for policy in (session.policy(), StatePolicy.load(tmp_path / "policy.npz")):
            for vector in session.dataset.base.vectors[:9] + 0.01:
                group = int(session.dataset.locate(vector[None])[0])
                assert policy.probabilities(vector) == policy.probabilities(group)
                assert policy.action(vector.tolist()) == policy.action(group)
            with pytest.raises(ObservationError, match="vector of 4 numbers"):
                policy.action([0.0, 1.0])


def test_queries_show_the_columns_of_a_group(problem):
    data = problem.dataset.without_rewards
    session = selectenv.LabellingSession(data, "uniform", 3)
    query = session.ask()
    members = data.transitions_of(data.numbers([query.id]))
    vectors = data.base.vectors[data.base.state]
    assert [column.name for column in query.group.columns] == list(data.base.vectors.columns)
    for i, column in enumerate(query.group.columns):
        mine = vectors[members, i]
        assert (column.low, column.high) == (mine.min(), mine.max())
        assert column.middle == pytest.approx(np.median(mine))
        assert (column.data_low, column.data_high) == (vectors[:, i].min(), vectors[:, i].max())
        for bars in (column.bars, column.data_bars):
            assert len(bars) == BINS
            assert sum(bars) == pytest.approx(1)
    starts = np.flatnonzero(data.episode_start)
    assert 1 <= len(query.group.members) <= MEMBERS
    for member in query.group.members:
        t = starts[member.episode] + member.step
        assert t in members
        assert member.values == tuple(vectors[t].tolist())
    assert query.group.episodes == len(np.unique((np.cumsum(data.episode_start) - 1)[members]))
    assert "angle: " in query_text(session, query)


def test_queries_about_single_vectors_and_plain_states():
    data = selectenv.from_episodes([{"states": np.array([[0.5, 1], [2, 3]]), "actions": [0, 1]}])
    query = selectenv.LabellingSession(data, "uniform", 1).ask()
    assert query.group is None
    assert query.columns == dict(zip(("x0", "x1"), query.observation.tolist(), strict=True))
    tree = selectenv.make_problem("Tree", dataset_size=200, cache=False, groups=np.arange(31) // 2).dataset
    query = selectenv.LabellingSession(tree.without_rewards, "uniform", 1).ask()
    assert (query.group, query.columns) == (None, {})


def test_labels_on_episodes_give_a_policy_and_bounds_over_the_states_of_the_table(tmp_path):
    made = selectenv.make_problem("CartPole", dataset_size=400, groups="episode", rollouts=1, cache=False).dataset
    data, rng = made.without_rewards, np.random.default_rng(0)
    session = selectenv.LabellingSession(data, "uniform", 1.0, unseen="exclude")
    before = session.bounds(-1, 1)
    while query := session.ask():
        session.tell(query.id, rng.uniform(-1, 1, len(query.transitions)))
    policy, bounds = session.policy(), session.bounds()
    fit = session.problem.learner.inner.fit(data.cells, session.rewards)
    np.testing.assert_array_equal(policy.table, fit.table)
    np.testing.assert_array_equal(policy.values, fit.values)
    assert policy.ids.tolist() == data.cells.ids.tolist()
    assert (policy.labelled == data.cells.labelable).all()
    assert bounds.least == pytest.approx(float(data.cells.start @ fit.values))
    assert (bounds.regret, before.regret > 1) == (0, True)
    loaded = StatePolicy.load(policy.save(tmp_path / "policy.npz"))
    for vector in data.base.vectors[:9] + 0.01:
        assert loaded.action(vector) == policy.action(int(data.locate(vector[None])[0]))


def test_networks_that_learn_from_labelled_episodes_have_such_a_policy_too():
    walks = [{"states": np.random.default_rng(i).normal(size=(9, 2)), "actions": [0, 1] * 4} for i in range(4)]
    data = selectenv.group_states(selectenv.from_episodes(walks), "episode")
    session = selectenv.LabellingSession(data, "uniform", 2, learner="iql", updates=5)
    session.tell(session.ask().id, 1.0)
    policy, seen = session.policy(), data.cells.labelable
    fit = session.problem.learn(session.problem.revealable)
    asked = fit.policy.probabilities(data.cells.state.astype(np.int64), data.base.vectors[data.base.state])
    np.testing.assert_allclose(policy.table[seen], data.cells.means_by_state(asked)[seen], atol=1e-6)
    assert 0 < policy.table[seen, 0].sum() < seen.sum(), "the action depends on the vector"
    assert session.bounds(0, 1).regret > 0
