"""What the report gathers, says and writes, with studies made up for the test."""

import csv

import pytest

from experiments.analysis import report
from experiments.analysis.best_known import best_known
from experiments.analysis.gathering import StudyResults, gather
from experiments.analysis.headlines import agreement_sentence, proof_sentence
from experiments.analysis.report import build, sentences, write_csv
from experiments.analysis.row_text import CSV_COLUMNS
from experiments.engine.cell import Cell, Result
from experiments.engine.store import ResultsStore
from experiments.engine.study import Study
from tests.experiments.analysis.synthetic_rows import row, told


def study(name, **more):
    """A study of one cell per seed, whose rows are the returns."""

    def cells(seeds, solver):
        return [Cell(name, "Graph", "uniform", seed, {"solver": solver}) for seed in range(seeds)]

    def rows(results):
        verdict = told("agrees") if name.startswith("heuristics") else None
        return [row(labels=r.cell.seed, mean=r.records[0]["return"], verdict=verdict) for r in results]

    return Study(name, f"{name}: <why>?", cells, lambda cell: [], rows, 3, **more)


STUDIES = [study("heuristics-x"), study("other", findings=lambda rows: [f"{len(rows)} rows & more"]), study("not run")]


@pytest.fixture
def store(tmp_path):
    with ResultsStore(tmp_path / "results.sqlite") as results, results.writing():
        for one in STUDIES[:2]:
            results.add(Result(c, [{"return": 1.0 + c.seed}], 2.0) for c in one.cells(5, "exact"))
        results.add(Result(c, [{"return": 99.0}], 2.0) for c in STUDIES[2].cells(3, "sampled"))
        yield results


def test_studies_with_results_of_the_exact_solver_are_gathered(store):
    found = gather(store, STUDIES)
    assert [(one.study.name, len(one.results), len(one.rows)) for one in found] == [
        ("heuristics-x", 3, 3),
        ("other", 3, 3),
    ]
    assert [r.ours.mean for r in found[0].rows] == [1.0, 2.0, 3.0]
    assert [len(one.rows) for one in gather(store, STUDIES, 5)] == [5, 5]


def test_sentences_say_what_the_rows_say(store):
    assert sentences(iter(gather(store, STUDIES))) == [
        agreement_sentence(one for of_study in gather(store, STUDIES) for one in of_study.rows),
        proof_sentence(best_known()),
        "other: 3 rows & more",
    ]


def test_findings_about_strategies_that_were_not_run_are_left_out():
    one = study("other", findings=lambda rows: ["guided nan, uniform 1.00", "uniform 1.00"])
    assert sentences([StudyResults(one, [], [row(mean=1.0)])]) == [proof_sentence(best_known()), "other: uniform 1.00"]


def test_a_study_of_ones_own_is_reported(store, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "find_studies", lambda: {})
    monkeypatch.setattr(report, "find_study", {"my_module:STUDY": STUDIES[1]}.__getitem__)
    rows = build(store, tmp_path / "report.html", study="my_module:STUDY", seeds=5, only="Graph")
    assert list(rows) == ["other"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<li><code>selectenv run my_module:STUDY</code></li>" in page
    assert "<li><code>selectenv report --study my_module:STUDY --only Graph --seeds 5</code></li>" in page
    assert "0 of 0" not in page


def test_the_csv_file_has_one_line_per_row(tmp_path):
    path = tmp_path / "deep" / "er" / "rows.csv"
    one = StudyResults(STUDIES[0], [], [row(mean=1.5, verdict=told("differs", 'a, "b"'))])
    for _ in range(2):  # the folder may exist
        write_csv([one, one], path)
    assert path.read_bytes().count(b"\r\n") == 3
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["study", *CSV_COLUMNS]
    assert lines[0] == lines[1]
    assert lines[0][:6] + lines[0][-1:] == ["heuristics-x", "Graph", "", "3", "uniform", "return", 'differs: a, "b"']


def test_a_report_is_written_whole(store, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "find_studies", lambda: {one.name: one for one in STUDIES})
    pages = []
    monkeypatch.setattr(report, "render", lambda *content: pages.append(content) or "Tree ± page")
    rows = tmp_path / "rows.csv"
    found_rows = build(store, tmp_path / "deep" / "report.html", seeds=2, csv_path=rows)
    assert {name: len(rows) for name, rows in found_rows.items()} == {"heuristics-x": 2, "other": 2}
    assert (tmp_path / "deep" / "report.html").read_text(encoding="utf-8") == "Tree ± page"
    assert len(rows.read_text().splitlines()) == 5
    ((found, said, commands),) = pages
    assert commands == [
        "selectenv run heuristics-x --seeds 2",
        "selectenv run other --seeds 2",
        "selectenv report --seeds 2",
    ]
    assert [one.study.name for one in found] == ["heuristics-x", "other"]
    assert said == sentences(found)
    found_rows = build(store, tmp_path / "report.html")
    assert found_rows == {one.study.name: one.rows for one in gather(store, STUDIES)}
