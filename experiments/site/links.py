"""Checks the links of built HTML pages: files and anchors within the site, and the form of addresses outside of it."""

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.anchors.add(value)


def broken_links(site: Path) -> Iterator[str]:
    """Yield one message per broken link in the HTML pages below ``site``."""
    pages = {path: _parsed(path) for path in sorted(site.rglob("*.html")) if "_downloads" not in path.parts}
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            if problem := _problem(link, path, site, pages):
                yield f"{path.relative_to(site)}: {link}: {problem}"


def _parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _problem(link: str, path: Path, site: Path, pages: dict[Path, _Page]) -> str:
    """Return what is wrong with a link; empty if it works, or if it leads out of the site and is well formed."""
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        well_formed = parts.scheme in ("https", "mailto") and (parts.scheme == "mailto" or "." in parts.netloc)
        return "" if well_formed else "an address outside of the site must start with https:// and name a host"
    linked = path if not parts.path else Path(os.path.normpath(path.parent / unquote(parts.path)))
    if linked.is_dir():
        linked /= "index.html"
    if not linked.is_file() or not linked.is_relative_to(site):
        return "no such file"
    if parts.fragment and linked in pages and unquote(parts.fragment) not in pages[linked].anchors:
        return "no such anchor"
    return ""
