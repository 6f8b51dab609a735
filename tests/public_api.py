"""docs/public-api.md: ``python -m tests.public_api`` rewrites its tables from the `__all__` of public modules."""

import importlib
import inspect
from types import ModuleType
from typing import Any

from tests.markdown_pages import ROOT

PAGE = ROOT / "docs/public-api.md"
BEGIN, END = "<!-- generated: public API -->", "<!-- end -->"
MODULES = (
    "selectenv",
    "selectenv.datasets",
    "selectenv.domains.tabular",
    "selectenv.evaluation",
    "selectenv.learners",
    "selectenv.wrappers",
    "agents",
    "agents.sb3",
)
"""Modules whose `__all__` is public."""
ERRORS = ("selectenv.errors", "agents.errors", "experiments.errors")
"""Modules whose classes are all public."""
CONSTANTS = {
    "AGENTS": "The registered strategies by name.",
    "CONTROL": "The control worlds by name.",
    "GAMES": "The MinAtar games by name.",
    "LEARNERS": "The registered learners by name.",
    "PUBLISHED_SIZE": "Number of transitions of a published tabular dataset.",
    "TABULAR": "The six tabular worlds of the paper by name.",
    "WORLDS": "All registered worlds by name.",
}
"""Names without a docstring of their own."""


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    if module.__name__ in ERRORS:
        classes = [name for name, value in vars(module).items() if inspect.isclass(value)]
        return sorted(name for name in classes if vars(module)[name].__module__ == module.__name__)
    return list(module.__all__)


def description(name: str, value: Any) -> str:
    """Return the first sentence of what is documented about a public object."""
    if name in CONSTANTS:
        return CONSTANTS[name]
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "or")


def generated() -> str:
    """Return the generated part of the page: one table per module."""
    parts = []
    for module_name in (*MODULES, *ERRORS):
        module = importlib.import_module(module_name)
        rows = [f"| `{name}` | {description(name, getattr(module, name))} |" for name in public_names(module)]
        parts.append("\n".join([f"### `{module_name}`", "", "| name | description |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def page(text: str) -> str:
    """Return the text of the page with its generated part replaced."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{generated()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE} written")
