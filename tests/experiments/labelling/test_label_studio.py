"""Tasks for Label Studio, and the annotations that it exports."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from experiments.errors import LabelsFileError
from experiments.labelling.label_imports import ImportResult, import_labels
from experiments.labelling.label_studio import ANNOTATOR, configuration, tasks
from selectenv import LabellingSession
from tests.selectenv.labelling.teller import town


def annotated(task, *annotations):
    """Return a task as Label Studio exports it: annotations are a user and a value, or None if it was skipped."""
    found = [
        {
            "id": 100 + i,
            "completed_by": user,
            "was_cancelled": value is None,
            "ground_truth": False,
            "lead_time": 4.2,
            "result": []
            if value is None
            else [{"id": "x", "from_name": "reward", "to_name": "state", "type": "number", "value": {"number": value}}],
        }
        for i, (user, value) in enumerate(annotations)
    ]
    return {"id": 7, "inner_id": 1, "project": 3, "annotations": found, "predictions": [], **task}


def export(session, count):
    queries = session.ask(count, annotator=ANNOTATOR, keep=True)
    return json.loads(tasks(session, queries))


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "annotations.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_tasks_are_in_the_order_of_the_strategy_and_annotations_are_answers(write):
    session = LabellingSession(town(), "terminal", 3)
    found = export(session, 2)
    assert [task["data"]["state_id"] for task in found] == ["shop", "home"]
    assert [task["data"]["order"] for task in found] == [1, 2]
    assert "seen 2 times" in found[0]["data"]["text"]
    content = [annotated(found[0], (5, 1.5)), annotated(found[1], ({"id": 6, "email": "ann@example.org"}, -1))]
    assert import_labels(session, write(content)) == ImportResult(told=2, known=0)
    assert {given.id: (given.annotator, given.answer) for given in session.answers()} == {
        "shop": ("5", 1.5),
        "home": ("ann@example.org", -1.0),
    }
    assert session.handed_out() == []
    assert import_labels(session, write(content)) == ImportResult(told=0, known=2)
    content[0]["annotations"][0]["result"][0]["value"]["number"] = 7
    assert import_labels(session, write(content)) == ImportResult(told=0, known=2, differing=1)
    assert [task["data"]["state_id"] for task in export(session, 5)] == ["road"]


def test_the_next_batch_is_chosen_with_what_was_learned(write):
    """A closed-loop strategy asks for the same states as when it is told directly."""
    data = town()
    direct = LabellingSession(data, "guided", 3, seed=2)
    asked, rewards = [], {"home": 0.0, "shop": 5.0, "road": 1.0}
    while query := direct.ask():
        asked.append(query.id)
        direct.tell(query.id, rewards[query.id])
    session, seen = LabellingSession(data, "guided", 3, seed=2), []
    while batch := export(session, 1):
        seen += [task["data"]["state_id"] for task in batch]
        import_labels(session, write([annotated(task, (1, rewards[task["data"]["state_id"]])) for task in batch]))
    assert seen == asked


def test_several_annotators(write):
    session = LabellingSession(town(), "terminal", 2, answers_per_query=2)
    first, second = export(session, 2)
    content = [annotated(first, (1, 1), (2, 3), (3, 100)), annotated(second, (1, 1), (1, 2))]
    assert import_labels(session, write(content)) == ImportResult(told=3, known=1, differing=2, surplus=1)
    assert import_labels(session, write([annotated(first, (4, 3))])) == ImportResult(told=0, known=0, surplus=1)
    (label,) = session.labels()
    assert (label.id, label.spread, set(label.rewards.values())) == ("shop", 2.0, {2.0})
    assert [one.id for one in session.handed_out()] == ["home"], "one answer is missing"


def test_skipped_tasks_come_back_last(write):
    session = LabellingSession(town(), "terminal", 2)
    first, second = export(session, 2)
    result = import_labels(session, write([annotated(first, (1, None)), annotated(second)]))
    assert result == ImportResult(told=0, known=0, skipped=1)
    assert session.status().skipped == 1
    assert [one.id for one in session.handed_out()] == ["home"]


def test_the_short_form_and_other_fields(write):
    session = LabellingSession(town(), "terminal", 3)
    first, second, third = export(session, 3)
    short = {"id": 1, "state_id": "shop", "text": "...", "reward": 2, "annotator": 1, "annotation_id": 3}
    choice = annotated(second, (1, 0))
    choice["annotations"][0]["result"][0]["value"] = {"choices": ["-1.5"]}
    rating = annotated(third, (1, 0))
    rating["annotations"][0]["result"][0]["value"] = {"rating": 4}
    assert first["data"]["state_id"] == "shop"
    assert import_labels(session, write([short, choice, rating])).told == 3
    np.testing.assert_array_equal(session.rewards, [-1.5, 2, -1.5, 4, -1.5, 2])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "cannot be read"),
        ("{}", "list of tasks"),
        ("[1]", "task 1: 1 is not a task"),
        ([{"data": {"text": "x"}, "annotations": []}], "task 1: its data have no 'state_id'"),
        ([{"data": {"state_id": "shop"}}], "task 1 is not a task with annotations"),
        ([{"data": {"state_id": "shop"}, "annotations": [3]}], "not an annotation"),
        (
            [{"data": {"state_id": "moon"}, "annotations": [{"result": [], "was_cancelled": True}]}],
            "task 1 belongs to another session",
        ),
        ([{"data": {"state_id": "road"}, "annotations": [{"result": [], "was_cancelled": True}]}], "another session"),
        ([annotated({"data": {"state_id": "shop"}}, (1, "high"))], "task 1: 'high' is not a number"),
        ([annotated({"data": {"state_id": "shop"}}, (1, [1, 2]))], "has 2"),
        ('[{"state_id": "shop", "annotator": 1, "reward": NaN}]', "finite"),
        ("[" * 100_000, "cannot be read"),
    ],
    ids=range(12),
)
def test_other_files_are_named_and_change_nothing(write, content, what):
    session = LabellingSession(town(), "terminal", 2)
    session.ask(2)
    with pytest.raises(LabelsFileError, match=what):
        import_labels(session, write(content))
    assert session.answers() == []


def test_the_labelling_interface_is_xml_with_one_number():
    for limits, attributes in ((None, {}), ((-1.0, 2.5), {"min": "-1", "max": "2.5"})):
        view = ElementTree.fromstring(configuration(limits))
        (number,) = view.findall("Number")
        assert number.attrib["toName"] == view.find("Text").attrib["name"]
        assert {key: number.attrib.get(key) for key in attributes} == attributes
        assert view.find("Text").attrib["value"] == "$text"


def test_exports_without_annotations_are_refused(write):
    session = LabellingSession(town(), "terminal", 2)
    for content in ([], [annotated(task) for task in export(session, 2)]):
        with pytest.raises(LabelsFileError, match="no task has an annotation"):
            import_labels(session, write(content))
