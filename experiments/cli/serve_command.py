"""The command `selectenv label serve`: the labelling page."""

import argparse
import math

from experiments.cli.session_options import open_session
from experiments.engine.stopping import orderly_termination
from experiments.labelling.page_server import HOST, serve
from selectenv.checks import check_int
from selectenv.errors import OptionError
from selectenv.labelling.session_settings import check_annotator

MOST_CHOICES = 9


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "--host", default=HOST, help=f"address to bind to (default: {HOST}; others can be reached from other machines)"
    )
    command.add_argument("--port", type=int, default=0, help="port (default: any that is free)")
    command.add_argument("--no-browser", action="store_true", help="print the link and do not open a browser")
    command.add_argument(
        "--choices",
        type=float,
        nargs="+",
        metavar="REWARD",
        help="answers of the number keys (default: steps over the range of the rewards)",
    )


def run(options: argparse.Namespace) -> None:
    """Serve the page until Ctrl-C."""
    check_int("--port", options.port, 0, 65_535)
    check_annotator(options.annotator)
    if len(options.choices or ()) > MOST_CHOICES:
        raise OptionError(f"--choices takes up to {MOST_CHOICES} numbers, one per number key")
    if not all(map(math.isfinite, options.choices or ())):
        raise OptionError("--choices takes finite numbers")
    with orderly_termination(), open_session(options) as session:
        serve(
            session,
            options.host,
            options.port,
            browser=not options.no_browser,
            annotator=options.annotator,
            choices=options.choices,
        )
