"""Questions in the terminal: queries as text, and answers as they are typed."""

import re
from collections.abc import Callable
from typing import Any

from experiments.labelling.query_texts import printable, query_text
from experiments.labelling.typed_numbers import typed_number
from selectenv import LabellingSession
from selectenv.errors import AnswerError, QueryError

HELP = """An answer is the reward of acting in this state:
  1.5                 the same for every action
  east=1, north=-1    one number per action, for all actions that are listed
  1, 0, -1            one number per outcome, in the order in which they are listed; 1; 0; -1 is the same
  s                   skip: costs nothing, the question comes back after all others
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
        write(f"\n{query_text(session, query)}\n")
        while True:
            try:
                typed = read(PROMPT).strip()
            except EOFError:
                typed = "q"
            word = typed.lower()
            if word in ("q", "quit"):
                session.release(query.id, annotator=annotator)
                return told
            if word in ("u", "undo"):
                undone = session.undo(annotator=annotator)
                if undone is None:
                    write("there is no answer to take back")
                    continue
                session.release(query.id, annotator=annotator)
                write(f"the answer about {printable(undone)} is taken back")
                told = max(told - 1, 0)  # the answer may be older than this call
                break
            if word in ("?", "help", ""):
                write(HELP)
                continue
            try:
                if word in ("s", "skip"):
                    session.skip(query.id, annotator=annotator)
                else:
                    session.tell(query.id, parsed_answer(typed), annotator=annotator)
                    told += 1
            except AnswerError as error:
                write(f"{error}; ? explains what can be typed")
                continue
            except QueryError:
                write("somebody else has answered this question in the meantime")
            break
    return told


def parsed_answer(typed: str) -> Any:
    """Return the answer that a text stands for: a number, a dict of one per action, or a list of one per transition.

    Raises:
        AnswerError: it is none of these.
    """
    separator = ";" if ";" in typed else ","
    if "=" not in typed:
        if separator == "," and re.search("[0-9],[0-9]", typed):
            raise AnswerError(
                f"{typed!r} can be read in two ways: write a decimal point (1.5), or a space after each comma (1, 5)"
            )
        numbers = [typed_number(part) for part in typed.split(separator)]
        return numbers if len(numbers) > 1 else numbers[0]
    answer: dict[str, float] = {}
    before = ""
    for part in typed.split(separator):
        action, equals, value = f"{before}{part}".rpartition("=")
        if equals and action.strip() in answer:
            raise AnswerError(f"{typed!r} has two numbers for the same action")
        if equals:
            answer[action.strip()] = typed_number(value)
        before = "" if equals else f"{before}{part}{separator}"  # the name of an action may contain commas
    if before:
        raise AnswerError(f"{before.strip(' ,;')!r} lacks an action or a number; write it like east=1, north=0")
    return answer
