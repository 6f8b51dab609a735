"""The page about the command line, generated from its parsers."""

import argparse
import re
from collections.abc import Iterator

from experiments.cli.main import parser
from experiments.site.markdown_text import table


def commands_page() -> str:
    """Return the page: every command with its arguments and examples."""
    top = parser()
    parts = [
        "# Command line",
        f"{top.description} `selectenv` alone shows first commands, and `selectenv --help` lists all of them.",
        "This page is generated from the help texts of the commands.",
    ]
    return "\n\n".join([*parts, *map(_section, _commands(top))]) + "\n"


def _commands(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers below ``top``, each before those below it."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from _commands(command)


def _section(command: argparse.ArgumentParser) -> str:
    depth = len(command.prog.split())
    formatter = argparse.HelpFormatter(command.prog, width=100)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups, prefix="")
    parts = [
        f"{'#' * depth} {command.prog}",
        command.description or "",
        f"```text\n{formatter.format_help().strip()}\n```",
    ]
    rows = [(_name(action), _help(command, action)) for action in command._actions if _is_documented(action)]
    if rows:
        parts.append(table(("argument", "meaning"), rows))
    examples = (command.epilog or "").removeprefix("examples:\n")
    if examples:
        lines = [line.strip() for line in examples.splitlines()]
        parts.append("\n".join(["```bash", *(_commented(line) for line in lines), "```"]))
    return "\n\n".join(part for part in parts if part)


def _is_documented(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def _name(action: argparse.Action) -> str:
    """Return an argument as it is typed, for example "--jobs JOBS"."""
    metavar = action.metavar if action.metavar is not None else action.dest.upper()
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    return ", ".join(f"`{option}{'' if action.nargs == 0 else f' {value}'}`" for option in action.option_strings)


def _help(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = command._get_formatter()._expand_help(action) if action.help else ""
    return re.sub(r"(?<![`\w-])--[a-z][\w-]*", r"`\g<0>`", text)


def _commented(line: str) -> str:
    """Return an example with its meaning as a comment."""
    code, _, meaning = line.partition("   ")
    return f"{code}  # {meaning.strip()}" if meaning.strip() else code
