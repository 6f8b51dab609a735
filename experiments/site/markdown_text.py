"""Pieces of Markdown: tables, and links that follow a page to another place."""

import os
import re
from collections.abc import Callable, Iterable, Sequence

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(^```.*?^```$)", flags=re.DOTALL | re.MULTILINE)


def table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; line breaks and pipes in cells are replaced or escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(content: object) -> str:
    return re.sub(r"[ \t\n]+", " ", str(content)).strip(" ").replace("|", "\\|")


def is_external(target: str) -> bool:
    """Return whether a link leads out of the site."""
    return re.match(r"[a-z][a-z0-9+.-]*:", target) is not None


def moved_links(text: str, page: str, place: Callable[[str], str]) -> str:
    """Return a page with links that work after it and the files that it links have moved.

    Args:
        text: the page.
        page: its path before it moved, with slashes, relative to the root of the repository.
        place: maps a path before the move to the path after it.
    """
    here = os.path.dirname(place(page))

    def moved(match: re.Match[str]) -> str:
        target, hash_sign, anchor = match[2].partition("#")
        if not target or is_external(target):
            return match[0]
        linked = place(os.path.normpath(os.path.join(os.path.dirname(page), target)))
        return f"{match[1]}{os.path.relpath(linked, here or '.')}{hash_sign}{anchor}{match[3]}"

    parts = FENCE.split(text)  # every second part is a code block
    return "".join(part if i % 2 else LINK.sub(moved, part) for i, part in enumerate(parts))
