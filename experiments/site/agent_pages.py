"""The page about agents, generated from their registry."""

import inspect
from dataclasses import MISSING, fields
from typing import Any

from agents import AGENTS, Agent
from experiments.cli.listings import STRATEGIES
from experiments.site.field_docs import field_docs
from experiments.site.markdown_text import table


def agents_page() -> str:
    """Return the page: every registered agent with its taxonomy, features and options."""
    parts = [
        "# All agents",
        "This page is generated from the registry. [Agents](../agents.md) explains how to train, play and save agents, "
        "and [Which strategy should I use?](../which-strategy.md) helps to choose.",
    ]
    rows = [(f"[`{name}`](#{name})", *_taxonomy(AGENTS[name].kind), STRATEGIES[name]) for name in STRATEGIES]
    parts.append(table(("agent", "labels depend on earlier ones", "training", "asks the evaluator", "strategy"), rows))
    parts += [_section(name) for name in STRATEGIES]
    return "\n\n".join(parts) + "\n"


def _taxonomy(kind: type[Agent]) -> tuple[str, str, str]:
    taxonomy = kind.taxonomy
    return "yes" if taxonomy.test_loop == "closed" else "no", taxonomy.training, taxonomy.evaluator


def _section(name: str) -> str:
    kind, preset = AGENTS[name]
    docstring = inspect.getdoc(kind) or ""
    parts = [f"## {name}", docstring if vars(kind).get("__doc__") else STRATEGIES[name]]
    facts = [f"Class: `{kind.__module__}.{kind.__qualname__}`."]
    if needed := _features(kind):
        facts.append(f"Observes: {', '.join(f'`{feature}`' for feature in needed)}.")
    if kind.taxonomy.oracle:
        facts.append(f"Needs to know: {kind.taxonomy.oracle}.")
    parts.append(" ".join(facts))
    docs = field_docs(kind)
    rows = [
        (f"`{option.name}`", f"`{_default(option, preset)}`", docs.get(option.name, ""))
        for option in fields(kind)  # type: ignore[arg-type]  # agents are dataclasses
        if option.init
    ]
    if rows:
        parts.append(table(("option", "default", "meaning"), rows))
    return "\n\n".join(parts)


def _features(kind: type[Agent]) -> tuple[str, ...]:
    """Return the features that a class needs; those that depend on its options are left out."""
    return () if isinstance(inspect.getattr_static(kind, "features"), property) else tuple(kind.features)


def _default(option: Any, preset: dict[str, Any]) -> str:
    if option.name in preset:
        return repr(preset[option.name])
    if option.default is not MISSING:
        return repr(option.default)
    return f"{option.default_factory.__name__}()" if option.default_factory is not MISSING else "required"
