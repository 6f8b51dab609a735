"""Leases of queries: until when, for whom, and what ends them; threads, and processes that were forked."""

import threading

import numpy as np
import pytest

import selectenv
from selectenv.errors import ClosedError, QueryError
from tests.selectenv.labelling.teller import town

LabellingSession = selectenv.LabellingSession


@pytest.fixture
def clock(monkeypatch):
    """Let a test move the time on."""

    class Clock:
        now = 1000.0

        def time(self):
            return self.now

    made = Clock()
    monkeypatch.setattr("selectenv.session.time", made)
    monkeypatch.setattr("selectenv.labelling.label_store.time", made)
    return made


def test_leases_end(clock):
    session = LabellingSession(town(), "terminal", 3, lease=60)
    first = session.ask(annotator="ann")
    assert first.leased_until == clock.now + 60
    assert [(h.id, h.annotator, h.until) for h in session.handed_out()] == [(first.id, "ann", 1060)]
    second = session.ask(annotator="bob", lease=1000)
    assert len({first.id, second.id}) == 2
    third = session.ask()
    assert session.ask() is None
    assert session.ask(annotator="ann") is None
    clock.now += 61
    assert session.status().handed_out == 1
    assert session.ask(annotator="carl").id == first.id
    assert [query.id for query in session.ask(5)] == [third.id]
    with pytest.raises(QueryError, match="handed out to 'carl': only they can answer"):
        session.tell(first.id, 1, annotator="ann")  # late, and somebody else is working on it
    session.tell(first.id, 2, annotator="carl")
    with pytest.raises(QueryError, match="answered already by 'carl'"):
        session.tell(first.id, 1, annotator="ann")
    clock.now += 601
    session.tell(second.id, 1, annotator="bob")  # late, but nobody else is working on it
    session.release(third.id)
    assert session.ask().id == third.id


def test_threads_share_a_session():
    data = selectenv.from_arrays(np.arange(60), np.zeros(60, int), np.arange(1, 61), np.arange(60) == 59)
    session, told = LabellingSession(data, "visitation-on-policy", 40), []

    def work():
        while query := session.ask():
            session.tell(query.id, 1)
            told.append(query.id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == len(set(told)) == 40


def test_a_query_is_handed_out_again_to_whom_it_belongs(clock):
    session = LabellingSession(town(), "terminal", 2, lease=60)
    query = session.ask(annotator="ada")
    clock.now += 50
    assert session.hand_out(query.id, annotator="ada").leased_until == clock.now + 60
    clock.now += 50
    with pytest.raises(QueryError, match="others are working on it"):
        session.hand_out(query.id, annotator="bea")
    assert [one.annotator for one in session.handed_out()] == ["ada"]
    clock.now += 20
    assert session.hand_out(query.id, annotator="bea").annotator == "bea"
    session.skip(query.id, annotator="bea")
    assert session.hand_out(query.id, annotator="ada").id == query.id
    session.tell(query.id, 1, annotator="ada")
    with pytest.raises(QueryError, match="answered already"):
        session.hand_out(query.id, annotator="ada")
    assert session.undo(annotator="ada") == query.id
    assert session.hand_out(query.id, annotator="ada").annotator == "ada"


def test_a_query_for_two_people_is_handed_out_again_to_two():
    session = LabellingSession(town(), "terminal", 1, answers_per_query=2)
    query = session.ask(annotator="ada")
    assert session.hand_out(query.id, annotator="bea").id == query.id
    with pytest.raises(QueryError, match="others are working on it"):
        session.hand_out(query.id, annotator="cleo")
    session.tell(query.id, 1, annotator="ada")
    with pytest.raises(QueryError, match="answered already"):
        session.hand_out(query.id, annotator="ada")


def test_the_last_answer_ends_every_lease_of_its_query():
    session = LabellingSession(town(), "terminal", 1, answers_per_query=2)
    query = session.ask(annotator="ann")
    session.ask(annotator="bob")
    with pytest.raises(QueryError, match="handed out to 'ann' and 'bob'"):
        session.tell(query.id, 1, annotator="carl")
    session.release(query.id, annotator="bob")
    session.tell(query.id, 1, annotator="carl")
    assert [one.annotator for one in session.handed_out()] == ["ann"], "one answer is missing"
    session.tell(query.id, 1, annotator="ann")
    session.retract(query.id)
    assert session.handed_out() == []
    assert session.ask(annotator="dora").id == query.id


def test_whoever_asked_without_a_name_can_answer_with_one(tmp_path):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "terminal", 3, path) as session, LabellingSession.open(path) as other:
        for query, who in ((session.ask(), ""), (session.ask(), "ann")):
            with pytest.raises(QueryError, match="handed out to somebody without a name"):
                other.tell(query.id, 1, annotator="bob")
            session.tell(query.id, 1, annotator=who)
        kept = session.ask(annotator="tasks", keep=True)
        other.tell(kept.id, 1, annotator="bob")  # exported questions are answered by whoever annotates them


def test_only_whoever_has_a_query_can_give_it_back():
    session = LabellingSession(town(), "terminal", 2)
    query = session.ask(annotator="ann")
    with pytest.raises(QueryError, match="handed out to 'ann', not to 'bob'"):
        session.release(query.id, annotator="bob")
    session.release(query.id, annotator="ann")
    session.release(query.id, annotator="bob")  # nobody has it
    assert session.handed_out() == []


def test_queries_that_others_get_meanwhile_are_listed_the_next_time(tmp_path, monkeypatch):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "guided", 3, path) as session, LabellingSession.open(path) as other:
        catch_up = session._log.catch_up

        def catch_up_while_the_other_asks():
            found = catch_up()
            other.ask()
            return found

        monkeypatch.setattr(session._log, "catch_up", catch_up_while_the_other_asks)
        assert session.handed_out() == []
        assert len(session.handed_out()) == 1


def test_nobody_else_can_ask_while_a_query_is_handed_out(tmp_path, monkeypatch):
    """Finding a query and leasing it is one transaction, which others wait for."""
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "terminal", 2, path) as session, LabellingSession.open(path) as other:
        session.ask(2)
        session.release("shop")
        session.release("home")
        available, asked = session._queue.available, []
        thread = threading.Thread(target=lambda: asked.append(other.ask().id))

        def available_while_the_other_asks(*arguments):
            found = available(*arguments)
            thread.start()
            thread.join(0.3)  # it waits until this transaction ends
            return found

        monkeypatch.setattr(session._queue, "available", available_while_the_other_asks)
        assert session.ask().id == "shop"
        thread.join()
        assert asked == ["home"]


def test_a_forked_process_must_open_the_session_itself(tmp_path, monkeypatch):
    """It shares the connection to the file, which SQLite forbids, and must not give back what it did not hand out."""
    with LabellingSession(town(), "guided", 3, tmp_path / "labels.sqlite") as session:
        session.ask()
        with monkeypatch.context() as child:
            child.setattr("os.getpid", lambda: 1)
            with pytest.raises(ClosedError, match="belongs to another process"):
                session.ask()
            session.close()
        assert len(session.handed_out()) == 1
