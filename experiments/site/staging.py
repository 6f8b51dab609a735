"""Collects the sources of the site in one directory: README, docs/, and the pages that are generated.

The pages under docs/ are plain Markdown that reads well in a repository browser, so they contain no directives. The
table of contents is read from the section "Documentation" of the README: one list item per section of the site.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from experiments.cli.listings import STRATEGIES
from experiments.errors import SiteError
from experiments.site.agent_pages import agents_page
from experiments.site.api_pages import api_pages
from experiments.site.command_pages import commands_page
from experiments.site.environment_pages import WORLDS, environment_pages
from experiments.site.markdown_text import moved_links
from experiments.site.result_pages import result_pages
from selectenv.registration import env_id
from selectenv.worlds import RANDOM

ROOT = Path(__file__).parents[2]
HOME = "index.md"
COPIED = ("LICENSE", "CITATION.cff")
"""Files in the root that pages link."""
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
GENERATED = {
    "Reference": (
        "reference/environments/index.md",
        "reference/agents.md",
        "reference/commands.md",
        "reference/api/index.md",
    ),
    "Studies": ("reference/results/index.md",),
}
"""Generated pages in the table of contents, by section; those below them are in the contents of these pages."""
ENVIRONMENTS = {env_id(world): world for world in (*WORLDS, RANDOM)}


def contents(readme: str) -> dict[str, list[str]]:
    """Return the pages of each section, as the README lists them.

    Raises:
        SiteError: the README has no such list.
    """
    section = re.search(r"^## Documentation\n(.*?)(?=^## |\Z)", readme, flags=re.DOTALL | re.MULTILINE)
    items = re.findall(r"^- \*\*(\w+)\*\*:(.*?)(?=^- |^$|\Z)", section[1] if section else "", re.DOTALL | re.MULTILINE)
    found = {name: re.findall(r"\]\(([^)#\s]+\.md)\)", links) for name, links in items}
    if not found:
        raise SiteError('the README needs a section "Documentation" with items such as "- **Tutorials**: [...](...)"')
    return found


def sources() -> list[Path]:
    """Return the Markdown pages that are kept in the repository, the README first."""
    return [ROOT / "README.md", *(ROOT / name for name in PROJECT_PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


def place(path: str) -> str:
    """Return where a file of the repository is in the site; both are relative paths."""
    return HOME if path == "README.md" else path.removeprefix("docs/")


def check_contents(listed: dict[str, list[str]]) -> None:
    """Raise unless the table of contents lists every page of the repository once.

    Raises:
        SiteError: a page is missing, is listed twice, or does not exist.
    """
    named = [page for pages in listed.values() for page in pages]
    kept = [path.relative_to(ROOT).as_posix() for path in sources()[1:]]
    for page in kept:
        if named.count(page) != 1:
            problem = "is missing in" if page not in named else "is more than once in"
            raise SiteError(f'{page} {problem} the section "Documentation" of the README')
    if unknown := set(named) - set(kept):
        raise SiteError(f'the section "Documentation" of the README lists {", ".join(sorted(unknown))}: no such page')


def generated_pages(images: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every generated page; pictures are written to ``images``."""
    yield from environment_pages(images)
    yield "reference/agents.md", agents_page()
    yield "reference/commands.md", commands_page()
    yield from api_pages()
    yield from result_pages(ROOT / "docs" / "results.csv")


def stage(target: Path) -> None:
    """Write all sources of the site into ``target``, which is emptied first.

    Raises:
        SiteError: a page is not in the table of contents, or this is an installed package without the pages.
    """
    if not (ROOT / "docs" / "conf.py").is_file():
        raise SiteError(f"the site is built in a clone of the repository; there are no pages in {ROOT / 'docs'}")
    listed = contents((ROOT / "README.md").read_text(encoding="utf-8"))
    check_contents(listed)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target, ignore=shutil.ignore_patterns("archives", "__pycache__"))
    for name in COPIED:
        shutil.copy(ROOT / name, target / name)
    for page, text in generated_pages(target / "reference" / "environments"):
        _write(target / page, text)
    for source in sources():
        page = source.relative_to(ROOT).as_posix()
        text = named_links(moved_links(source.read_text(encoding="utf-8"), page, place), place(page))
        if page == "README.md":
            text = f"{text}\n{toctrees(listed)}"
        _write(target / place(page), text)


def named_links(text: str, page: str) -> str:
    """Return a page in whose tables the ids of environments, and on the first page the names of agents, are links."""
    up = "../" * page.count("/")

    def linked(match: re.Match[str]) -> str:
        name = match[1]
        if name in ENVIRONMENTS:
            return f"| [`{name}`]({up}reference/environments/{ENVIRONMENTS[name]}.md) |"
        if page == HOME and name in STRATEGIES:
            return f"| [`{name}`]({up}reference/agents.md#{name}) |"
        return match[0]

    return re.sub(r"^\| `([\w-]+)` \|", linked, text, flags=re.MULTILINE)


def toctrees(listed: dict[str, list[str]]) -> str:
    """Return the table of contents as directives: the sidebar of the site."""
    lines = []
    for section, pages in listed.items():
        staged = [*(place(page) for page in pages), *GENERATED.get(section, ())]
        lines += [
            "```{toctree}",
            ":hidden:",
            f":caption: {section}",
            "",
            *(page.removesuffix(".md") for page in staged),
        ]
        lines += ["```", ""]
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
