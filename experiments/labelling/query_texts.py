"""States and queries as text that people read."""

from typing import Any

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.naming import unit
from selectenv.labelling.group_summary import GroupSummary, Member
from selectenv.labelling.queries import Excerpt, Query, TransitionSummary
from selectenv.options import EPISODE
from selectenv.session import LabellingSession

SHOWN_OUTCOMES = 8
"""Largest number of next states that are listed for an action."""
JOINED = " \u00b7 "
"""Separator between the entries of the columns of a state."""


def state_text(dataset: OfflineDataset, id: Any) -> str:
    """Return a state: the entries of its columns, or its id."""
    return JOINED.join(entries_of(dataset, id))


def entries_of(dataset: OfflineDataset, id: Any) -> list[str]:
    """Return the entries of the columns of a state; its id if it has no columns."""
    if dataset.groups is not None and dataset.base.vectors is not None:
        return [f"{unit(dataset)} {id}"]
    if not dataset.state_columns:
        return [str(id)]
    number = dataset.numbers([id])[0]
    return [str(values[number]) for values in dataset.state_columns.values()]


def printable(text: object) -> str:
    """Return text from a log without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def query_text(session: LabellingSession, query: Query) -> str:
    """Return what a person needs to see of a query, in several lines."""
    data = session.dataset
    asked = query.id if query.group is None else state_text(data, query.id)
    lines = [f"Question {query.number} of {session.budget}: {asked}"]
    if query.group is not None:
        lines += [
            f"  {column.name}: {column.low:.3g} to {column.high:.3g}, median {column.middle:.3g} "
            f"(all data: {column.data_low:.3g} to {column.data_high:.3g})"
            for column in query.group.columns
        ]
    lines.append(f"  seen {_times(query.visits)}; what was done, and where it led:")
    for action in query.actions:
        more = len(action.transitions) - SHOWN_OUTCOMES
        outcomes = "; ".join(_outcome(data, transition) for transition in action.transitions[:SHOWN_OUTCOMES])
        outcomes += f"; {more} more" if more > 0 else ""
        lines.append(f"    {action.action} ({_times(action.count)}) -> {outcomes}")
    if query.group is not None:
        lines.append("  some of its steps, in the log:")
        lines += [f"    {_member(query.group, member)}" for member in query.group.members]
    if unit(data) != EPISODE:
        lines.append("  around it, in the log:")
        lines += [f"    {_excerpt(data, excerpt)}" for excerpt in query.episodes]
    return "\n".join(map(printable, lines))


def _member(group: GroupSummary, member: Member) -> str:
    values = zip(group.columns, member.values, strict=True)
    vector = ", ".join(f"{column.name} {value:.3g}" for column, value in values)
    return f"episode {member.episode}, step {member.step}: {vector}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _outcome(data: OfflineDataset, transition: TransitionSummary) -> str:
    if transition.next_id is not None:
        return f"{state_text(data, transition.next_id)} ({transition.count:,})"
    return f"{outcome_text(transition)} ({transition.count:,})"


def outcome_text(transition: TransitionSummary) -> str:
    """Return where a transition led that entered no state of the data."""
    ended = f"the episode ended{_at(transition.ending)}"
    if transition.terminated == 0:
        return "not recorded" if transition.ending is None else f"{transition.ending}, for which the log has no action"
    return ended if transition.terminated == transition.count else f"{ended}, or not recorded"


def end_text(excerpt: Excerpt) -> str:
    """Return how an excerpt ends; empty if the episode continues."""
    words = {"terminated": f"end{_at(excerpt.ending)}", "truncated": f"recording stops{_at(excerpt.ending)}"}
    return words.get(excerpt.end, "")


def _at(ending: Any) -> str:
    return "" if ending is None else f" at {str(ending)!r}"


def _excerpt(data: OfflineDataset, excerpt: Excerpt) -> str:
    """Return an excerpt in one line; the queried state is in brackets."""
    parts = [] if excerpt.from_start else ["..."]
    for step in excerpt.steps:
        text = state_text(data, step.id)
        parts.append(f"{f'[{text}]' if step.queried else text} -{step.action}->")
    if excerpt.next_id is not None:
        parts.append(state_text(data, excerpt.next_id))
    end = end_text(excerpt) or "..."
    return " ".join([*parts, f"({end})" if excerpt.end == "truncated" else end])
