"""Registries of worlds, learners and agents: decorators add to them, and so do entry points of other packages."""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from selectenv.checks import check_name, shown
from selectenv.errors import ExtensionError, OptionError
from selectenv.references import find_reference, is_reference

R = TypeVar("R")


class Registry(Mapping[str, R], Generic[R]):
    """Rows by name. Entry points of a group are listed immediately and loaded when they are first used.

    A name of the form "module:name" stands for an object that is not registered; see `find_reference`.
    """

    def __init__(self, kind: str, group: str, row_of: Callable[[str, Any], R]) -> None:
        """Start empty.

        Args:
            kind: what the rows are, for error messages.
            group: the group of entry points to look for.
            row_of: makes a row of a name and the object behind an entry point.
        """
        self.kind, self.group = kind, group
        self._row_of = row_of
        self._rows: dict[str, R] = {}
        self._found: dict[str, EntryPoint] | None = None

    def add(self, name: str, row: R) -> None:
        """Add a row.

        Raises:
            OptionError: the name is not a word, or it is taken.
        """
        if not isinstance(name, str) or not re.fullmatch(r"\w[\w-]{0,99}", name):
            raise OptionError(
                f"the name of a {self.kind} must be made of letters, digits, hyphens and underscores, not {shown(name)}"
            )
        if name in self._rows:
            raise OptionError(f"the {self.kind} {name!r} exists already: choose another name")
        self._rows[name] = row

    def __getitem__(self, name: str) -> R:
        """Return a row, loading it if it is an entry point, and making it of the object that "module:name" names.

        Raises:
            UnknownNameError: there is no such row, or no such name in the module; the message says what there is.
            ExtensionError: the entry point or the module cannot be loaded.
            OptionError: the object is of another kind, or the name is not written as "module:name".
        """
        if is_reference(name):
            return self._row_of(name, find_reference(self.kind, name))
        if not isinstance(name, str) or name not in self._rows:
            point = self._entry_points[check_name(self.kind, name, self)]
            try:
                found = point.load()
                if name not in self._rows:  # loading a decorated object has registered it already
                    self.add(name, self._row_of(name, found))
            except Exception as error:
                package = point.dist.name if point.dist else "an unknown package"
                raise ExtensionError(
                    f"the {self.kind} {name!r} of the package {package!r} cannot be loaded from {point.value!r}: "
                    f"{type(error).__name__}: {error}"
                ) from error
        return self._rows[name]

    def find(self, name: object) -> R:
        """Return a row; unlike `__getitem__`, this accepts a name of any type and checks it."""
        return self[name]  # type: ignore[index]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, those of entry points last."""
        return iter(dict.fromkeys([*self._rows, *self._entry_points]))

    def __len__(self) -> int:
        """Return the number of names."""
        return len({*self._rows, *self._entry_points})

    @property
    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._found is None:
            self._found = {point.name: point for point in entry_points(group=self.group)}
        return self._found
