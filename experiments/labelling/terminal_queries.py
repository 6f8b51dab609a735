"""Queries as text for a terminal, and answers as they are typed."""

from collections.abc import Callable
from typing import Any

from selectenv import LabellingSession
from selectenv.errors import AnswerError, SelectEnvError
from selectenv.labelling.queries import Excerpt, Query, TransitionSummary

SHOWN_OUTCOMES = 8
"""Largest number of next states that are listed for an action."""
HELP = """An answer is the reward of acting in this state:
  1.5                 the same for every action
  east=1, north=-1    one number per action, for all actions that are listed
  1, 0, -1            one number per outcome, in the order in which they are listed
  s                   skip: costs nothing, the question comes back at the end
  u                   undo: take the last answer back, and ask again
  q                   quit: everything is stored; the same command continues"""
PROMPT = "reward (? for help): "


def ask_in_terminal(
    session: LabellingSession,
    annotator: str = "",
    *,
    read: Callable[[str], str] = input,
    write: Callable[[str], Any] = print,
) -> int:
    """Ask one query after the other until there is none, or until the person quits.

    Args:
        session: the session.
        annotator: who answers.
        read: returns what is typed after a prompt; raises EOFError at the end.
        write: shows text.

    Returns:
        The number of answers.
    """
    told = 0
    while query := session.ask(annotator=annotator):
        write(f"\n{as_text(query, session.budget)}\n")
        while True:
            try:
                typed = read(PROMPT).strip()
            except EOFError:
                typed = "q"
            if typed in ("q", "quit"):
                session.release(query.id, annotator=annotator)
                return told
            if typed in ("s", "skip"):
                session.skip(query.id, annotator=annotator)
                break
            if typed in ("u", "undo"):
                undone = session.undo(annotator=annotator)
                if undone is None:
                    write("there is no answer to take back")
                    continue
                session.release(query.id, annotator=annotator)
                write(f"the answer about {undone} is taken back")
                told = max(told - 1, 0)  # the answer may be older than this call
                break
            if typed in ("?", "help", ""):
                write(HELP)
                continue
            try:
                session.tell(query.id, parsed_answer(typed), annotator=annotator)
            except SelectEnvError as error:
                write(f"{error}")
                continue
            told += 1
            break
    return told


def parsed_answer(typed: str) -> Any:
    """Return the answer that a text stands for: a number, a dict of one per action, or a list of one per transition.

    Raises:
        AnswerError: it is none of these.
    """
    parts = [part.strip() for part in typed.split(",")]
    if all("=" in part for part in parts):
        pairs = [part.rpartition("=") for part in parts]
        if len({action.strip() for action, _, _ in pairs}) < len(pairs):
            raise AnswerError(f"{typed!r} has two numbers for the same action")
        return {action.strip(): _number(value) for action, _, value in pairs}
    numbers = [_number(part) for part in parts]
    return numbers if len(numbers) > 1 else numbers[0]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise AnswerError(
            f"{text.strip()!r} is not a number; an answer is a number, or numbers such as east=1, north=0; ? explains"
        ) from None


def as_text(query: Query, budget: int) -> str:
    """Return what a person needs to see of a query."""
    lines = [f"Question {query.number} of {budget}: {query.id}"]
    if query.group is not None:
        lines += [
            f"  {column.name}: {column.low:.3g} to {column.high:.3g}, median {column.middle:.3g} "
            f"(all data: {column.data_low:.3g} to {column.data_high:.3g})"
            for column in query.group.columns
        ]
    lines.append(f"  seen {_times(query.visits)}; what was done, and where it led:")
    for action in query.actions:
        more = len(action.transitions) - SHOWN_OUTCOMES
        outcomes = "; ".join(_outcome(transition) for transition in action.transitions[:SHOWN_OUTCOMES])
        outcomes += f"; {more} more" if more > 0 else ""
        lines.append(f"    {action.action}, {_times(action.count)} -> {outcomes}")
    lines.append("  around it, in the log:")
    lines += [f"    {_excerpt(excerpt)}" for excerpt in query.episodes]
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _outcome(transition: TransitionSummary) -> str:
    if transition.next_id is not None:
        return f"{transition.next_id} ({transition.count:,})"
    ends = "the episode ends" if transition.terminated else "unknown"
    return f"{ends} ({transition.count:,})"


def _excerpt(excerpt: Excerpt) -> str:
    """Return an excerpt in one line; the queried state is in brackets."""
    steps = " ".join(f"{f'[{step.id}]' if step.queried else step.id} -{step.action}->" for step in excerpt.steps)
    start = "" if excerpt.from_start else "... "
    end = {"terminated": "end", "truncated": "(the recording stops)"}.get(excerpt.end, "...")
    return f"{start}{steps} {end if excerpt.next_id is None else f'{excerpt.next_id} {end}'}"
