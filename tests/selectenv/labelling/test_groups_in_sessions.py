"""Sessions about groups of vectors: the queries of the environment's episode, and what they show."""

import numpy as np
import pytest

import selectenv
from experiments.labelling.query_texts import query_text
from selectenv.errors import ObservationError, UnknownNameError, UnknownStateError, WeightsFileError
from selectenv.io.weights import load_weights, save_weights
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


@pytest.mark.parametrize("learner", ["iql", "iql-adapted", "bc", "bc-greedy"])
@pytest.mark.parametrize("groups", [15, "episode", "state"])
def test_networks_act_on_vectors_themselves(problem, learner, groups, tmp_path):
    data = selectenv.group_states(problem.dataset, groups)
    options = {"learner": learner, "updates": 30, "learner_runs": 2}
    session = selectenv.LabellingSession(data.without_rewards, "uniform", 4, **options)
    nothing = session.policy()
    answer_all(session, data)
    policy = session.policy()
    other = selectenv.make_problem(dataset=data, groups=groups, **options)
    fit = other.learn(other.actions(session.asked()))
    some = data.base.vectors[:20] + np.float32(0.02)
    runs = [run.probabilities(data.locate(some).astype(np.int64), some) for run in fit.runs]
    for one in (policy, StatePolicy.load(policy.save(tmp_path / "policy.npz"))):
        found = np.array([list(one.probabilities(vector).values()) for vector in some])
        np.testing.assert_allclose(found, np.mean(runs, axis=0), atol=1e-12)
        named = dict(zip(data.base.vectors.columns, some[0].tolist(), strict=True))
        assert one.probabilities(named) == one.probabilities(some[0])
        np.testing.assert_array_equal(one.table, fit.over_cells().table)
        with pytest.raises(ObservationError, match="vector of 4 numbers"):
            one.action([0.0, 1.0])
    assert len(nothing.probabilities(some[0])) == 2


def test_own_groups_of_vectors_take_vectors(problem, tmp_path):
    names = np.where(problem.dataset.base.vectors.values[:, 2] > 0, "right", "left")
    data = selectenv.group_states(problem.dataset, names).without_rewards
    session = selectenv.LabellingSession(data, "uniform", 2)
    session.tell(session.ask().id, 1.0)
    policy = session.policy()
    for one in (policy, StatePolicy.load(policy.save(tmp_path / "policy.npz"))):
        for vector, name in zip(data.base.vectors[:30], names[:30], strict=True):
            assert one.probabilities(vector) == one.probabilities(str(name))
    with pytest.raises(UnknownStateError, match="lacks a value for the column 'velocity'"):
        policy.action({"position": 0.0, "angle": 0.0, "angular velocity": 0.0})
    with pytest.raises(UnknownNameError, match="Did you mean 'angle'"):
        policy.action({"position": 0.0, "angl": 0.0, "velocity": 0.0, "angular velocity": 0.0})


def test_tables_over_single_vectors_say_when_vectors_can_be_given(problem):
    session = selectenv.LabellingSession(problem.dataset.base, "uniform", 1)
    with pytest.raises(UnknownStateError, match="takes vectors if the states of its session are groups"):
        session.policy().action([0.0, 0.0, 0.0, 0.0])


def test_files_with_incomplete_networks(problem, tmp_path):
    session = selectenv.LabellingSession(problem.dataset.without_rewards, "uniform", 1, learner="bc", updates=5)
    path = session.policy().save(tmp_path / "policy.npz")
    arrays, card = load_weights(path)
    kept = {name: array for name, array in arrays.items() if not name.endswith("second_bias")}
    save_weights(path, kept, card)
    with pytest.raises(WeightsFileError, match="its networks are incomplete"):
        selectenv.load_policy(path)
