"""Label Studio's JSON: queries as tasks, and annotations as answers.

See https://labelstud.io/guide/task_format for the format. A task's data hold the text that annotators read, and the
state's id as text; the labelling interface has one Number field, for the reward of the whole state.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from experiments.errors import LabelsFileError
from experiments.labelling.query_texts import query_text
from experiments.labelling.typed_numbers import typed_number
from selectenv.checks import is_real, shown
from selectenv.errors import AnswerError
from selectenv.labelling.queries import Query
from selectenv.session import LabellingSession

ANNOTATOR = "label-studio"
"""Name to which exported tasks are leased."""
STATE = "state_id"
"""Key of a task's data that holds the id of the state."""


class Annotation(NamedTuple):
    """One annotation of one task."""

    state: str
    """Id of the state, as text."""
    annotator: str
    reward: float | None
    """None if the annotator skipped the task."""
    where: str
    """The task, for error messages."""


def configuration(limits: tuple[float, float] | None) -> str:
    """Return the labelling interface of a project.

    Args:
        limits: smallest and largest reward, if they are known.
    """
    ends = "" if limits is None else f' min="{limits[0]:g}" max="{limits[1]:g}"'
    return f"""<View>
  <Header value="What is the reward of acting in this state?"/>
  <Text name="state" value="$text"/>
  <Number name="reward" toName="state" required="true" step="0.01"{ends}/>
</View>
"""


def tasks(session: LabellingSession, queries: Iterable[Query]) -> str:
    """Return queries as the JSON that Label Studio imports, in their order."""
    found = [
        {
            "data": {
                STATE: str(query.id),  # JSON readers may round large integers
                "text": query_text(session, query),
                "order": query.number,
                **{f"column_{name}": value for name, value in query.columns.items()},
            }
        }
        for query in queries
    ]
    return json.dumps(found, indent=1, ensure_ascii=False)


def is_label_studio(path: Path) -> bool:
    """Return whether the name of a file ends in .json."""
    return path.suffix.lower() == ".json"


def read_annotations(path: Path) -> list[Annotation]:
    """Return the annotations of a file that Label Studio exported as JSON or JSON-MIN, in the order of the file.

    Raises:
        LabelsFileError: the file cannot be read or is not such an export; the message names the task.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise LabelsFileError(f"{str(path)!r} cannot be read: {error}") from None
    if not isinstance(content, list):
        raise LabelsFileError(f"{str(path)!r} is not an export of Label Studio: it must be a list of tasks")
    found = []
    for number, task in enumerate(content, 1):
        where = f"{str(path)!r}, task {number}"
        if not isinstance(task, dict):
            raise LabelsFileError(f"{where}: {shown(task)} is not a task")
        found += _annotations(task, where)
    if not found:
        raise LabelsFileError(f"{str(path)!r}: no task has an annotation")
    return found


def _annotations(task: dict[str, Any], where: str) -> list[Annotation]:
    data, annotations = task.get("data", task), task.get("annotations")
    if not isinstance(data, dict) or not isinstance(data.get(STATE), str | int):
        raise LabelsFileError(f"{where}: its data have no {STATE!r}; was it exported by `selectenv label export`?")
    state = str(data[STATE])
    if isinstance(annotations, list):
        return [_annotation(state, one, where) for one in annotations]
    if "annotator" in task:  # JSON-MIN has one annotation per entry, with its results by name
        reward = task.get("reward")
        return [Annotation(state, _name(task["annotator"]), None if reward is None else _number(reward, where), where)]
    raise LabelsFileError(f"{where} is not a task with annotations, as Label Studio exports it")


def _annotation(state: str, given: Any, where: str) -> Annotation:
    if not isinstance(given, dict) or not isinstance(given.get("result"), list):
        raise LabelsFileError(f"{where}: {shown(given)} is not an annotation")
    annotator = _name(given.get("completed_by"))
    if given.get("was_cancelled") is True:
        return Annotation(state, annotator, None, where)
    values = [one["value"] for one in given["result"] if isinstance(one, dict) and isinstance(one.get("value"), dict)]
    numbers = [number for value in values for number in _values(value)]
    if len(numbers) != 1:
        raise LabelsFileError(f"{where}: an annotation needs one number, the reward, and has {len(numbers)}")
    return Annotation(state, annotator, _number(numbers[0], where), where)


def _values(value: dict[str, Any]) -> list[Any]:
    """Return what a result of a Number, Rating, Choices or TextArea field holds."""
    for name in ("number", "rating", "choices", "text"):
        if name in value:
            return value[name] if isinstance(value[name], list) else [value[name]]
    return []


def _number(value: Any, where: str) -> float:
    try:
        return float(value) if is_real(value) else typed_number(str(value))
    except AnswerError as error:
        raise LabelsFileError(f"{where}: {error}") from None


def _name(completed_by: Any) -> str:
    """Return the name of an annotator: an email address, or the number of a user."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return ANNOTATOR if completed_by is None else str(completed_by)[:100]
