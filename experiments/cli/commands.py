"""How a group of commands adds itself to the command line."""

import argparse
from collections.abc import Callable
from typing import Protocol

OWN_WORLD = "module:function names a world of your own"
OWN_STUDY = "module:STUDY names a study of your own"
OWN_STRATEGY = "module:Class a strategy of your own, and a .zip or .json file a saved one"
RunCommand = Callable[[argparse.Namespace], None]


class AddCommand(Protocol):
    """Adds one command and returns its parser, which takes the command's own arguments."""

    def __call__(self, name: str, run: RunCommand, summary: str, examples: dict[str, str]) -> argparse.ArgumentParser:
        """Add a command.

        Args:
            name: What users type.
            run: Called with the parsed arguments.
            summary: One line for the list of commands and the top of ``selectenv NAME --help``.
            examples: Command lines without the leading ``selectenv``, each with what it does.
        """
        ...


def epilog(examples: dict[str, str]) -> str:
    """Return the examples as they stand at the end of a help text."""
    width = max(len(command) for command in examples) + 12
    lines = (f"{'  selectenv ' + command:<{width}}   {meaning}" for command, meaning in examples.items())
    return "\n".join(["examples:", *lines])
