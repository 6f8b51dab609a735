"""The documentation of the fields of a class, from its docstring and from the strings that follow its fields."""

import ast
import inspect
import re
import textwrap
from itertools import pairwise


def field_docs(kind: type) -> dict[str, str]:
    """Return field -> documentation, for a class and its bases; the class itself has the last word."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        found |= _attributes(inspect.getdoc(base) or "") if "__doc__" in vars(base) else {}
        found |= _following_strings(base)
    return found


def parameter_docs(function: object) -> dict[str, str]:
    """Return parameter -> documentation, from the section "Args" of a docstring."""
    return _section(inspect.getdoc(function) or "", "Args")


def _attributes(docstring: str) -> dict[str, str]:
    return _section(docstring, "Attributes")


def _section(docstring: str, title: str) -> dict[str, str]:
    """Return the entries of a section of a Google-style docstring."""
    section = re.search(rf"^{title}:\n((?:    .*\n?|\n)+)", docstring + "\n", flags=re.MULTILINE)
    entries = re.findall(r"^ {4}\*{0,2}(\w+):(.*(?:\n {8}.*)*)", section[1] if section else "", flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def _following_strings(kind: type) -> dict[str, str]:
    """Return the string literals that follow the fields in the source of a class."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # a class without source, such as a built-in one
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found = {}
    for field, after in pairwise(body):
        is_text = (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        )
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            found[field.target.id] = " ".join(after.value.value.split())  # type: ignore[attr-defined]
    return found
