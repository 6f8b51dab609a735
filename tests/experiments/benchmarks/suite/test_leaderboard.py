"""`selectenv benchmark`: an entry of the leaderboard is reproduced, files are checked, the page is current."""

import json

import pytest

import agents
from experiments.benchmarks.suite.benchmark_run import QUICK_UNITS, describe, end_processes, run_cell, suite_cells
from experiments.benchmarks.suite.benchmark_scores import BASELINES
from experiments.benchmarks.suite.leaderboard_page import BEGIN, END, markdown, ranked
from experiments.benchmarks.suite.result_files import FOLDER, committed, file_name, read_result, summary, write_result
from experiments.cli import main as cli
from experiments.errors import BenchmarkError, StrategyFailedError
from tests.markdown_pages import ROOT

MISSING = {"imagine", "auto"}
"""Training-free strategies that are not on the page yet."""


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    end_processes()


def test_a_quick_run_reproduces_an_entry_of_the_leaderboard(tmp_path, capsys):
    arguments = ["benchmark", "guided", "--quick", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    found, kept = read_result(tmp_path / "guided.json"), committed()["guided"]
    assert found["quick"]
    assert found["results"].keys() == kept["results"].keys()
    for place, rules in kept["results"].items():
        for rule, row in rules.items():
            for budget, returns in row["returns"].items():
                mine = found["results"][place][rule]["returns"][budget]
                assert mine == pytest.approx(returns[:QUICK_UNITS], rel=1e-6, abs=1e-9), (place, rule, budget)
    gaps = summary(found)["gaps"]
    assert all(str(gaps[group]) in printed for group in ("all", "tabular", "random", "uds", "adapted"))
    assert (tmp_path / "benchmark.png").stat().st_size > 1000
    assert cli.main(arguments) == 0  # nothing is played again
    assert read_result(tmp_path / "guided.json")["results"] == found["results"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["benchmark"], "name at least one strategy"),
        (["benchmark", "guidde"], "Did you mean 'guided'"),
        (["benchmark", "guided", "--jobs", "0"], "--jobs"),
        (["benchmark", "no_such_module:Strategy"], "there is no module 'no_such_module'"),
    ],
)
def test_wrong_arguments(arguments, message, tmp_path, capsys):
    assert cli.main([*arguments, "--out", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_a_strategy_that_fails_says_where(tmp_path, capsys):
    (cell, *_) = suite_cells("adaptive-mixture", ("tabular",), "", 1)
    with pytest.raises(StrategyFailedError, match="adaptive-mixture failed: NoEvaluatorError"):
        run_cell(cell)


def test_another_version_of_a_strategy_is_run_again():
    mine, other = (suite_cells("guided", ("tabular",), code, 1)[0].key for code in ("a", "b"))
    assert mine != other
    assert len(describe("guided")["code"]) == 16


def test_result_files_are_checked(tmp_path):
    kept = committed()["guided"]
    path = tmp_path / file_name("my_module:MyStrategy")
    assert path.name == "my_module.MyStrategy.json"
    write_result(kept, path)
    assert read_result(path) == kept
    for damaged in ({**kept, "suite": "v0"}, {**kept, "suite_hash": {"tabular": "0"}}, {**kept, "format": "?"}, {}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(BenchmarkError, match=r"my_module\.MyStrategy\.json"):
            read_result(path)


def test_every_training_free_strategy_is_on_the_leaderboard():
    free = {name for name, row in agents.AGENTS.items() if row.kind.taxonomy.evaluator == "never"}
    assert free - MISSING <= set(committed())
    assert set(BASELINES) <= set(committed())
    for path in FOLDER.glob("*.json"):
        result = json.loads(path.read_text())
        assert path.name == file_name(result["strategy"])
        assert not result["quick"]


def test_the_page_is_generated_from_the_committed_files():
    text = (ROOT / "docs/leaderboard.md").read_text(encoding="utf-8")
    summaries = {name: summary(result) for name, result in committed().items()}
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == markdown(summaries).strip(), (
        "run `python -m experiments.benchmarks.suite.leaderboard_page`"
    )
    gaps = [summaries[name]["gaps"]["all"].value for _, name in ranked(summaries)]
    assert gaps == sorted(gaps)
