"""What the commands of labelling sessions share: the file of the session, who answers, and the range of the rewards."""

import argparse
import os
from pathlib import Path

from experiments.labelling.page_views import range_of
from selectenv import LabellingSession

NOT_REGISTERED = "needed only if the session was started with a {} that is not registered, such as module:Class"


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a session."""
    parser.add_argument("file", type=Path, help="file of the session")
    for kind in ("strategy", "learner"):
        parser.add_argument(f"--{kind}", help=NOT_REGISTERED.format(kind))


def open_session(options: argparse.Namespace) -> LabellingSession:
    """Open the session of a command."""
    return LabellingSession.open(options.file, strategy=options.strategy, learner=options.learner)


def add_annotator(parser: argparse.ArgumentParser) -> None:
    """Add the option that says who answers."""
    parser.add_argument("--annotator", default="", help="name that is stored with the answers (default: none)")


def range_text(session: LabellingSession) -> str:
    """Return the range of the rewards in words; empty if it is not known."""
    limits, ends = range_of(session), session.reward_range
    if limits is None or ends is None:
        return ""
    return f"{limits[0]:g} to {limits[1]:g}{', depending on the state' if max(map(len, ends)) > 1 else ''}"


def say_range(session: LabellingSession, file: str | os.PathLike[str]) -> None:
    """Print the range of the rewards, which the file has stored."""
    print(f"range of the rewards, stored in {os.fspath(file)}: {range_text(session)}")
