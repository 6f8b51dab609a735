"""The command line `selectenv`: the parser of all commands, and what happens when one fails."""

import argparse
import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import selectenv
from experiments import demo
from experiments.benchmarks import bench
from experiments.cli import benchmark_command, label_commands, study_commands, training_commands, world_commands
from experiments.cli.commands import RunCommand, epilog
from experiments.errors import TerminatedError
from selectenv.checks import check_name
from selectenv.errors import SelectEnvError, UnknownNameError

FIRST_STEPS = f"""selectenv {selectenv.__version__}: which rewards matter? Environments and studies of reward selection.

Three commands to start with:
  selectenv demo              compare strategies in a small world: a table and two figures within a minute
  selectenv show CliffWalk    draw which states the strategies label in a world
  selectenv list              list the studies; also `selectenv list worlds`, `agents` and `learners`

`selectenv --help` lists all commands, `selectenv COMMAND --help` explains one.
"""
INTERRUPTED, TERMINATED = 130, 143
"""Exit codes after Ctrl-C and SIGTERM: 128 plus the number of the signal, as in shells."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit code: 0 on success, 1 for an error (2, raised by argparse, for wrong usage), 130 after Ctrl-C, 143
        after SIGTERM.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid text
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        print(FIRST_STEPS, end="")
        return 0
    options = parsed(given)
    try:
        with modules_of_the_directory():
            options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return 0
    except (SelectEnvError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print("\nstopped; finished work is stored: repeat the command to resume", file=sys.stderr)
        return TERMINATED if isinstance(stop, TerminatedError) else INTERRUPTED
    return 0


def parsed(given: list[str]) -> argparse.Namespace:
    """Return the arguments; a command that does not exist exits with code 2 and the closest one that does."""
    top, commands = _parsers()
    try:
        if not given[0].startswith("-"):
            check_name("command", given[0], commands)
    except UnknownNameError as error:
        top.error(str(error))
    return top.parse_args(given)


@contextmanager
def modules_of_the_directory() -> Iterator[None]:
    """Let "module:name" find modules in the current directory, as `python -m` does; local processes inherit it."""
    here = os.getcwd()
    added = "" not in sys.path and here not in sys.path
    if added:
        sys.path.append(here)
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    return _parsers()[0]


def _parsers() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser of all commands, and the parser of each by name."""
    top = argparse.ArgumentParser(
        prog="selectenv",
        description="Which rewards matter? Environments, strategies and studies of reward selection.",
        epilog="Start with `selectenv demo`; `selectenv COMMAND --help` explains a command and shows examples.",
    )
    top.add_argument("--version", action="version", version=f"selectenv {selectenv.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND", title="commands")

    def add(name: str, run: RunCommand, summary: str, examples: dict[str, str]) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=epilog(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(command=run)
        return command

    demo.add_to(add)
    study_commands.add_to(add)
    world_commands.add_to(add)
    training_commands.add_to(add)
    label_commands.add_to(add)
    benchmark_command.add_to(add)
    bench.add_to(add)
    return top, commands.choices


if __name__ == "__main__":
    sys.exit(main())
