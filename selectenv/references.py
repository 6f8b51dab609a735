"""User-defined worlds, strategies and learners, named as "module:name" in every command and call."""

import difflib
import importlib
import pkgutil
import re
from types import ModuleType
from typing import Any

from selectenv.checks import shown
from selectenv.errors import ExtensionError, OptionError, UnknownNameError

PATTERN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_reference(name: object) -> bool:
    """Return whether ``name`` is meant as "module:name" rather than as a registered name."""
    return isinstance(name, str) and ":" in name


def find_reference(kind: str, reference: str) -> Any:
    """Import the module of a reference and return the object that it names.

    Args:
        kind: what the object should be, for error messages.
        reference: "module:name", for example "my_module:my_world"; dots lead to modules and attributes further inside.

    Raises:
        OptionError: it is not written as "module:name".
        ExtensionError: there is no such module, or it cannot be imported.
        UnknownNameError: the module has nothing of this name; the message names the closest match.
    """
    if not PATTERN.fullmatch(reference):
        raise OptionError(
            f"{shown(reference)} does not name {_article(kind)}: write module:name, for example my_module:my_{kind}"
        )
    module, _, path = reference.partition(":")
    found: Any = _imported(kind, module)
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise UnknownNameError(
                f"the module {module!r} has no {kind} {path!r}{_closest(name, _public_names(found))}"
            ) from None
    return found


def _imported(kind: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            known = [module.name for module in pkgutil.iter_modules()]
            raise ExtensionError(
                f"there is no module {error.name!r} to take {_article(kind)} from"
                f"{_closest(name.partition('.')[0], known)} "
                "Modules are found in the current directory, on PYTHONPATH, and where packages are installed."
            ) from None
        raise ExtensionError(f"the module {name!r} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # a module may raise anything, and a script may exit
        raise ExtensionError(f"the module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _public_names(found: object) -> list[str]:
    """Return the names that users may have meant: functions and classes, without modules."""
    return [
        name
        for name, value in getattr(found, "__dict__", {}).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, ModuleType)
    ]


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _closest(name: str, known: list[str]) -> str:
    """Return the end of a sentence, with the closest of the known names if one is close."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else "."
