"""Answers from CSV files."""

import csv

import numpy as np
import pytest

import selectenv
from experiments.errors import LabelsFileError
from experiments.labelling.label_files import read_labels
from experiments.labelling.label_imports import ImportResult, import_labels
from experiments.labelling.label_tables import TABLES, labels_csv, questions_csv
from selectenv import LabellingSession
from selectenv.errors import OptionError
from tests.selectenv.labelling.teller import answer_all, answer_with, town


@pytest.fixture
def labels(tmp_path):
    def write(text):
        path = tmp_path / "labels.csv"
        path.write_text(text)
        return path

    return write


def test_rows_hold_for_states_actions_and_transitions(labels):
    session = LabellingSession(town(), "terminal", 3)
    path = labels(
        "note,state,action,next_state,reward\n,road,,,7\n,home,0,,1\n,home,1,,2\n,shop,1,,-1\n,shop,1,home,3\n,shop,,,\n"
    )
    assert read_labels(session, path) == {"road": 7.0, "home": [1.0, 2.0], "shop": [-1.0, 3.0]}
    assert import_labels(session, path, "ann") == ImportResult(told=3, known=0)
    np.testing.assert_array_equal(session.rewards, [1, -1, 2, 7, 1, 3])
    assert {given.annotator for given in session.answers()} == {"ann"}
    assert import_labels(session, path, "ann") == ImportResult(told=0, known=3)


def test_labels_are_used_as_far_as_the_strategy_asks(labels):
    session = LabellingSession(town(), "terminal", 2)
    waiting = session.ask(annotator="bob")
    assert waiting.id == "shop"
    path = labels("state,reward\nhome,1\nroad,2\n")
    assert import_labels(session, path) == ImportResult(told=1, known=0, unasked=1)
    assert [given.id for given in session.answers()] == ["home"]
    session = LabellingSession(town(), "terminal", 3)
    path = labels("state,reward\nroad,2\nshop,1\n")
    assert import_labels(session, path) == ImportResult(told=2, known=0)
    assert session.handed_out() == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "needs a header"),
        ("state,value\nhome,1\n", "columns state and reward"),
        ("state,reward\nhome,high\n", "row 2: 'high' is not a number"),
        ("state,reward\nhome,nan\n", "row 2: 'nan' is not a finite number"),
        ("state,reward\nroad,1\n\nhome,1\nhome,2\n", "row 5: row 4 has another reward"),
        ("state,action,reward\nroad,,1\nhome,0,1\n", "row 3: the state 'home' .* none for the action 1"),
        (
            "state,action,reward\nhome,0,1\nhome,1,1\nhome,5,1\n",
            "row 4: unknown action '5' in .*; allowed: 0, 1",
        ),
        ("state,action,reward\nhome,0,1\nhome,1,1\nhome,,1\n", "row 4: the state 'home' also has rewards per action"),
        ("state,reward\nroad,1\nhoem,1\n", "row 3: there is no state with id 'hoem'.* Did you mean 'home'"),
        ("state,reward\na street, at night,1\n", "row 2: it has 3 fields, and the header 2; .* needs quotes"),
        ("state,reward,reward\nhome,1,2\n", "columns state and reward"),
        ('state,reward\n"home,1\n', "cannot be read"),
        ("state,reward\nhome\xff,1", "is not text in UTF-8: save it again"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, text, what):
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode("latin-1"))
    session = LabellingSession(town(), "terminal", 3)
    with pytest.raises(LabelsFileError, match=what):
        import_labels(session, path)
    assert session.answers() == []


def test_missing_files_are_named(tmp_path):
    with pytest.raises(LabelsFileError, match="cannot be read"):
        import_labels(LabellingSession(town(), "terminal", 3), tmp_path / "none.csv")


def test_spreadsheets_of_other_countries_are_read(labels):
    session = LabellingSession(town(), "terminal", 3)
    path = labels("\ufeffstate; reward;note\nshop;1;\nhome;2\n")
    assert read_labels(session, path) == {"shop": 1.0, "home": 2.0}


def test_answers_that_differ_are_counted_and_stay(labels):
    session = LabellingSession(town(), "terminal", 3)
    assert import_labels(session, labels("state,reward\nshop,1\nhome,2\nroad,3\n")).told == 3
    again = labels("state,action,next_state,reward\nshop,1,,1\nhome,0,,2\nhome,1,,5\nroad,,,3\n")
    for annotator in ("", "ann"):
        assert import_labels(session, again, annotator) == ImportResult(told=0, known=3, differing=1)
    assert [given.answer for given in session.answers()] == [1.0, 2.0, 3.0]


def test_exported_labels_and_questions_are_read_again(labels, tree):
    session = LabellingSession(tree.dataset.without_rewards, "terminal-guided", 6)
    answer_all(session, tree.dataset)
    again = LabellingSession(tree.dataset.without_rewards, "terminal-guided", 6)
    result = import_labels(again, labels(labels_csv(session)))
    assert result == ImportResult(told=6, known=0)
    np.testing.assert_array_equal(again.rewards, session.rewards)
    third = LabellingSession(tree.dataset.without_rewards, "guided", 6)
    rows = list(csv.DictReader(questions_csv(third.ask(4, annotator="export", keep=True)).splitlines()))
    filled = "\n".join(
        ["state,action,next_state,reward", *(f"{r['state']},{r['action']},{r['next_state']},2" for r in rows)]
    )
    assert import_labels(third, labels(filled)).told == 4


@pytest.mark.parametrize("number", ["99", "9" * 20, "9" * 5_000, "-" + "9" * 20, "1.0"])
def test_numbers_that_are_not_states_are_named(labels, tree, number):
    session = LabellingSession(tree.dataset.without_rewards, "terminal", 3)
    with pytest.raises(LabelsFileError, match="row 2: there is no state with id"):
        import_labels(session, labels(f"state,reward\n{number},1\n"))


def test_spaces_around_names_of_actions_and_states_are_kept_and_read_again(labels):
    log = {"states": ["a", " b ", "a"], "actions": [" go ", "stop"], "terminated": False}
    session = LabellingSession(selectenv.from_episodes([log]), "terminal", 2)
    filled = questions_csv(session.ask(2, annotator="export", keep=True)).replace(",\r\n", ",4\r\n")
    assert import_labels(session, labels(filled)).told == 2
    again = LabellingSession(selectenv.from_episodes([log]), "terminal", 2)
    assert import_labels(again, labels(labels_csv(session))).told == 2


@pytest.fixture(scope="module")
def tree():
    return selectenv.make_problem("Tree", dataset_size=2_000, cache=False)


def test_tables_of_a_session():
    session = LabellingSession(town(), "terminal", 2)
    answer_with(session, 1)
    with pytest.raises(OptionError, match="range"):
        TABLES["curve.csv"](session)
    session.bounds(0, 1)
    read = {name: list(csv.DictReader(text(session).splitlines())) for name, text in TABLES.items()}
    assert [row["state"] for row in read["labels.csv"]] == ["shop", "shop", "home", "home"]
    assert len(read["policy.csv"]) == 6
    assert [row["labels"] for row in read["curve.csv"]] == ["0", "1", "2"]


@pytest.mark.parametrize("text", ["state,reward\n", "state,action,next_state,times,ended,reward\nhome,0,shop,2,0,\n"])
def test_tables_without_a_reward_are_refused(labels, text):
    with pytest.raises(LabelsFileError, match="no reward is filled in"):
        import_labels(LabellingSession(town(), "visitation", 3), labels(text))


def test_tables_in_utf_16_are_read(labels, tmp_path):
    path = tmp_path / "wide.csv"
    path.write_bytes("state,reward\nhome,0.5\n".encode("utf-16"))
    assert import_labels(LabellingSession(town(), "visitation", 3), path).told == 1
