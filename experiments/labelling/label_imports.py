"""Import of labels and annotations from files into a session."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from experiments.errors import LabelsFileError
from experiments.labelling.label_files import known_id, read_labels
from experiments.labelling.label_studio import ANNOTATOR, is_label_studio, read_annotations
from selectenv import LabellingSession
from selectenv.errors import QueryError, UnknownStateError


class ImportResult(NamedTuple):
    """How many labels of a file were used, and why the others were not."""

    told: int
    """Answers that are new."""
    known: int
    """Answers to queries that were already answered."""
    unasked: int = 0
    """Labels of states that the strategy has not asked about."""
    skipped: int = 0
    """Tasks that annotators skipped."""


def import_labels(session: LabellingSession, path: Path, annotator: str = "") -> ImportResult:
    """Tell a session the answers of a file: a CSV file of labels, or annotations that Label Studio exported as JSON.

    Args:
        session: the session.
        path: the file.
        annotator: who answered a CSV file; annotations have annotators of their own.

    Raises:
        LabelsFileError: the file cannot be read, or belongs to another session.
        SelectEnvError: an answer cannot be used.
    """
    return _import_annotations(session, path) if is_label_studio(path) else _import_csv(session, path, annotator)


def _import_csv(session: LabellingSession, path: Path, annotator: str) -> ImportResult:
    """Tell the answers to queries that wait for one, then to those that the strategy asks next."""
    answers = read_labels(session, path)
    known = {given.id for given in session.answers() if given.annotator == annotator}
    known |= {label.id for label in session.labels()}
    before = len(answers.keys() & known)

    def tell_those_asked() -> int:
        waiting = {state: one for state, one in answers.items() if state not in known and _is_asked(session, state)}
        session.tell_many(waiting, annotator=annotator)
        known.update(waiting)
        return len(waiting)

    told = tell_those_asked()
    while query := session.ask(annotator=annotator):
        if query.id not in answers:
            session.release(query.id, annotator=annotator)
        new = tell_those_asked()
        told += new
        if not new:
            break
    return ImportResult(told, before, len(answers) - told - before)


def _is_asked(session: LabellingSession, state: Any) -> bool:
    try:
        session.query(state)
    except QueryError:
        return False
    return True


def _import_annotations(session: LabellingSession, path: Path) -> ImportResult:
    """Tell the annotations of tasks, all those of an annotator or none."""
    found = []
    for one in read_annotations(path):
        try:
            found.append((session.query(known_id(session, one.state)).id, one.annotator, one.reward))
        except (UnknownStateError, QueryError) as error:
            raise LabelsFileError(f"{str(path)!r} belongs to another session: {error}") from None
    needed, given = session.settings.answers_per_query, session.answers()
    present, counts = {(one.id, one.annotator) for one in given}, Counter(one.id for one in given)
    told: dict[str, dict[Any, float]] = defaultdict(dict)
    for state, annotator, reward in found:
        if reward is not None and (state, annotator) not in present and counts[state] < needed:
            told[annotator][state] = reward
            present.add((state, annotator))
            counts[state] += 1
    for annotator, answers in told.items():
        session.tell_many(answers, annotator=annotator)
    for state, _, reward in found:
        if reward is None and counts[state] < needed:
            session.skip(state, annotator=ANNOTATOR)
    new, skipped = sum(map(len, told.values())), sum(reward is None for _, _, reward in found)
    return ImportResult(new, len(found) - new - skipped, skipped=skipped)
