"""Pages that set the published numbers beside ours, generated from docs/results.csv."""

import csv
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from experiments.site.markdown_text import table
from experiments.studies import find_studies

Result = dict[str, str]
LEGEND = (
    "Means with standard errors where there are any. Our number is plain where it agrees with the published one, "
    "**bold** where it differs, and *italic* where it cannot be told, because the numbers of other strategies would "
    "agree as well or because there is no such result. "
    "[How a verdict is reached](../../studies.md#how-a-verdict-is-reached) defines these words."
)


@cache
def published_results(path: Path) -> tuple[Result, ...]:
    """Return the rows of the full run for which there is a published number."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(row for row in csv.DictReader(file) if row["published"])


def result_pages(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of one page per study with published numbers, and of the list of them."""
    rows = published_results(path)
    studies = dict.fromkeys(row["study"] for row in rows)
    summary = []
    for study in studies:
        own = [row for row in rows if row["study"] == study]
        yield f"reference/results/{study}.md", _study_page(study, own)
        counts = Counter(_word(row) for row in own)
        judged = [counts[word] for word in ("agrees", "differs", "cannot be told")]
        numbers = len(own), *judged, len(own) - sum(judged)
        summary.append((f"[{study}]({study}.md)", _question(study), *numbers))
    parts = [
        "# Published tables beside ours",
        "One page per study that has published numbers, generated from the [rows of the full run](../../results.csv). "
        "[Studies and results](../../studies.md) says how they were computed, and which published numbers can be told "
        "from those of other strategies.",
        table(("study", "question", "numbers", "agree", "differ", "cannot be told", "not run or not judged"), summary),
        "\n".join(["```{toctree}", ":hidden:", "", *studies, "```"]),
    ]
    yield "reference/results/index.md", "\n\n".join(parts) + "\n"


def _study_page(study: str, rows: list[Result]) -> str:
    parts = [f"# {study}", _question(study), LEGEND]
    for world in dict.fromkeys(row["world"] for row in rows):
        parts += [f"## {world}", *tables([row for row in rows if row["world"] == world])]
    reasons = Counter(_reason(row) for row in rows if _word(row) == "differs")
    if reasons:
        parts += ["## Why numbers differ", table(("reason", "numbers"), reasons.most_common())]
    return "\n\n".join(parts) + "\n"


def tables(rows: list[Result]) -> Iterator[str]:
    """Yield a caption and a table, strategies against numbers of labels, per setting and metric."""
    for setting, metric in dict.fromkeys((row["setting"], row["metric"]) for row in rows):
        chosen = [row for row in rows if (row["setting"], row["metric"]) == (setting, metric)]
        columns = list(dict.fromkeys(row["labels"] for row in chosen))
        cells = {(row["strategy"], row["labels"]): row for row in chosen}
        lines = []
        for strategy in dict.fromkeys(row["strategy"] for row in chosen):
            found = [cells.get((strategy, labels)) for labels in columns]
            lines.append((f"`{strategy}`", "published", *(_number(row, "published", "its error") for row in found)))
            lines.append(("", "ours", *(_judged(row) for row in found)))
        yield f"{metric.capitalize()}{f' ({setting})' if setting else ''}, by number of labels:"
        yield table(("strategy", "", *columns), lines)


def _question(study: str) -> str:
    return " ".join(find_studies()[study].question.split("\n\n")[0].split())


def _word(row: Result) -> str:
    return row["verdict"].partition(":")[0]


def _reason(row: Result) -> str:
    return row["verdict"].partition(": ")[2]


def _number(row: Result | None, value: str, error: str) -> str:
    if row is None or not row[value]:
        return ""
    return f"{row[value]} ±\u00a0{row[error]}" if row[error] else row[value]


def _judged(row: Result | None) -> str:
    number = _number(row, "ours", "std. error")
    if not number or row is None or _word(row) == "agrees":
        return number
    return f"**{number}**" if _word(row) == "differs" else f"*{number}*"
