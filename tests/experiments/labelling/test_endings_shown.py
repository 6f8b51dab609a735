"""Endings of episodes on the page, in the terminal, in tables of questions and in Label Studio's tasks."""

import csv
import json

import pandas as pd
import pytest

import selectenv
from experiments.labelling import label_studio
from experiments.labelling.label_imports import import_labels
from experiments.labelling.label_tables import labels_csv, questions_csv
from experiments.labelling.query_texts import query_text
from tests.experiments.labelling.served_page import served, words

ROWS = [
    ("desk", "admit", "bed", 0),
    ("bed", "treat", "died", 1),
    ("desk", "admit", "bed", 0),
    ("bed", "treat", "desk", 1),
    ("desk", "admit", "bed", 0),
    ("bed", "treat", "desk", 0),
    ("desk", "admit", "hall", 0),
]


@pytest.fixture
def session():
    frame = pd.DataFrame(ROWS, columns=["place", "act", "n", "end"])
    data = selectenv.from_dataframe(frame, state="place", action="act", next_state="n", terminated="end")
    with selectenv.LabellingSession(data, "visitation", 2) as made:
        made.ask(2)
        yield made


def test_text(session):
    text = query_text(session, session.query("bed"))
    assert "-> the episode ended at 'desk' (1); the episode ended at 'died' (1); desk (1)" in text
    assert "desk -admit-> [bed] -treat-> end at 'died'" in text
    text = query_text(session, session.query("desk"))
    assert "-> hall, for which the log has no action (1); bed (3)" in text
    assert "[desk] -admit-> (recording stops at 'hall')" in text
    (task, _) = json.loads(label_studio.tasks(session, [session.query("bed"), session.query("desk")]))
    assert "the episode ended at 'died'" in task["data"]["text"]


def test_page(session):
    with served(session) as page:
        said = words(page.get(f"state/{session.dataset.numbers(['bed'])[0]}")[2])
    assert "→ the episode ended at 'died' 33%" in said
    assert "end at 'died'" in said


def test_tables_tell_endings_apart_and_are_read_again(session, tmp_path):
    rows = list(csv.DictReader(questions_csv([session.query("bed")]).splitlines()))
    assert [(row["next_state"], row["ended"]) for row in rows] == [("desk", "1"), ("died", "1"), ("desk", "0")]
    for row, reward in zip(rows, (1, -10, 0), strict=True):
        row["reward"] = reward
    path = tmp_path / "questions.csv"
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert import_labels(session, path).told == 1
    assert session.labels()[0].transitions == (1.0, -10.0, 0.0)
    path.write_text(labels_csv(session))
    assert import_labels(session, path)[:3] == (0, 1, 0)


def test_a_table_of_ones_own_names_endings(session, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("state,action,next_state,reward\nbed,treat,died,-10\nbed,treat,desk,1\n")
    assert import_labels(session, path).told == 1
    assert session.labels()[0].transitions == (1.0, -10.0, 1.0)
