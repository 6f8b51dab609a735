"""User-defined worlds and strategies in every command: module:function, module:Class, and files."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agents
import selectenv
from experiments.analysis.best_known import best_known
from experiments.cli import main as cli
from experiments.cli import world_commands
from experiments.engine.cell import Cell
from experiments.engine.own_cells import budgets_of, chosen_cells, is_own_strategy, is_own_world
from experiments.engine.store import ResultsStore
from experiments.errors import UnreplaceableError
from experiments.studies import find_studies
from selectenv.errors import UnknownNameError
from tests.selectenv.test_references import CORRIDOR

ROOT = Path(__file__).parents[3]
STRATEGY = """
from dataclasses import dataclass

import agents


@dataclass
class Rarest(agents.RankingAgent):
    name = "rarest"
    taxonomy = agents.Taxonomy(test_loop="open", training="none", evaluator="never")

    def scores(self, obs, info):
        return agents.base.only_open(-obs["visitation"].astype(float), info)
"""
STUDY = """
import numpy as np

import agents
import selectenv
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell
from experiments.engine.study import Study


def cells(seeds, solver):
    return [Cell("own", "Graph", "uniform", seed) for seed in range(seeds)]


def run_cell(cell):
    return [{"return": float(cell.seed)}]


def rows(results):
    returns = [record["return"] for result in results for record in result.records]
    return [Row("Graph", 6, "uniform", "return", summarise(np.array(returns)), None)]


STUDY = Study("own", "Why?", cells, run_cell, rows, seeds=3)
TAKEN = Study("cost", "Why?", cells, run_cell, rows, seeds=3)
"""
WORLD, RAREST = "own_world:corridor", "own_strategy:Rarest"
RESULTS = ["--results", "results.sqlite", "--seeds", "2"]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """Work in a directory with user-defined modules, which is not on the path of Python."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    (tmp_path / "own_world.py").write_text(CORRIDOR)
    (tmp_path / "own_strategy.py").write_text(STRATEGY)
    (tmp_path / "own_study.py").write_text(STUDY)
    yield tmp_path
    assert str(tmp_path) not in sys.path
    for name in ("own_world", "own_strategy", "own_study"):
        sys.modules.pop(name, None)


def lines(capsys, *command):
    assert cli.main(list(command)) == 0
    return capsys.readouterr().out.splitlines()


def test_show(capsys, directory):
    found = lines(capsys, "show", WORLD, "--labels", "2", "--strategies", "terminal", RAREST)
    assert [line.split()[0] for line in found[:2]] == ["terminal", RAREST]
    assert (directory / "out" / "own_world-corridor-2.png").exists()
    found = lines(capsys, "show", "Graph", "--labels", "3", "--strategies", RAREST)
    assert found[0].startswith(f"{RAREST} ")


def test_figures_of_show_have_a_title(directory, monkeypatch):
    drawn = []
    monkeypatch.setattr(world_commands, "selections_figure", lambda *content: drawn.append(content))
    cli.main(["show", WORLD, "--labels", "1", "--strategies", "terminal"])
    ((_, panels, _, title),) = drawn
    assert (list(panels), title) == (["terminal: return 1.00"], f"{WORLD}, 1 label")


def test_show_plays_files(capsys, directory):
    agent = agents.make("sequential-greedy")
    agent.train(selectenv.make_env("Graph", budget=3))
    agent.save("greedy.json")
    found = lines(capsys, "show", "Graph", "--labels", "3", "--strategies", "greedy.json", "sequential-greedy")
    assert found[0].split()[1:] == found[1].split()[1:]


def test_run_compare_and_report(capsys, directory):
    for only, cells in (
        (f"{WORLD}/{RAREST}", 2),
        (f"Graph/{RAREST}", 2),
        (f"{WORLD}/uniform", 2),
        ("Graph/uniform", 2),
    ):
        found = lines(capsys, "run", "heuristics-uds", "--only", only, *RESULTS, "--tensorboard", "logs")
        assert found == [f"heuristics-uds: {cells} cells run, 0 already stored in results.sqlite"]
    assert (directory / "logs/heuristics-uds/own_world-corridor/own_strategy-Rarest/uds/seed-1").is_dir()
    found = lines(capsys, "compare", "heuristics-uds", "--only", f"{WORLD}/{RAREST}", *RESULTS)
    rows = [line.split() for line in found if line.startswith(WORLD)]
    assert [row[1] for row in rows] == ["1", "3", "4", "5"]
    assert all(row[2] == RAREST for row in rows)
    assert not any("nan" in line for line in found)  # no best set is known there
    lines(capsys, "report", *RESULTS, "--csv", "all.csv")
    named = re.findall(r"^heuristics-uds,([^,]*),[^,]*,\d+,([^,]*)", Path("all.csv").read_text(), flags=re.MULTILINE)
    assert set(named) == {(world, strategy) for world in (WORLD, "Graph") for strategy in (RAREST, "uniform")}
    with Path("all.csv").open(newline="") as file:
        improvements = [row["better than uniform"] for row in csv.DictReader(file) if row["strategy"] == RAREST]
    assert all(improvements)  # over uniform in the same world
    assert RAREST in Path("out/report.html").read_text()
    lines(capsys, "report", *RESULTS, "--only", f"Graph/{RAREST}", "--csv", "own.csv")
    assert {tuple(line.split(",")[1:5:3]) for line in Path("own.csv").read_text().splitlines()[1:]} == {
        ("Graph", RAREST)
    }


@pytest.mark.parametrize("study", ["trained-uds", "cost", "initial-sample", "behaviour"])
def test_other_studies_run_in_ones_own_world(study, capsys, directory):
    lines(capsys, "run", study, "--only", f"{WORLD}/{RAREST}", "--results", "results.sqlite", "--seeds", "1")
    with ResultsStore("results.sqlite") as store:
        assert {(cell.world, cell.strategy) for cell in store.cells(study)} == {(WORLD, RAREST)}
    assert lines(capsys, "report", "--seeds", "1", "--results", "results.sqlite")


def test_local_processes_find_the_modules(directory):
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.pop(0); from experiments.cli.main import main; sys.exit(main())",
    ]
    run = ["run", "heuristics-uds", "--only", f"{WORLD}/{RAREST}", "--seeds", "2", "--jobs", "2"]
    done = subprocess.run(
        [*command, *run], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (
        0,
        "heuristics-uds: 2 cells run, 0 already stored in out/results.sqlite\n",
    )


def test_best(capsys, directory):
    found = lines(capsys, "best", WORLD, "--learner", "uds", "--labels", "2", "--strategies", RAREST)
    assert found[0].split()[3:6] == ["return", "gap", "proved"]
    assert found[2].split()[:6] == [WORLD, "uds", "2", "1.0000", "optimal", "exact"]
    assert found[3].split()[3:6] == ["1.0000", "0.000", RAREST]
    assert f"{WORLD}/uds/2" not in best_known()
    found = lines(capsys, "best", "Graph", "--learner", "uds", "--labels", "3", "--strategies", RAREST)
    best, ours = (line.split() for line in found[2:])
    assert float(best[3]) - float(ours[3]) == pytest.approx(float(ours[4]))
    assert "gap" not in lines(capsys, "best", "Graph", "--learner", "uds", "--labels", "3")[0]


def test_a_study_in_one_file(capsys, directory):
    for jobs, cells in (("1", 3), ("2", 0)):
        (found,) = lines(capsys, "run", "own_study:STUDY", "--jobs", jobs)
        assert found.startswith(f"own: {cells} cells run")
    assert lines(capsys, "run", "own_study:STUDY", "--jobs", "2", "--seeds", "5")[0].startswith("own: 2 cells run")
    found = lines(capsys, "compare", "own_study:STUDY")
    assert (found[0], found[-1].split()) == ("own: Why?", ["Graph", "6", "uniform", "1.000", "0.577"])
    found = lines(capsys, "report", "--study", "own_study:STUDY", "--out", "own.html")
    assert found == ["without published numbers: own", "", "report: own.html"]
    assert "selectenv run own_study:STUDY" in (directory / "own.html").read_text()


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ("own_stdy:STUDY", "did you mean 'own_study'"),
        ("own_study:STUDIES", "has no study 'STUDIES'"),
        ("own_study:cells", "must be a Study, not <function"),
        ("own_study:TAKEN", "is called 'cost', and so is another study"),
        ("heuristics", "Did you mean 'heuristics-uds'"),
    ],
)
def test_wrong_studies_are_named_in_every_command(study, message, capsys):
    for command in (["run", study], ["compare", study], ["report", "--study", study]):
        assert cli.main(command) == 1
        assert message in capsys.readouterr().err


def test_demo(capsys):
    found = lines(capsys, "demo", "--only", RAREST, "--budgets", "3", "--seeds", "2")
    assert any(f" {RAREST} " in line for line in found)
    assert cli.main(["demo", "--only", "own_strategy:Rares"]) == 1
    assert "did you mean 'Rarest'" in capsys.readouterr().err


def test_tune_guided(capsys):
    found = lines(capsys, "tune-guided", WORLD, "--trials", "1", "--seeds", "1")
    assert found[0].startswith("default schedule: ")


@pytest.mark.parametrize(
    "command",
    [
        ["show", "?"],
        ["best", "?"],
        ["tune-guided", "?"],
        ["run", "heuristics-uds", "--only", "?"],
        ["compare", "heuristics-uds", "--only", "?"],
        ["report", "--only", "?"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    ("world", "message"),
    [
        ("own_wrld:corridor", "there is no module 'own_wrld'"),
        ("own_world:coridor", "did you mean 'corridor'"),
        ("own_world:NUMBER", "must be a function that returns a world"),
        ("own_world:number", "not int"),
        ("own_world:", "write module:name"),
    ],
)
def test_wrong_worlds_are_named_in_every_command(command, world, message, capsys):
    assert cli.main([world if part == "?" else part for part in command]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["show", "Graph", "--labels", "2", "--strategies", "?"],
        ["best", "Graph", "--labels", "3", "--strategies", "?"],
        ["run", "heuristics-uds", "--only", "Graph/?"],
        ["compare", "heuristics-uds", "--only", "Graph/?"],
        ["report", "--only", "Graph/?"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("own_strateg:Rarest", "did you mean 'own_strategy'"),
        ("own_strategy:Rares", "did you mean 'Rarest'"),
        ("own_world:corridor", "must be a dataclass that derives from agents.Agent"),
        ("none.zip", "there is no saved strategy 'none.zip'"),
        ("none.json", "none.json"),
    ],
)
def test_wrong_strategies_are_named_in_every_command(command, strategy, message, capsys):
    assert cli.main([part.replace("?", strategy) for part in command]) == 1
    assert message in capsys.readouterr().err


def test_what_takes_the_place_of_what():
    sys.path.append(os.getcwd())
    try:
        assert is_own_world(WORLD)
        assert not any(map(is_own_world, ("Graph", "Breakout", "CartPole")))
        control = find_studies()["control-heuristics"].cells(2, "exact")
        mine = chosen_cells(control, "CartPole/full labels")
        assert [(cell.settings["variant"], cell.seed) for cell in mine] == [
            ("table", 0),
            ("table", 1),
            ("network", 0),
            ("network", 1),
        ]
        assert {cell.strategy for cell in chosen_cells(control, f"CartPole/{RAREST}")} == {RAREST}
        assert is_own_strategy("a/b.zip")
        assert not is_own_strategy("guided")
        assert not is_own_strategy("nothing")
        assert budgets_of(WORLD) == (1, 3, 4, 5)  # of six states
        assert budgets_of("Graph") == (3, 6, 9, 12, 15)
        cells = find_studies()["heuristics-uds"].cells(3, "exact")
        own = chosen_cells(cells, f"{WORLD}/{RAREST}")
        assert own == [
            Cell("heuristics-uds", WORLD, RAREST, seed, {**cells[0].settings, "budgets": (1, 3, 4, 5)})
            for seed in range(3)
        ]
        trained = find_studies()["trained-uds"].cells(2, "exact")
        assert [cell.settings["budget"] for cell in chosen_cells(trained, f"{WORLD}/exact")] == [1, 3, 4, 5]
        assert len(chosen_cells(trained, f"Graph/{RAREST}")) == 10  # five budgets, two seeds
        with pytest.raises(UnreplaceableError, match="plays no strategies"):
            chosen_cells(find_studies()["patterns"].cells(1, "exact"), WORLD)
        with pytest.raises(UnreplaceableError, match="take the place"):
            chosen_cells(find_studies()["schedules"].cells(1, "exact"), f"Graph/{RAREST}")
        with pytest.raises(UnknownNameError, match="unknown strategy 'guidd'"):
            chosen_cells(cells, "Graph/guidd")
        assert chosen_cells(cells, "Graph/learned", must_have=False) == []
    finally:
        sys.path.remove(os.getcwd())
