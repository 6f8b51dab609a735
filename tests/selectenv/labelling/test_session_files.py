"""The files of sessions: everything is resumed, other data are refused, damage is noticed."""

import json
import sqlite3

import numpy as np
import pytest

import agents
import selectenv
from selectenv.errors import (
    ClosedError,
    SessionError,
    SessionFileError,
    SessionFileRemovedError,
)
from selectenv.labelling import label_store, session_files, stored_dataset
from tests.damage import attempt, damaged_copies
from tests.selectenv.labelling.teller import Stranger, answer_all, answer_with, town

LabellingSession = selectenv.LabellingSession


@pytest.fixture(scope="module")
def tree():
    return selectenv.make_problem("Tree", dataset_size=3_000, cache=False)


def test_sessions_are_resumed_with_everything(tmp_path, tree):
    path, bare = tmp_path / "labels.sqlite", tree.dataset.without_rewards
    options = {"learner": "adapted", "gamma": 0.9, "answers_per_query": 1, "lease": 5.0}
    with LabellingSession(bare, agents.make("guided", decay="convex"), 0.2, path, 7, **options) as session:
        answer_all(session, tree.dataset, budget=3)
        session.skip(session.ask().id)
        session.set_reward_range(-100, 100)
        before = session.status(), session.curve(), session.labels(), session.policy().table
    with pytest.raises(ClosedError, match="open it again"):
        session.ask()
    assert "closed" in repr(session)
    for reopen in (
        lambda: LabellingSession.open(path),
        lambda: LabellingSession.open(str(path), dataset=bare, strategy=agents.make("guided", decay="convex")),
        lambda: LabellingSession(bare, agents.make("guided", decay="convex"), 0.2, path, 7, **options),
    ):
        with reopen() as session:
            assert (session.status(), session.curve(), session.labels()) == before[:3]
            np.testing.assert_array_equal(session.policy().table, before[3])
            assert (session.budget, session.strategy.decay, session.problem.learner.gamma) == (6, "convex", 0.9)
            assert session.problem.learner.rule == "adapted"
            assert session.dataset.fingerprint == bare.fingerprint
            assert session.reward_range == ([-100.0], [100.0])


def test_another_dataset_or_other_settings_are_refused_by_name(tmp_path, tree):
    path, bare = tmp_path / "labels.sqlite", tree.dataset.without_rewards
    LabellingSession(bare, "guided", 5, path, learner="uds").close()
    with pytest.raises(SessionError, match="is a session of another dataset: 3,000 transitions, 31 states"):
        LabellingSession(town(), "guided", 3, path)
    with pytest.raises(SessionError, match="another dataset"):
        LabellingSession.open(path, dataset=town())
    for wrong, what in (
        ({"budget": 6}, "budget=5, not 6"),
        ({"seed": 1}, "seed=0, not 1"),
        ({"strategy": "uniform"}, "strategy='guided', not 'uniform'"),
        ({"strategy": agents.make("guided", decay="convex")}, "strategy option decay=None, not 'convex'"),
        ({"gamma": 0.5}, "gamma=None, not 0.5"),
        ({"answers_per_query": 2}, "answers_per_query"),
    ):
        with pytest.raises(SessionError, match=what):
            LabellingSession(**{"dataset": bare, "strategy": "guided", "budget": 5, "path": path, **wrong})
    with pytest.raises(SessionError, match="strategy 'guided'"):
        LabellingSession.open(path, strategy="uniform")
    with pytest.raises(SessionError, match="learner 'uds'"):
        LabellingSession.open(path, learner="adapted")
    LabellingSession.open(path, learner="uds").close()


def test_strategies_and_learners_that_are_not_registered_must_be_passed_again(tmp_path):
    path = tmp_path / "labels.sqlite"
    LabellingSession(town(), Stranger(), 2, path).close()
    with pytest.raises(SessionError, match="strategy 'stranger', which no installed package registers: pass it again"):
        LabellingSession.open(path)
    LabellingSession.open(path, strategy=Stranger()).close()
    for number, name in enumerate(("tests.selectenv.labelling.teller:Stranger", "model.zip")):
        other = tmp_path / f"{number}.sqlite"
        agent = Stranger()
        agent.name = name
        LabellingSession(town(), agent, 2, other).close()
        with pytest.raises(SessionError, match=r"pass it again \(strategy=, or --strategy"):
            LabellingSession.open(other)
        LabellingSession.open(other, strategy=agent).close()
    learner = "tests.selectenv.labelling.test_session_files:ZeroLearner"
    last = tmp_path / "learner.sqlite"
    LabellingSession(town(), "uniform", 2, last, learner=learner).close()
    with pytest.raises(SessionError, match=r"pass this again \(learner=, or --learner"):
        LabellingSession.open(last)
    LabellingSession.open(last, learner=learner).close()


class ZeroLearner:
    """A learner of somebody's own: it always takes action 0."""

    def fit(self, dataset, rewards):
        table = np.zeros((dataset.n_states, dataset.n_actions))
        table[:, 0] = 1
        return selectenv.TablePolicy(table)


def test_large_datasets_are_kept_beside_the_file(tmp_path, monkeypatch, tree):
    monkeypatch.setattr(stored_dataset, "EMBEDDED_BYTES", 1000)
    path, bare = tmp_path / "labels.sqlite", tree.dataset.without_rewards
    LabellingSession(bare, "guided", 5, path).close()
    (beside,) = tmp_path.glob("labels.sqlite.*.dataset.npz")
    with LabellingSession.open(path) as session:
        assert session.dataset.fingerprint == bare.fingerprint
    selectenv.datasets.save(town(), beside)
    with pytest.raises(SessionError, match="holds another dataset"):
        LabellingSession.open(path)
    beside.unlink()
    with pytest.raises(SessionError, match="keeps its dataset in"):
        LabellingSession.open(path)
    LabellingSession.open(path, dataset=bare).close()


def test_sessions_that_are_made_at_the_same_time_keep_their_data(tmp_path, monkeypatch, tree):
    """Another process makes a session of other data, or of the same ones, just before this one does."""
    monkeypatch.setattr(stored_dataset, "EMBEDDED_BYTES", 10)
    path, bare = tmp_path / "labels.sqlite", tree.dataset.without_rewards
    create = session_files.create

    def create_second(*arguments):
        monkeypatch.setattr(session_files, "create", create)
        LabellingSession(town(), "guided", 2, path).close()
        return create(*arguments)

    def fail_second(*arguments):
        create_second(*arguments)
        raise SessionFileError("the disk is full")

    monkeypatch.setattr(session_files, "create", create_second)
    with pytest.raises(SessionError, match="is a session of another dataset"):
        LabellingSession(bare, "guided", 5, path)
    LabellingSession.open(path).close()
    path.unlink()
    monkeypatch.setattr(session_files, "create", fail_second)
    with pytest.raises(SessionFileError, match="full"):
        LabellingSession(town(), "guided", 2, path)
    LabellingSession.open(path).close()


def test_file_systems_without_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError("hard links are not supported")

    monkeypatch.setattr(label_store.os, "link", refuse)
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "guided", 2, path) as session:
        answer_with(session, 1)
    monkeypatch.setattr(session_files.os.path, "exists", lambda _: False)  # as it was when another process looked
    with LabellingSession(town(), "guided", 2, path) as session:
        assert len(session.answers()) == 2, "the session of the other process is not replaced"
    assert list(tmp_path.iterdir()) == [path]


class Shy(Stranger):
    """A strategy that cannot begin."""

    def begin(self, view):
        raise selectenv.errors.StrategyError("not with these data")


@pytest.mark.parametrize("large", [False, True])
def test_a_session_that_cannot_be_made_leaves_nothing_behind(tmp_path, monkeypatch, large):
    if large:
        monkeypatch.setattr(stored_dataset, "EMBEDDED_BYTES", 10)
    path = tmp_path / "labels.sqlite"
    for wrong in (
        {"reward_range": (10, -20)},
        {"reward_range": (0, float("inf"))},
        {"reward_range": 3},
        {"reward_range": ([0, 0], [1, 1])},
        {"strategy": Shy()},
        {"gamma": 2},
    ):
        with pytest.raises(selectenv.errors.SelectEnvError):
            LabellingSession(**{"dataset": town(), "strategy": "uniform", "budget": 2, "path": path, **wrong})
    monkeypatch.setattr(label_store, "SCHEMA", "CREATE TABLE session (")
    with pytest.raises(SessionFileError, match="cannot be written"):
        LabellingSession(town(), "uniform", 2, path)
    assert list(tmp_path.iterdir()) == []


def test_files_are_durable_and_marked(tmp_path):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "guided", 2, path) as session:
        session.tell(session.ask().id, 1)
        pragma = session._store._database.execute
        assert pragma("PRAGMA journal_mode").fetchone() == ("wal",)
        assert pragma("PRAGMA synchronous").fetchone() == (2,)
        assert pragma("PRAGMA user_version").fetchone() == (label_store.FORMAT,)
    for what, statement in (
        ("format version 9", "PRAGMA user_version = 9"),
        ("not a labelling session", "PRAGMA application_id = 9"),
    ):
        copy = tmp_path / "copy.sqlite"
        copy.write_bytes(path.read_bytes())
        database = sqlite3.connect(copy)
        database.execute(statement)
        database.close()
        with pytest.raises(SessionFileError, match=what):
            LabellingSession.open(copy)
    with pytest.raises(SessionFileError, match="there is no session file"):
        LabellingSession.open(tmp_path / "none.sqlite")
    (tmp_path / "text").write_text("not a database, but long enough to look at " * 30)
    with pytest.raises(SessionFileError, match="cannot be used"):
        LabellingSession.open(tmp_path / "text")


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE answers SET rewards = '[5.0, 5.0]' WHERE number = 1", "answers \\[1\\] do not match"),
        ("UPDATE answers SET annotator = 'eve' WHERE number = 2", "answers \\[2\\] do not match"),
        ("DELETE FROM answers WHERE number = 1", "answers are missing"),
        ("UPDATE queries SET state = 7 WHERE number = 2", "answers \\[2\\] do not match"),
        ("DELETE FROM queries WHERE number = 1", "answers \\[1\\] do not match"),
        ("DELETE FROM queries WHERE number = 3", "answers \\[3\\] do not match"),
        ("UPDATE session SET settings = '{}'", "settings do not match"),
        ("UPDATE session SET dataset = x'00'", "dataset cannot be read"),
        ("DROP TABLE leases", "tables"),
    ],
)
def test_changes_from_outside_are_noticed(tmp_path, statement, what):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "guided", 3, path) as session:
        answer_with(session, 1)
    database = sqlite3.connect(path)
    with database:
        database.execute(statement)
    database.close()
    with pytest.raises(SessionFileError, match=what):
        LabellingSession.open(path)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE choices SET passed_on = replace(passed_on, 'PCG64', 'PCG65')", "choice 2 does not match"),
        ("DELETE FROM queries WHERE number = 1", "queries are missing"),
    ],
)
def test_changes_that_would_lead_to_other_queries_are_noticed(tmp_path, statement, what):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "guided", 3, path) as session:
        session.ask()
        session.ask()
    database = sqlite3.connect(path)
    with database:
        database.execute(statement)
    database.close()
    with pytest.raises(SessionFileError, match=what), LabellingSession.open(path) as session:
        session.ask(3)


def test_damaged_files_are_named_and_never_give_other_answers(tmp_path):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "guided", 3, path) as session:
        answer_with(session, 0.25)
        answers, rewards = session.answers(), session.rewards
    copy = tmp_path / "copy.sqlite"
    for content in damaged_copies(path.read_bytes(), sample=24):
        copy.write_bytes(content)

        def use():
            with LabellingSession.open(copy) as session:
                return session.answers(), session.rewards

        found = attempt(use, SessionFileError, copy)
        if found is not None:
            assert found[0] == answers
            np.testing.assert_array_equal(found[1], rewards)


def test_the_file_holds_plain_json(tmp_path):
    """What a person told can be read without this package."""
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "visitation", 1, path) as session:
        session.tell(session.ask().id, {1: 2}, annotator="ann")
    database = sqlite3.connect(path)
    ((annotator, given, rewards),) = database.execute("SELECT annotator, given, rewards FROM answers").fetchall()
    database.close()
    assert (annotator, json.loads(given), json.loads(rewards)) == ("ann", {"1": 2.0}, [2.0, 2.0])


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_or_replaced_while_it_is_open_is_noticed(tmp_path, replaced):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "terminal", 3, path) as session:
        query = session.ask()
        path.unlink()
        if replaced:
            LabellingSession(town(), "terminal", 3, path).close()
        with pytest.raises(SessionFileRemovedError, match="was removed or replaced"):
            session.tell(query.id, 1)
        assert session.answers() == []
    assert path.exists() == replaced


def test_a_directory_is_not_a_session(tmp_path):
    with pytest.raises(SessionFileError, match="is a directory, not the file of a session"):
        LabellingSession.open(tmp_path)
