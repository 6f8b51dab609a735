"""The public API: its page is complete, every name can be imported, and snippets of the documentation use no others."""

import importlib
import re

import pytest

from tests.markdown_pages import blocks
from tests.public_api import ERRORS, MODULES, PAGE, description, generated, page, public_names

STUDIES = {
    "experiments.cli.main.main",
    "experiments.analysis.row.Row",
    "experiments.analysis.statistics.summarise",
    "experiments.engine.cell.Cell",
    "experiments.engine.study.Study",
}
"""What the documentation uses to write studies."""


def test_the_page_is_current():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run `python -m tests.public_api`"
    assert all(f"`{name}`" in text for name in STUDIES)


@pytest.mark.parametrize("name", [*MODULES, *ERRORS])
def test_public_names_exist_and_are_described(name):
    module = importlib.import_module(name)
    names = public_names(module)
    assert len(set(names)) == len(names) > 0
    for public in names:
        assert not public.startswith("_")
        assert description(public, getattr(module, public)).endswith("."), public


def test_a_new_public_name_must_be_listed(monkeypatch):
    import agents

    monkeypatch.setattr(agents, "__all__", [*agents.__all__, "errors"])
    assert generated() not in PAGE.read_text(encoding="utf-8")


def test_snippets_import_only_what_is_public():
    public = {
        f"{module}.{name}" for module in (*MODULES, *ERRORS) for name in public_names(importlib.import_module(module))
    }
    found = 0
    for block in blocks("python"):
        for module, names in re.findall(
            r"^from ((?:selectenv|agents|experiments)[\w.]*) import (.*)$", block.code, re.M
        ):
            for name in names.split(","):
                found += 1
                assert f"{module}.{name.split('#')[0].strip()}" in public | STUDIES, f"{block}: {module} {name}"
    assert found > 5
