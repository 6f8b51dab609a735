"""The report: one self-contained HTML file with every table, verdict and figure."""

import csv
import datetime
import html
import io
import platform
import re
from collections import Counter
from collections.abc import Iterable
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np

import selectenv
from experiments.analysis.best_known import best_known
from experiments.analysis.figures import new_figure
from experiments.analysis.verdicts import AGREES
from experiments.engine.cell import Result
from experiments.engine.problems import problem
from experiments.engine.store import ResultsStore
from experiments.engine.study import Row, Study
from experiments.protocol.budgets import BUDGETS, WORLDS
from experiments.studies import find_studies
from selectenv.io.atomic import whole_file
from selectenv.rendering.selection import draw

GATED = ("uniform", "visitation", "brute-force", "sequential-greedy")
"""The strategies whose published figures must agree: their configuration is known."""
DRAWN = ("uniform", "visitation", "guided", "terminal", "terminal-guided")
COLUMNS = (
    "world", "setting", "labels", "strategy", "figure", "ours", "std. error", "95 % interval", "IQM", "gap",
    "better than uniform", "published", "its error", "verdict",
)  # fmt: skip


def build(
    store: ResultsStore, path: Path, *, seeds: int | None = None, csv_path: Path | None = None
) -> dict[str, Counter[str]]:
    """Write the report of everything stored; return the verdicts of each study.

    Args:
        store: the results.
        path: the file to write.
        seeds: seeds that were run, if not the default ones.
        csv_path: where to write all rows as plain text too.
    """
    found: list[tuple[Study, list[Result], list[Row]]] = []
    for study in find_studies().values():
        results = store.results(study.cells(seeds or study.seeds, "exact"))
        if results:
            found.append((study, results, study.rows(results)))
    verdicts = {study.name: count_verdicts(rows) for study, _, rows in found}
    if csv_path is not None:
        csv_path.parent.mkdir(parents=True, exist_ok=True)
        with csv_path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("study", *COLUMNS))
            for study, _, rows in found:
                writer.writerows((study.name, *map(html.unescape, _cells(row))) for row in rows)
    numbering = iter(range(1, 10_000))
    parts = [
        _headline(found),
        *(_study_part(study, results, rows, numbering) for study, results, rows in found),
        *(_world_part(world, found, numbering) for world in WORLDS),
    ]
    links = "".join(f'<li><a href="#{study.name}">{study.name}</a></li>' for study, _, _ in found)
    links += "".join(f'<li><a href="#world-{world}">{world}</a></li>' for world in WORLDS)
    page = resources.files("experiments.analysis").joinpath("templates", "report.html.j2").read_text()
    text = page.replace("<!-- links -->", links).replace("<!-- parts -->", "\n".join(parts))
    text = text.replace("<!-- versions -->", _colophon(found))
    with whole_file(path) as file:
        file.write(text.encode())
    return verdicts


def count_verdicts(rows: Iterable[Row], only: Iterable[str] | None = None) -> Counter[str]:
    """Count the outcomes, of some strategies or of all."""
    wanted = None if only is None else set(only)
    judged = (row for row in rows if row.verdict and row.ours)  # what was not enumerated is not judged
    return Counter(row.verdict.outcome for row in judged if row.verdict and (wanted is None or row.strategy in wanted))


def _headline(found: list[tuple[Study, list[Result], list[Row]]]) -> str:
    """Return the findings in our numbers."""
    gated: Counter[str] = Counter()
    everything: Counter[str] = Counter()
    for _, _, rows in found:
        gated += count_verdicts((row for row in rows if row.world in WORLDS), GATED)
        everything += count_verdicts(rows)
    lines = [
        f"{gated[AGREES]} of {gated.total()} published figures of {', '.join(GATED)} agree with ours; of all "
        f"strategies {everything[AGREES]} of {everything.total()}."
    ]
    entries = best_known()
    proved = sum(entry["certified"] for entry in entries.values())
    lines.append(f"Of the best label sets known, {proved} of {len(entries)} are proved optimal by branch and bound.")
    for study, _, rows in found:
        if study.name.startswith("heuristics"):
            lines.append(f"{study.name}: {_winners(rows)}")
        lines += [f"{study.name}: {finding}" for finding in study.findings(rows)]
    return (
        '<section id="findings"><h2>Findings</h2><ul>'
        + "".join(f"<li>{_e(line)}</li>" for line in lines)
        + "</ul></section>"
    )


def _winners(rows: list[Row]) -> str:
    """Say which strategy is best on average over the budgets, world by world."""
    said = []
    for world in WORLDS:
        means: dict[str, list[float]] = {}
        for row in rows:
            if row.world == world and row.ours:
                means.setdefault(row.strategy, []).append(row.ours.mean)
        if means:
            best = max(means, key=lambda name: float(np.mean(means[name])))
            said.append(f"{world} {best} ({np.mean(means[best]):.2f})")
    return "best on average over the budgets: " + ", ".join(said)


def _study_part(study: Study, results: list[Result], rows: list[Row], numbering: Iterable[int]) -> str:
    """Return a study's table and figures."""
    counts = count_verdicts(rows)
    summary = ", ".join(f"{outcome}: {n}" for outcome, n in counts.items()) or "nothing was published"
    seconds = sum(result.seconds for result in results)
    lines = [_cells(row) for row in rows]
    used = [i for i in range(len(COLUMNS)) if any(line[i] for line in lines)]  # columns without an entry are left out
    head = "".join(f'<th scope="col"><button type="button">{COLUMNS[i]}</button></th>' for i in used)
    body = ""
    for row, line in zip(rows, lines, strict=True):
        kind = row.verdict.outcome if row.verdict else "none"
        body += f'<tr class="{kind}">' + "".join(f"<td>{line[i]}</td>" for i in used) + "</tr>"
    figures = "".join(_figure(title, figure, numbering) for title, figure in study.figures(results).items())
    made = f"{len(results):,} cells, {seconds:,.0f} s of computing. <code>selectenv run {study.name}</code>"
    table = (
        f'<table class="sortable"><caption>{study.name}: ours and published</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
    return (
        f'<section id="{study.name}"><h2>{study.name}</h2><p>{_e(study.question.strip())}</p>'
        f"<p>{_e(summary)}. {made}</p>{figures}"
        f'<details open><summary>Table</summary><div class="wide">{table}</div></details></section>'
    )


def _cells(row: Row) -> list[str]:
    """Return the entries of a row, as text."""
    ours = row.ours
    verdict = (
        ""
        if row.verdict is None
        else f"{row.verdict.outcome}" + (f": {row.verdict.reason}" if row.verdict.reason else "")
    )
    cells = [
        row.world, row.setting, row.labels, row.strategy, row.figure,
        ours.mean if ours else row.note, ours.stderr if ours else None,
        f"{ours.low:.3f} to {ours.high:.3f}" if ours else "", ours.iqm if ours else None, row.gap,
        ours.improvement if ours else None, row.published, row.published_error, verdict,
    ]  # fmt: skip
    return [_cell(cell) for cell in cells]


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.3f}" if isinstance(value, float) else _e(str(value))


def _world_part(world: str, found: list[tuple[Study, list[Result], list[Row]]], numbering: Iterable[int]) -> str:
    """Return a world's pictures: what each strategy labels as the budget grows."""
    doc = selectenv.TABULAR[world].make.__module__
    text = (__import__(doc, fromlist=["_"]).__doc__ or "").strip()
    task, budgets = problem(world), BUDGETS[world]
    orders = {
        result.cell.strategy: result.records[-1]["ids"]
        for study, results, _ in found
        if study.name == "heuristics-uds"
        for result in results
        if result.cell.world == world and result.cell.seed == 0 and result.cell.strategy in DRAWN
    }
    pictures = ""
    if orders:
        figure = new_figure(3.0 * len(budgets), 2.2 * len(orders))
        for i, (strategy, ids) in enumerate(orders.items()):
            for j, labels in enumerate(budgets):
                labelled_at = np.zeros(task.n_states, np.int64)
                labelled_at[task.actions(ids[:labels])] = np.arange(1, labels + 1)
                axes = figure.add_subplot(len(orders), len(budgets), i * len(budgets) + j + 1)
                draw(axes, task, labelled_at, f"{strategy}, {labels}")
        pictures = _figure(f"What strategies label in {world} as the budget grows", figure, numbering)
    command = f"<p><code>selectenv show {world}</code> draws more of them.</p>"
    return f'<section id="world-{world}"><h2>{world}</h2><p>{_e(text)}</p>{pictures}{command}</section>'


def _figure(title: str, figure: Any, numbering: Iterable[int]) -> str:
    """Return a figure as inline SVG whose ids are its own."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text: smaller, and it can be read aloud
        figure.savefig(buffer, format="svg")
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r"\s+", " ", re.sub(r"(\d\.\d)\d+", r"\1", svg)).replace("> <", "><")  # a tenth of a point is enough
    prefix = f"f{next(iter(numbering))}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{_e(title)}" ', 1)
    return f"<figure>{svg}<figcaption>{_e(title)}</figcaption></figure>"


def _colophon(found: list[tuple[Study, list[Result], list[Row]]]) -> str:
    """Return versions, seeds and cost."""
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("gymnasium", "numpy", "numba", "scipy"))
    cells = sum(len(results) for _, results, _ in found)
    seconds = sum(result.seconds for _, results, _ in found for result in results)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return (
        f"<p>selectenv {selectenv.__version__}, Python {platform.python_version()}, {packages}; {today}. "
        f"{cells:,} cells, {seconds / 60:,.1f} minutes of computing.</p>"
    )


def _e(text: str) -> str:
    return html.escape(text)
