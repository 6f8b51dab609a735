"""Parse the README and the pages under docs/ for the tests that check them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    page: str
    line: int
    language: str
    code: str

    def __str__(self):
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Table:
    """A Markdown table; cells are stripped of surrounding spaces."""

    page: str
    line: int
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self):
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(name: str) -> str:
    """Return the text of a page with every run of white space replaced by one space."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def blocks(language: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
            if match[1] == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append(Block(name_of(page), line, language, match[2]))
    return found


def prose(page: Path) -> str:
    """Return a page without its fenced code blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def tables() -> list[Table]:
    found = []
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        number = 0
        while number < len(lines) - 1:
            if not re.fullmatch(r"\|( *:?-+:? *\|)+", lines[number + 1]):
                number += 1
                continue
            last = number + 2
            while last < len(lines) and lines[last].startswith("|"):
                last += 1
            rows = tuple(_cells(line) for line in lines[number + 2 : last])
            found.append(Table(name_of(page), number + 1, _cells(lines[number]), rows))
            number = last
    return found


def slugs(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
