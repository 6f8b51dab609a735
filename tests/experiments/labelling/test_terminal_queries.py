"""Queries as text, and what people type."""

import pytest

import selectenv
from experiments.labelling.query_texts import query_text
from experiments.labelling.terminal_queries import HELP, ask_in_terminal, parsed_answer
from selectenv import LabellingSession
from selectenv.errors import AnswerError
from tests.selectenv.labelling.teller import town


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("1.5", 1.5),
        (" -2 ", -2.0),
        ("1e3", 1000.0),
        ("1, 2", [1.0, 2.0]),
        ("east=1", {"east": 1.0}),
        ("open tray = -1 , a=b=2", {"open tray": -1.0, "a=b": 2.0}),
        ("left, then up=1, right=2", {"left, then up": 1.0, "right": 2.0}),
    ],
)
def test_typed_answers(typed, answer):
    assert parsed_answer(typed) == answer


@pytest.mark.parametrize("typed", ["one", "1 2", "east=", "east=1, 2", "east=1, east=2", "1,,2", "1:2", "nan", "=inf"])
def test_typed_nonsense_is_explained(typed):
    with pytest.raises(AnswerError, match="number"):
        parsed_answer(typed)


def test_a_query_as_text():
    session = LabellingSession(town(), "visitation", 3)
    texts = {query.id: query_text(session, query) for query in session.ask(3)}
    assert texts["home"].splitlines()[1:5] == [
        "  seen 3 times; what was done, and where it led:",
        "    0 (2 times) -> shop (2)",
        "    1 (once) -> road (1)",
        "  around it, in the log:",
    ]
    assert "    [home] -0-> shop -1-> end" in texts["home"]
    assert "1 (2 times) -> the episode ended (1); home (1)" in texts["shop"]
    assert "home -0-> [shop] -1-> home (recording stops)" in texts["shop"]
    assert texts["road"].startswith("Question ")


def test_states_of_several_columns_are_shown_by_their_entries():
    log = {"states": {"place": ["a, b", "c"], "load": ["x", "y"]}, "actions": ["go, fast", "stop"], "terminated": True}
    session = LabellingSession(selectenv.from_episodes([log]), "visitation", 2)
    texts = [query_text(session, query) for query in session.ask(2)]
    (first,) = (text for text in texts if "a, b" in text.splitlines()[0])
    assert 'place="a, b", load=x' in first.splitlines()[0]
    assert first.splitlines()[2:] == [
        "    go, fast (once) -> c · y (1)",
        "  around it, in the log:",
        "    [a, b · x] -go, fast-> c · y -stop-> end",
    ]


def test_control_characters_of_a_log_do_not_reach_the_terminal():
    log = {"states": ["\x1b[2Jhome\n", "b\u202e"], "actions": ["go\x07", "stop\x9b"], "terminated": True}
    session = LabellingSession(selectenv.from_episodes([log]), "visitation", 2)
    _, written = conversation(session, ["1", "u", "1", "1"])
    assert len(written) == 5, "four questions and what was undone"
    assert "the answer about \\x1b[2Jhome\\n is taken back" in written
    for text in written:
        assert all(line.isprintable() for line in text.split("\n"))
    assert "stop\\x9b" in written[0]
    assert "b\\u202e" in written[0]


def conversation(session, lines):
    """Type lines; return the number of answers, and what was written."""
    typed, written = iter(lines), []

    def read(prompt):
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    return ask_in_terminal(session, "ann", read=read, write=written.append), written


def test_a_conversation():
    session = LabellingSession(town(), "terminal", 3)
    told, written = conversation(session, ["u", "?", "", "moon", "1", "0=1, 1=2", "u", "s", "5", "q"])
    assert told == 2
    assert written[1] == "there is no answer to take back"
    assert written[2] == written[3] == HELP
    assert "'moon' is not a number" in written[4]
    answers = session.answers()
    assert [(given.id, given.answer, given.annotator) for given in answers] == [
        ("shop", 1.0, "ann"),
        ("road", 5.0, "ann"),
    ]
    assert session.handed_out() == [], "quitting gives the open question back"
    told, written = conversation(session, ["2, 3"])
    assert (told, session.status().done) == (1, True)
    assert "home" in written[0]
    assert conversation(session, [])[0] == 0


@pytest.mark.parametrize("typed", ["1", "s"])
def test_a_question_that_somebody_else_answers_is_left(typed):
    session = LabellingSession(town(), "terminal", 2)
    written, answered = [], []

    def read(prompt):
        if not answered:
            answered.append(session.handed_out()[0].id)
            session.release(answered[0], annotator="ann")  # the lease has ended
            session.tell(answered[0], 5, annotator="bob")
            return typed
        return "2"

    assert ask_in_terminal(session, "ann", read=read, write=written.append) == 1
    assert "somebody else has answered this question in the meantime" in written
    assert [(given.answer, given.annotator) for given in session.answers()] == [(5.0, "bob"), (2.0, "ann")]


def test_decimal_commas_are_refused():
    session = LabellingSession(town(), "terminal", 3)
    told, written = conversation(session, ["1,5", "-0,5", "1;5", "S", "1,5;2", "Q"])
    assert [line for line in written if "can be read in two ways" in line or "write it like 1.5" in line]
    assert sum("can be read in two ways: write a decimal point (1.5)" in line for line in written) == 2
    assert (told, [given.answer for given in session.answers()]) == (1, [[1.0, 5.0]])
    assert session.status().skipped == 1
    assert any("'1,5' is not a number; write it like 1.5" in line for line in written)


def test_answers_outside_the_range_can_be_corrected():
    session = LabellingSession(town(), "terminal", 1, reward_range=(0, 1))
    told, written = conversation(session, ["2", "1"])
    assert (told, session.answers()[0].answer) == (1, 1.0)
    assert any("2 is outside the range of the rewards of 'shop', 0 to 1" in line for line in written)


def test_names_of_actions_in_capitals_are_suggested():
    data = selectenv.from_episodes([{"states": ["a", "b"], "actions": ["south", "south"]}])
    _, written = conversation(LabellingSession(data, "terminal", 1), ["SOUTH=1", "south=1"])
    assert any("Did you mean 'south'?" in line for line in written)
