"""The pages of the API reference, generated from the public names of the packages."""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass

PUBLIC = ("selectenv", "agents")
"""Packages whose public names are in `__all__`."""


@dataclass(frozen=True)
class ApiPage:
    """One page of the reference."""

    title: str
    summary: str
    modules: tuple[str, ...]
    """Public names that are defined in these modules, or in modules below them, are on this page."""
    more: tuple[str, ...] = ()
    """Further names, with their modules; a module stands for its own classes and functions, in order."""


PAGES = {
    "environments": ApiPage(
        "Problems and environments",
        "What a label set is worth, and the same as a Gymnasium environment.",
        (
            "selectenv.factory",
            "selectenv.problem",
            "selectenv.env",
            "selectenv.vector_env",
            "selectenv.vector_checker",
            "selectenv.view",
            "selectenv.registration",
        ),
        ("selectenv.evaluation.evaluator.Evaluator", "selectenv.evaluation.evaluator.Calls"),
    ),
    "options": ApiPage(
        "Options",
        "The keywords of `make_problem`, `make_env` and `gym.make`, in five groups.",
        (),
        tuple(
            f"selectenv.options.{name}Options" for name in ("Data", "Learner", "Training", "Evaluation", "Environment")
        ),
    ),
    "wrappers": ApiPage("Wrappers", "Wrappers of the environments.", (), ("selectenv.wrappers",)),
    "worlds": ApiPage("Worlds", "Worlds of the package and of your own.", ("selectenv.worlds", "selectenv.domains")),
    "datasets": ApiPage(
        "Datasets",
        "Transitions whose rewards stay hidden until their state is labelled, and the readers that make them.",
        ("selectenv.datasets",),
        ("selectenv.datasets.load", "selectenv.datasets.save"),
    ),
    "learners": ApiPage(
        "Learners and policies",
        "From a dataset and its labels to a policy.",
        ("selectenv.learners", "selectenv.policies"),
        ("selectenv.evaluation.value_bounds.ValueBounds",),
    ),
    "sessions": ApiPage(
        "Labelling sessions",
        "The problem with a person in place of the hidden rewards.",
        ("selectenv.session", "selectenv.labelling"),
        ("selectenv.labelling.queries.Query", "selectenv.labelling.state_policy.StatePolicy"),
    ),
    "agents": ApiPage(
        "Agents", "Strategies, and how to play them.", ("agents",), ("agents.sb3.vec_selection.VecSelection",)
    ),
    "studies": ApiPage(
        "Studies",
        "What a study of your own is made of.",
        (),
        ("experiments.engine.study.Study", "experiments.engine.cell.Cell", "experiments.analysis.row.Row"),
    ),
    "errors": ApiPage(
        "Errors and warnings",
        "Every error that is raised on purpose is a `SelectEnvError` and the matching built-in exception.",
        (),
        ("selectenv.errors", "agents.errors", "experiments.errors"),
    ),
}


def public_names() -> dict[str, str]:
    """Return the public names of the packages, such as "selectenv.make_env", and the module that defines each."""
    found = {}
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            found[f"{package}.{name}"] = _home(package, name)
    return found


def _home(package: str, name: str) -> str:
    """Return the module that defines a public name; constants do not know theirs, so the imports are followed."""
    thing = getattr(importlib.import_module(package), name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return thing.__module__
    inner = {"AGENTS": "agents.registry"}.get(name, f"{package}.worlds")
    assert getattr(importlib.import_module(inner), name) is thing
    return inner


def names_of(page: ApiPage) -> list[str]:
    """Return the names that a page documents."""
    names = [
        name if callable_or_class(name) else f"{home}.{name.rpartition('.')[2]}"
        for name, home in public_names().items()
        if any(home == module or home.startswith(f"{module}.") for module in page.modules)
    ]
    for name in page.more:
        names += _names_of_module(name) if _is_module(name) else [name]
    return names


def api_pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every page, and of the list of them."""
    for name, page in PAGES.items():
        blocks = "\n".join(_directive(thing) for thing in names_of(page))
        text = f"# {page.title}\n\n{page.summary}\n\n```{{eval-rst}}\n{blocks}```\n"
        yield f"reference/api/{name}.md", text
    links = "\n".join(f"- [{page.title}]({name}.md): {page.summary}" for name, page in PAGES.items())
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *PAGES, "```"])
    about = "The public names of `selectenv` and `agents`, from their docstrings. All other names may change."
    yield "reference/api/index.md", f"# API\n\n{about}\n\n{links}\n\n{toctree}\n"


def _directive(name: str) -> str:
    thing = _find(name)
    if inspect.isclass(thing):
        bases = "   :show-inheritance:\n" if issubclass(thing, Exception) else ""
        return f".. autoclass:: {name}\n   :members:\n{bases}"
    return f".. autofunction:: {name}\n" if callable(thing) else f".. autodata:: {name}\n   :no-value:\n"


def callable_or_class(name: str) -> bool:
    """Return whether a name is that of a function or a class."""
    return callable(_find(name))


def _find(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _is_module(name: str) -> bool:
    return inspect.ismodule(getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2], None))


def _names_of_module(name: str) -> list[str]:
    module = importlib.import_module(name)
    own = [key for key, thing in vars(module).items() if inspect.isclass(thing) and thing.__module__ == name]
    return [f"{name}.{key}" for key in getattr(module, "__all__", own)]
