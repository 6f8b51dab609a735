"""The sources of the site: every page is in the table of contents, and links follow the pages."""

import re

import pytest

from experiments.errors import SiteError
from experiments.site import staging
from experiments.site.markdown_text import moved_links, table
from experiments.site.staging import GENERATED, ROOT, check_contents, contents, named_links, place, sources, toctrees

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_is_listed_once_in_its_section():
    listed = contents(README)
    check_contents(listed)
    assert list(listed) == ["Tutorials", "Concepts", "Guides", "Reference", "Studies", "Project"]
    assert set(GENERATED) <= set(listed)
    tutorials = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "tutorials").iterdir()}
    assert set(listed["Tutorials"]) == tutorials
    assert len(sources()) == 1 + sum(len(pages) for pages in listed.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pages: pages.remove("docs/studies.md"), "docs/studies.md is missing"),
        (lambda pages: pages.append("docs/studies.md"), "docs/studies.md is more than once"),
        (lambda pages: pages.append("docs/nothing.md"), "docs/nothing.md: no such page"),
    ],
)
def test_wrong_lists_are_refused(change, message):
    listed = contents(README)
    change(listed["Studies"])
    with pytest.raises(SiteError, match=message):
        check_contents(listed)


def test_a_readme_without_the_list_is_refused():
    with pytest.raises(SiteError, match="Documentation"):
        contents("# selectenv\n\n## Documentation\n\nSee docs/.\n")


def test_an_installed_package_has_no_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "ROOT", tmp_path)
    with pytest.raises(SiteError, match="clone of the repository"):
        staging.stage(tmp_path / "source")


def test_the_contents_become_the_sidebar():
    text = toctrees({"Tutorials": ["docs/tutorials/a.md"], "Reference": ["docs/b.md"]})
    assert ":caption: Tutorials\n\ntutorials/a\n```" in text
    assert ":caption: Reference\n\nb\nreference/environments/index\n" in text


@pytest.mark.parametrize(
    ("page", "link", "moved"),
    [
        ("README.md", "docs/a.md#b", "a.md#b"),
        ("README.md", "CHANGELOG.md", "CHANGELOG.md"),
        ("docs/a.md", "../README.md#agents", "index.md#agents"),
        ("docs/a.md", "b.png", "b.png"),
        ("docs/tutorials/a.md", "../../README.md", "../index.md"),
        ("docs/tutorials/a.md", "../concepts/b.md", "../concepts/b.md"),
        ("CONTRIBUTING.md", "docs/extending.md", "extending.md"),
        ("docs/a.md", "#here", "#here"),
        ("docs/a.md", "https://arxiv.org/abs/2510.00144", "https://arxiv.org/abs/2510.00144"),
    ],
)
def test_links_follow_the_pages(page, link, moved):
    code = f"```python\nprices[0]({link})\n```"
    text = f"See [it]({link}).\n\n{code}\n\n![picture]({link})\n"
    assert moved_links(text, page, place) == f"See [it]({moved}).\n\n{code}\n\n![picture]({moved})\n"


def test_names_in_tables_are_links_to_their_pages():
    row = "| `RewardSelection-Tree-v0` | 31 |\n| `guided` | yes |\n| `odd` | no |"
    assert named_links(row, "index.md").splitlines() == [
        "| [`RewardSelection-Tree-v0`](reference/environments/Tree.md) | 31 |",
        "| [`guided`](reference/agents.md#guided) | yes |",
        "| `odd` | no |",
    ]
    assert "(../reference/environments/Tree.md)" in named_links(row, "tutorials/a.md")


def test_tables_escape_what_would_break_them():
    assert table(("a", "b"), [("x | y", "two\n lines")]) == "| a | b |\n| --- | --- |\n| x \\| y | two lines |"


def test_pages_contain_no_directives_that_repository_browsers_do_not_know():
    for path in sources():
        assert not re.search(r"^(```|:::)\{", path.read_text(encoding="utf-8"), flags=re.MULTILINE), path
