"""The labels, the policy and the bounds of a session as CSV text."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, fields
from typing import Any

from experiments.labelling.label_files import actions_of
from selectenv.labelling.queries import Query, TransitionSummary, transitions_of
from selectenv.labelling.session_reports import CurvePoint
from selectenv.session import LabellingSession

QUESTION_COLUMNS = ("state", "action", "next_state", "times", "ended")
"""Columns that tell which transition a reward belongs to, how often it occurs, and how often it ended the episode."""


def labels_csv(session: LabellingSession) -> str:
    """Return the labels, one row per distinct transition, in the order in which they were completed."""
    rows = (
        (order, *_entries(label.id, transition), reward, label.spread)
        for order, label in enumerate(session.labels(), 1)
        for transition, reward in zip(transitions_of(actions_of(session, label.id)), label.transitions, strict=True)
    )
    return _csv(("label", *QUESTION_COLUMNS, "reward", "spread"), rows)


def questions_csv(queries: Iterable[Query]) -> str:
    """Return queries, one row per distinct transition, with an empty column to fill in the rewards.

    Vectors, and groups of them, are known by a number; their values, or ranges of values, are in columns at the end.
    """
    asked = list(queries)
    shown = list(_vector_columns(asked[0])) if asked else []
    rows = (
        (*_entries(query.id, transition), "", *_vector_columns(query).values())
        for query in asked
        for transition in query.transitions
    )
    return _csv((*QUESTION_COLUMNS, "reward", *shown), rows)


def _vector_columns(query: Query) -> dict[str, Any]:
    """Return the values of a vector, or the ranges of a group of vectors, by names that no other column has."""
    if query.group is not None:
        return {f"{c.name} (range)": f"{c.low:.4g} to {c.high:.4g}" for c in query.group.columns}
    is_vector = query.observation is not None and query.observation.ndim == 1
    return {f"{name} (value)": f"{value:.4g}" for name, value in query.columns.items()} if is_vector else {}


def _entries(state: Any, transition: TransitionSummary) -> tuple[Any, ...]:
    """Return the values of `QUESTION_COLUMNS`; an ending is a next state."""
    entered = transition.ending if transition.next_id is None else transition.next_id
    return state, transition.action, entered, transition.count, transition.terminated


def policy_csv(session: LabellingSession) -> str:
    """Return the policy, one row per state and action."""
    policy = session.policy()
    return _csv(policy.header, policy.rows())


def curve_csv(session: LabellingSession) -> str:
    """Return the bounds after every label.

    Raises:
        OptionError: the range of the unknown rewards is not known.
    """
    return _csv([field.name for field in fields(CurvePoint)], map(astuple, session.curve()))


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


TABLES: dict[str, Callable[[LabellingSession], str]] = {
    "labels.csv": labels_csv,
    "policy.csv": policy_csv,
    "curve.csv": curve_csv,
}
"""The tables by the names of their files."""
