"""Every study runs on a small scale, is compared with the published tables, and appears in the report."""

import csv
import math
import re

import numpy as np
import pytest

import agents
import experiments.studies.tabular.combinations as combinations
from experiments.analysis.best_known import best_known
from experiments.analysis.verdicts import allowed_returns
from experiments.cli import main as cli
from experiments.cli import study_commands
from experiments.engine.cell import Cell
from experiments.engine.problems import problem
from experiments.protocol.budgets import BUDGETS, WORLDS, all_budgets
from experiments.studies import find_studies, game_episodes
from experiments.studies.selectors.unseen_worlds import GAME, RANDOM
from experiments.studies.selectors.zero_call_cells import LARGER, RANDOM_WORLDS
from experiments.studies.tabular import cost, search_results
from experiments.studies.tabular.patterns import pattern_states
from experiments.studies.tabular.search_results import make_agent
from selectenv import WORLDS as WORLD_ROWS

STUDIES = {
    name: study
    for name, study in find_studies().items()
    if not name.startswith(("breakout", "minatar", "control", "prediction"))
}
SMALL = {"Graph": ("uniform", "guided", "sequential-greedy", "es-50", "best known", "20%", "es-10x5", "es-3x20")}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A results file with a corner of every study."""
    folder = tmp_path_factory.mktemp("studies")
    path = folder / "results.sqlite"
    for study in STUDIES.values():
        wanted = [c.strategy for c in study.cells(2, "exact") if c.world == "Graph" and c.strategy in SMALL["Graph"]]
        for strategy in dict.fromkeys(wanted):
            command = ["run", study.name, "--seeds", "2", "--only", f"Graph/{strategy}", "--results", str(path)]
            assert cli.main(command) == 0
    return path


def test_fifteen_studies_without_games_are_found():
    assert set(STUDIES) == {
        "heuristics-uds",
        "heuristics-adapted",
        "trained-uds",
        "trained-adapted",
        "es-iterations",
        "es-population",
        "initial-sample",
        "schedules",
        "combinations",
        "cost",
        "patterns",
        "behaviour",
        "imputation",
        "learned",
        "zero-call",
    }


@pytest.mark.parametrize("name", STUDIES)
def test_studies_compare(name, results, capsys):
    assert cli.main(["compare", name, "--seeds", "2", "--results", str(results)]) == 0
    printed = capsys.readouterr().out
    assert "Graph" in printed
    assert STUDIES[name].question.strip() in printed


@pytest.mark.parametrize("name", STUDIES)
def test_cells_are_distinct_and_worlds_known(name):
    cells = STUDIES[name].cells(2, "exact")
    assert len({cell.key for cell in cells}) == len(cells)
    more = {"learned": (RANDOM, GAME), "zero-call": (*RANDOM_WORLDS, *LARGER)}
    assert {cell.world for cell in cells} <= {*WORLDS, *more.get(name, ())}
    assert all(isinstance(cell, Cell) and cell.study == name for cell in cells)


def test_report(results, tmp_path, capsys):
    page = tmp_path / "deep" / "report.html"
    rows = tmp_path / "rows.csv"
    assert cli.main(["report", "--seeds", "2", "--results", str(results), "--out", str(page), "--csv", str(rows)]) == 0
    with rows.open() as file:
        stored = list(csv.DictReader(file))
    assert {row["study"] for row in stored} == set(STUDIES)
    text = page.read_text()
    for name in STUDIES:
        assert f'<section id="{name}">' in text
        assert f"selectenv run {name}" in text
    for world in WORLDS:  # worlds without results have no section
        assert (f'<section id="world-{world}">' in text) == any(row["world"] == world for row in stored)
    assert text.count("<svg") >= 9
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert not re.search(r'(src|href)="https?://', re.sub(r'xmlns[^"]*"[^"]*"', "", text))
    assert [entry.name for entry in page.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["run", "heuristic-uds"], "Did you mean 'heuristics-uds'"),
        (["run", "heuristics-uds", "--seeds", "0"], "--seeds must be"),
        (["run", "heuristics-uds", "--jobs", "0"], "--jobs must be"),
        (["run", "heuristics-uds", "--only", "Grap"], "Did you mean 'Graph'"),
        (["run", "heuristics-uds", "--only", "Graph/guidd"], "Did you mean 'guided'"),
        (["run", "heuristics-uds", "--solver", "fast"], "exact, sampled"),
        (["compare", "heuristics-uds"], "there are no results"),
        (["report"], "there are no results"),
        (["show", "Tre"], "Did you mean 'Tree'"),
        (["show", "Tree", "--labels", "99"], "out of range"),
        (["show", "Tree", "--strategies", "guidd"], "Did you mean 'guided'"),
        (["best", "Tre"], "Did you mean 'Tree'"),
    ],
)
def test_errors_without_tracebacks(command, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command) == 1
    error = capsys.readouterr().err
    assert re.search(r"^error: ", error, flags=re.MULTILINE)
    assert "Traceback" not in error
    assert message in error


def test_a_strategy_of_some_studies_can_be_asked_of_all(tmp_path, capsys):
    results = str(tmp_path / "r.sqlite")
    assert cli.main(["run", "all", "--only", "Graph/sequential-greedy", "--seeds", "1", "--results", results]) == 0
    printed = capsys.readouterr().out
    assert "trained-uds: 5 cells run" in printed
    assert "heuristics-uds: 0 cells run" in printed


def test_list_show_and_best(tmp_path, capsys):
    assert cli.main(["list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in STUDIES)
    assert (
        cli.main(
            ["show", "Graph", "--labels", "3", "--strategies", "uniform", "sequential-greedy", "--out", str(tmp_path)]
        )
        == 0
    )
    assert (tmp_path / "Graph-3.png").exists()
    assert cli.main(["best", "Graph", "--learner", "uds"]) == 0
    assert "optimal" in capsys.readouterr().out


def test_tensorboard_shows_performance_gap_calls_and_image(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    results, logs = str(tmp_path / "r.sqlite"), tmp_path / "logs"
    for study in ("heuristics-uds", "trained-uds"):
        command = ["run", study, "--seeds", "1", "--only", "Graph/guided", "--results", results]
        assert cli.main([*command, "--tensorboard", str(logs)]) == 0
    (run,) = (logs / "heuristics-uds").rglob("events*")
    events = EventAccumulator(str(run.parent))
    events.Reload()
    assert {"performance", "gap"} <= set(events.Tags()["scalars"])
    assert [event.step for event in events.Scalars("performance")] == list(BUDGETS["Graph"])
    assert events.Images("selection")[0].encoded_image_string[:4] == b"\x89PNG"
    (first, *others) = sorted((logs / "trained-uds").rglob("events*"))
    assert len(others) == 4
    events = EventAccumulator(str(first.parent))
    events.Reload()
    assert "cost" in events.Tags()["scalars"]


def own_world():
    return WORLD_ROWS["Graph"].make()


def test_tuning_guided_in_an_own_world(tmp_path, capsys):
    command = ["tune-guided", f"{__name__}:own_world", "--seeds", "1", "--storage", str(tmp_path / "study.log")]
    for trials in ("2", "4", "4"):
        assert cli.main([*command, "--trials", trials]) == 0
    lines = capsys.readouterr().out.splitlines()
    default, best = float(lines[-2].split()[-1]), float(lines[-1].split()[3])
    assert best >= default  # the default is the first trial
    for wrong in ("no_module:world", f"{__name__}:BUDGETS", f"{__name__}:find_studies", "Grap"):
        assert cli.main(["tune-guided", wrong, "--trials", "1"]) == 1


def test_interrupting_prints_how_to_resume(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(study_commands, "run_cells", interrupted)
    assert cli.main(["run", "patterns"]) == 130
    assert "repeat the command to resume" in capsys.readouterr().err


@pytest.mark.parametrize("key", best_known())
def test_best_known_returns_can_be_recomputed(key):
    world, learner, labels = key.split("/")
    entry = best_known()[key]
    task = problem(world, {"learner": learner})
    assert len(set(entry["ids"])) == int(labels)
    assert task.performance(task.actions(entry["ids"])) == pytest.approx(entry["return"], abs=1e-9)
    assert entry["certified"] == (entry["distance_to_bound"] == 0)
    assert entry["return"] + entry["distance_to_bound"] <= allowed_returns(world)[1] + 1e-9


def test_best_known_is_complete():
    wanted = {f"{w}/{learner}/{b}" for w in WORLDS for learner in ("uds", "adapted") for b in all_budgets(w)}
    assert wanted <= set(best_known())


def test_patterns():
    graph = pattern_states(WORLD_ROWS["Graph"].make())
    assert np.flatnonzero(graph["on optimal paths"]).tolist() == [0, 1, 3, 5, 7, 9, 11, 13]
    tree = pattern_states(WORLD_ROWS["Tree"].make())
    assert np.flatnonzero(tree["on optimal paths"]).tolist() == [0, 1, 3, 7, 15]
    trap = WORLD_ROWS["TwoRoomsTrap"].make()
    assert 12 in trap.ids[pattern_states(trap)["at penalties"]]


def test_combinations_cover_every_set():
    cell = combinations.cells(1, "exact")[0]
    (record,) = combinations.run_cell(cell)
    assert record["tried"] == record["sets"] == math.comb(15, 3) == sum(record["heights"])
    assert record["quantiles"][-1] == pytest.approx(7)


def test_names_of_evolution_strategies():
    agent = make_agent("es-8x15")
    assert (agent.iterations, agent.population) == (8, 15)
    assert BUDGETS["Tree"] == (3, 9, 15, 21, 27)


@pytest.mark.parametrize("options", [search_results.OPTIONS, cost.MORE_OPTIONS, game_episodes.OPTIONS])
def test_options_of_strategies_exist(options):
    for strategy, chosen in options.items():
        agent = agents.make(strategy, **chosen)
        assert {name: getattr(agent, name) for name in chosen} == chosen
