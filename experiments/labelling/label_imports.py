"""Import of labels and annotations from files into a session."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.errors import LabelsFileError
from experiments.labelling.label_files import actions_of, known_id, read_labels
from experiments.labelling.label_studio import ANNOTATOR, is_label_studio, read_annotations
from selectenv import LabellingSession
from selectenv.errors import UnknownStateError
from selectenv.labelling.answers import rewards_of


class ImportResult(NamedTuple):
    """How many labels of a file were used, and why the others were not."""

    told: int
    """Answers that are new."""
    known: int
    """Answers to queries that were already answered."""
    differing: int = 0
    """How many of the known and surplus answers are not among those that were told before."""
    unasked: int = 0
    """Labels of states that the strategy has not asked about."""
    skipped: int = 0
    """Tasks that annotators skipped."""
    surplus: int = 0
    """Answers of further annotators to queries that have all their answers."""


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
    told_before = {label.id: list(label.transitions) for label in session.labels()}
    told_before |= {given.id: given.answer for given in session.answers() if given.annotator == annotator}
    known = set(told_before)
    before = [state for state in answers if state in known]
    differing = sum(_differ(session, state, answers[state], told_before[state]) for state in before)

    def tell_those_asked() -> int:
        found = [(state, answers[state]) for state in session.asked() if state in answers and state not in known]
        waiting = dict(found[: session.status().left])
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
    return ImportResult(told, len(before), differing, len(answers) - told - len(before))


def _differ(session: LabellingSession, state: Any, one: Any, other: Any) -> bool:
    """Return whether two answers about a state give different rewards to its transitions."""
    actions = actions_of(session, state)
    return not np.array_equal(rewards_of(state, actions, one), rewards_of(state, actions, other))


def _import_annotations(session: LabellingSession, path: Path) -> ImportResult:
    """Tell the annotations of tasks, all those of an annotator or none."""
    found, asked = [], set(session.asked())
    for one in read_annotations(path):
        try:
            state = known_id(session, one.state)
        except UnknownStateError as error:
            raise LabelsFileError(f"{one.where} belongs to another session: {error}") from None
        if state not in asked:
            raise LabelsFileError(f"{one.where} belongs to another session: this one has not asked about {state!r}")
        found.append((state, one.annotator, one.reward))
    needed, given = session.settings.answers_per_query, session.answers()
    present, counts = {(one.id, one.annotator): one.answer for one in given}, Counter(one.id for one in given)
    differing = surplus = 0
    told: dict[str, dict[Any, float]] = defaultdict(dict)
    for state, annotator, reward in found:
        if reward is None:
            continue
        if (state, annotator) not in present and counts[state] < needed:
            told[annotator][state] = reward
            present[state, annotator] = reward
            counts[state] += 1
            continue
        mine = (state, annotator) in present
        surplus += not mine
        others = [present[state, annotator]] if mine else [one for (of, _), one in present.items() if of == state]
        differing += all(_differ(session, state, reward, other) for other in others)
    for annotator, answers in told.items():
        session.tell_many(answers, annotator=annotator)
    for state, _, reward in found:
        if reward is None and counts[state] < needed:
            session.skip(state, annotator=ANNOTATOR)
    new, skipped = sum(map(len, told.values())), sum(reward is None for _, _, reward in found)
    return ImportResult(new, len(found) - new - skipped - surplus, differing, skipped=skipped, surplus=surplus)
