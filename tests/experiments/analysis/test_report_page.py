"""The report as a page: what it contains, and how it looks in a browser of a laptop's width."""

import json
import re
import shutil
import subprocess

import pytest

from experiments.analysis.figures import new_figure
from experiments.analysis.gathering import StudyResults
from experiments.analysis.report_page import render
from experiments.analysis.row_text import csv_cells
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import WORLDS
from tests.experiments.analysis.committed_rows import PATH, committed_rows
from tests.experiments.analysis.synthetic_rows import row, told

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTH = 1280
LARGEST = 5_000_000


def figure(results):
    drawn = new_figure(6, 3)
    drawn.add_subplot().plot([0, 1], [1, 2])
    return {"A <figure> & more": drawn, "Another": drawn}


def study_results(name, rows, records=(), **more):
    study = Study(name, "Why <not>?", lambda seeds, solver: [], lambda cell: [], lambda results: rows, **more)
    cell = Cell(name, "Graph", "guided", 0)
    return StudyResults(study, [Result(cell, list(records), 90.0)] * 2, rows)


def test_the_page():
    rows = [row(mean=1.5, verdict=told("differs", "a < b & c"), published=2.0, published_error=0.25), row(labels=6)]
    labelled = {"labels": 15, "ids": list(range(15))}
    found = [
        study_results("heuristics-uds", rows, [labelled], figures=figure),
        study_results("other", [row(mean=1.0)]),
    ]
    page = render(found, ["one & only <finding>", "other: <so>", "else: so"], ["selectenv report"])
    assert "<li>one &amp; only &lt;finding&gt;</li>" in page
    assert '<li><a href="#other">other</a>: &lt;so&gt;</li>' in page
    assert "<li>else: so</li>" in page
    assert "<p>Why &lt;not&gt;?</p>" in page
    assert "<figcaption>A &lt;figure&gt; &amp; more</figcaption>" in page
    assert page.count('aria-label="A &lt;figure&gt; &amp; more"') == 1
    assert '<tr class="differs"><td>Graph</td><td>3</td><td>uniform</td>' in page
    assert "<td>1.500 ± 0.000</td><td>2.000 ± 0.250</td>" in page
    assert '<td class="verdict">differs: a &lt; b &amp; c</td>' in page
    assert "differs: 1; by the rule alone 0 of 1 agree (swapped: 1 of 4). 2 cells, 1 seed, 180 s of computing." in page
    assert "No published numbers to compare with. 2 cells, 1 seed, 180 s" in page
    assert "the stored results of 2 studies;" in page
    assert "4 cells, 6.0 minutes of computing" in page
    assert page.count("<svg ") == 4  # published and ours, two of the study, and what guided labels in Graph
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {"summary", "findings", "heuristics-uds", "other", "how", "world-Graph"} <= set(ids)
    assert not any(f"world-{world}" in ids for world in WORLDS if world != "Graph")  # nothing was played there
    assert "<li><code>selectenv report</code></li>" in page
    assert not re.search(r'(src|href)="https?://', re.sub(r'xmlns[^"]*"[^"]*"', "", page))
    assert page.startswith("<!doctype html>")


def test_the_summary_of_the_page():
    """One line per study with published numbers: the result, counts with the control, and why numbers differ."""
    rows = [row(mean=1.5, verdict=told("differs", "a < b")), row(mean=1.5, verdict=told("agrees"), labels=6)]
    page = render([study_results("judged", rows), study_results("other", [row(mean=1.0)])], [])
    summary = re.search(r'<section id="summary">.*?</section>', page, flags=re.DOTALL).group(0)
    (line,) = re.findall(r"<tr class=.*?</tr>", summary, flags=re.DOTALL)
    assert '<tr class="differs"><td class="words"><a href="#judged">judged</a>: Why &lt;not&gt;?</td>' in line
    cells = ["agrees in part", "2 of 2", "1 of 2", "2 of 8", "uniform: 1 of 2", "a &lt; b (1)"]
    assert [re.sub(r"<[^>]*>", "", f"<{cell}").strip() for cell in line.split("<td")[2:]] == cells
    assert "<em>agrees</em> if at least 90 % of the numbers that can be told agree" in summary
    assert "<dt>uniform</dt><dd>Draws every state with the same probability.</dd>" in summary
    assert "<dt>guided</dt>" not in summary
    assert '<section id="summary">' not in render([study_results("other", [row(mean=1.0)])], [])


def test_rows_of_the_committed_results_are_read_without_loss():
    lines = [line for name, rows in committed_rows().items() for line in ([name, *csv_cells(r)] for r in rows)]
    assert [",".join(line) for line in lines[:700]] == [
        line.replace('"', "") for line in PATH.read_text().splitlines()[1:701]
    ]


CHECK = """<script>
  const wide = [...document.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth);
  const verdicts = [...document.querySelectorAll("td.verdict")];
  const hidden = verdicts.filter(cell => cell.getBoundingClientRect().right > innerWidth);
  const clipped = [...document.querySelectorAll("td")].filter(cell => cell.scrollWidth > cell.clientWidth + 1);
  const table = document.querySelector("#heuristics-uds table"), heads = [...table.tHead.rows[0].cells];
  const at = heads.findIndex(cell => cell.textContent === "ours"), head = heads[at];
  const column = () => [...table.tBodies[0].rows].map(r => parseFloat(r.cells[at].textContent));
  head.querySelector("button").click(); const up = column();
  head.querySelector("button").click(); const down = column();
  document.body.dataset.result = JSON.stringify({
    sorted: up.every((v, i) => !i || up[i - 1] <= v) && down.every((v, i) => !i || down[i - 1] >= v),
    aria: head.getAttribute("aria-sort"), tables: document.querySelectorAll("table.sortable").length, rows: up.length,
    wide: wide.map(box => box.closest("section").id), hidden: hidden.length, clipped: clipped.length,
    broken: [...document.querySelectorAll("a[href^='#']")].filter(a => !document.querySelector(a.hash)).length,
    summary: document.querySelector("table.summary").tBodies[0].rows.length,
    cut: [...document.querySelectorAll("figure")].filter(one => one.scrollWidth > one.clientWidth).length,
    page: document.documentElement.scrollWidth, viewport: innerWidth, verdicts: verdicts.length,
    figures: [...document.querySelectorAll("figure svg")].filter(svg => svg.clientHeight > 20).length});
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_on_a_laptop(tmp_path):
    """No column is clipped, verdicts are in view without scrolling, a click sorts, and the console stays silent.

    The page has all committed results and is small enough to be sent by mail.
    """
    committed = committed_rows()
    drawn = {"heuristics-uds": {"figures": figure}}
    found = [study_results(name, rows, **drawn.get(name, {})) for name, rows in committed.items()]
    text = render(found, ["A finding"])
    assert len(text.encode()) < LARGEST
    catch = "<script>window.onerror = (message) => { document.body.dataset.error = message; };</script>"
    page = tmp_path / "report.html"
    page.write_text(text.replace("<head>", f"<head>{catch}").replace("</body>", f"{CHECK}</body>"))
    flags = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"),
        *(f"--window-size={WIDTH},800", "--dump-dom", page.as_uri()),
    ]
    printed = subprocess.run([CHROMIUM, *flags], capture_output=True, text=True, timeout=120, check=True)
    body = re.search(r"<body[^>]*>", printed.stdout).group(0)
    assert "data-error" not in body
    assert "CONSOLE" not in printed.stderr
    result = json.loads(re.search(r'data-result="([^"]*)"', body).group(1).replace("&quot;", '"'))
    assert result["viewport"] <= WIDTH
    assert result["page"] <= result["viewport"]
    assert (result["wide"], result["hidden"], result["clipped"]) == ([], 0, 0)
    assert (result["sorted"], result["aria"]) == (True, "descending")
    assert (result["tables"], result["figures"]) == (len(committed), text.count("<svg "))
    assert (result["broken"], result["cut"], result["summary"]) == (0, 0, 14)
    assert result["rows"] == 210
    assert result["verdicts"] > 1000
