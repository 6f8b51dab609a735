"""The labels, the policy and the bounds of a session as CSV text."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, fields
from typing import Any

from selectenv.labelling.session_reports import CurvePoint
from selectenv.labelling.state_policy import COLUMNS
from selectenv.session import LabellingSession


def labels_csv(session: LabellingSession) -> str:
    """Return the labels, one row per state and action, in the order in which they were completed."""
    rows = (
        (order, label.id, action, reward, label.spread)
        for order, label in enumerate(session.labels(), 1)
        for action, reward in label.rewards.items()
    )
    return _csv(("label", "state", "action", "reward", "spread"), rows)


def policy_csv(session: LabellingSession) -> str:
    """Return the policy, one row per state and action."""
    return _csv(COLUMNS, session.policy().rows())


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
