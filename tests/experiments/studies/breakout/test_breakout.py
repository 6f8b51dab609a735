"""The studies of Breakout on a few thousand transitions."""

from dataclasses import replace

import numpy as np
import pytest

import selectenv
from experiments.analysis import report
from experiments.analysis.tensorboard_log import TensorBoardLog
from experiments.analysis.verdicts import AGREES, DIFFERS
from experiments.cli import main as cli
from experiments.engine.cell import Result
from experiments.engine.store import ResultsStore
from experiments.protocol.published import reward_sums
from experiments.studies import find_studies
from experiments.studies.game_episodes import expert_file, expert_mark, file_mark

STUDIES = {
    name: study for name, study in find_studies().items() if name.startswith("breakout") and study.cpu_hours is None
}


def small(cell):
    """The same cell on few data."""
    settings = dict(cell.settings)
    options = {name: value for name, value in settings.get("problem", {}).items() if name != "scale"}
    return replace(cell, settings={**settings, "problem": {**options, "dataset_size": 2_500, "rollouts": 5}})


def run(study, seeds, only=lambda cell: True):
    cells = [cell for cell in study.cells(seeds, "exact") if only(cell)]
    return [Result(cell, study.run_cell(small(cell)), 0.1) for cell in cells]


def test_there_is_a_study_for_every_published_table():
    assert set(STUDIES) == {
        "breakout-heuristics",
        "breakout-trained",
        "breakout-rewards",
        "breakout-behaviour-uds",
        "breakout-behaviour-adapted",
        "breakout-coverage",
    }
    assert all(study.solvers == ("exact",) for study in STUDIES.values())


def test_cells_know_the_expert_behind_their_data():
    cells = {cell.settings["variant"]: cell for cell in STUDIES["breakout-heuristics"].cells(1, "exact")}
    assert cells["paper"].settings["expert"] == expert_mark("Breakout")
    assert cells["paper, tabular expert"].settings["expert"] == file_mark(expert_file("Breakout", "tabular"))
    assert len({cell.settings["expert"] for cell in cells.values()}) == 2


def test_tables_learn_the_expectile_of_the_network_from_the_published_data():
    for name, study in STUDIES.items():
        for cell in study.cells(1, "exact"):
            problem = cell.settings["problem"]
            assert problem["scale"] == "paper"
            assert problem.get("expectile") == (None if name == "breakout-rewards" else 0.7)


def test_heuristics():
    study = STUDIES["breakout-heuristics"]
    chosen = ("uniform", "guided")
    results = run(study, 2, lambda cell: cell.strategy in chosen and cell.settings["variant"] == "paper")
    rows = study.rows(results)
    assert {(row.labels, row.strategy) for row in rows} >= {("15 %", "uniform"), ("90 %", "guided")}
    judged = [row for row in rows if row.verdict]
    assert len(judged) == 6
    assert {(row.strategy, row.setting) for row in judged} == {("guided", "paper")}
    assert judged[0].published == 7.13
    assert not any(row.verdict.counted for row in judged)  # the published learner is a network
    assert all(len(record["first"]) == 24 for result in results for record in result.records)
    drawn = study.figures(results)
    assert "Frames of Breakout that are labelled first" in drawn


def test_trained_scores_on_its_own_and_on_fresh_episodes():
    study = STUDIES["breakout-trained"]
    chosen = ("guided", "reduced-brute-force", "full labels")
    results = run(study, 1, lambda cell: cell.strategy in chosen and cell.settings["variant"] == "paper")
    found = {(r.cell.strategy, r.records[0]["labels"]): r.records[0] for r in results}
    full, reduced = found["full labels", ""], found["reduced-brute-force", ""]
    assert reduced["return"] == full["return"]  # under UDS only rewards matter
    assert reduced["fresh"] == full["fresh"]
    assert reduced["size"] < full["size"] == full["states"]
    assert found["guided", "30 %"]["cost"] == 0
    rows = study.rows(results)
    assert {row.metric for row in rows} == {"return", "fresh"}
    published_full = [row.published for row in rows if row.strategy == "reduced-brute-force" and row.published]
    assert published_full == [17.75]
    assert f"all states labelled {full['fresh']:.2f}" in study.findings(rows)[0]
    assert study.figures(results)


def test_evolution_is_among_the_searches():
    cells = STUDIES["breakout-trained"].cells(1, "exact")
    assert {cell.settings["share"] for cell in cells if cell.strategy == "es-1000"} == {
        0.15,
        0.30,
        0.45,
        0.60,
        0.75,
        0.90,
    }


def test_rewards_inside_the_selected_sets():
    study = STUDIES["breakout-rewards"]
    results = run(study, 4)
    records = {(r.cell.strategy, record["share"]): record for r in results for record in r.records}
    for share in (0.146, 0.874):
        assert np.mean(records["visitation", share]["rewards"]) > np.mean(records["uniform", share]["rewards"])
    sums = np.array([records["uniform", share]["rewards"] for share in (0.146, 0.437, 0.874)])
    assert (np.diff(sums, axis=0) >= 0).all()
    assert sums.max() <= records["uniform", 0.146]["total"]
    rows = study.rows(results)
    assert sum(row.verdict.counted for row in rows) == len(reward_sums())
    assert "visitation finds" in study.findings(rows)[0]


def test_shares_of_reward_are_those_of_all_reward():
    study = STUDIES["breakout-rewards"]
    cell = next(cell for cell in study.cells(1, "exact") if cell.strategy == "uniform")
    records = [{"labels": "15 %", "share": 0.146, "rewards": [14_000.0, 14_001.0], "total": 100_000.0}]
    (row,) = study.rows([Result(cell, records, 0.1)])
    assert str(row.verdict) == "same share: 0.14 of the return with full labels, published 0.14"
    records[0]["total"] = 50_000.0
    (row,) = study.rows([Result(cell, records, 0.1)])
    assert row.verdict.outcome == DIFFERS


@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_behaviour(learner):
    study = STUDIES[f"breakout-behaviour-{learner}"]
    results = run(study, 1)
    assert len(results) == 5
    labels = {record["labels"] for record in results[0].records}
    assert labels == {"0 %", "15 %", "30 %", "45 %", "60 %", "75 %", "90 %", "100 %"}
    rows = study.rows(results)
    assert len(rows) == sum(row.published is not None for row in rows) == 40
    assert all(row.verdict.control.others == 4 for row in rows)


def test_the_printed_ratio_is_the_share_of_random_actions():
    study = STUDIES["breakout-behaviour-uds"]
    cells = {cell.settings["problem"]["expert_share"]: cell for cell in study.cells(1, "exact")}
    assert sorted(cells) == [0.0, 0.3, 0.5, 0.7, 1.0]
    for expert, random in ((0.7, 17.70), (0.3, 7.60), (1.0, 0.87), (0.0, 5.49)):
        twice = [replace(cells[expert], seed=seed) for seed in (0, 1)]
        (row,) = study.rows([Result(cell, [{"labels": "90 %", "return": random}], 0.1) for cell in twice])
        assert row.published == random
        assert row.verdict.outcome == AGREES


def test_coverage():
    study = STUDIES["breakout-coverage"]
    results = run(study, 1)
    rows = study.rows(results)
    states = [row for row in rows if row.metric == "unique states"]
    assert [row.published for row in states] == [99254, 26255, 13731, 7110, 3535]
    assert states[0].strategy == "random share 0"
    assert results[0].cell.settings["problem"]["expert_share"] == 1.0
    assert all(row.verdict.outcome == DIFFERS for row in states)  # so few data cover little
    assert study.figures(results)
    assert f"random share 0: {states[0].ours.mean:,.0f} states" in study.findings(rows)[0]


def test_the_report_shows_games(tmp_path):
    study = STUDIES["breakout-heuristics"]
    cells = [
        cell for cell in study.cells(1, "exact") if cell.strategy == "uniform" and cell.settings["variant"] == "paper"
    ]
    records = [{"labels": "15 %", "share": 0.15, "return": 3.0, "states": 9}]
    with ResultsStore(tmp_path / "r.sqlite") as store, store.writing():
        store.add([Result(cell, records, 0.1) for cell in cells])
        report.build(store, tmp_path / "report.html", seeds=1)
    text = (tmp_path / "report.html").read_text()
    assert 'id="breakout-heuristics"' in text
    assert "15 %" in text
    assert '<a href="#breakout-heuristics">breakout-heuristics</a>: paper, mean over budgets: uniform 3.00' in text


def test_the_command_refuses_what_the_study_has_not(capsys, tmp_path):
    results = ["--results", str(tmp_path / "r.sqlite")]
    assert cli.main(["run", "breakout-heuristics", "--solver", "sampled", *results]) == 1
    assert "has no sampled solver" in capsys.readouterr().err
    assert cli.main(["run", "breakout-heuristics", "--scale", "papr", *results]) == 1
    assert "Did you mean 'paper'" in capsys.readouterr().err
    assert cli.main(["run", "breakout-heuristics", "--only", "Breakot", *results]) == 1
    assert "Did you mean 'Breakout'" in capsys.readouterr().err


def test_a_game_in_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    study = STUDIES["breakout-trained"]
    for cell in study.cells(1, "exact"):
        if cell.strategy == "guided" and cell.settings["variant"] == "paper" and cell.settings["share"] in (0.15, 0.9):
            TensorBoardLog(tmp_path, study.problem_of).log(Result(small(cell), study.run_cell(small(cell)), 0.1))
    (folder,) = {path.parent for path in tmp_path.rglob("events.*")}
    log = EventAccumulator(str(folder)).Reload()
    assert log.Tags()["images"] == ["selection"]
    assert {event.step for event in log.Scalars("performance")} == {15, 90}
    assert "gap" not in log.Tags()["scalars"]


def test_what_is_labelled_in_a_game_is_drawn(tmp_path, capsys, monkeypatch):
    made = selectenv.make_env
    monkeypatch.setattr(selectenv, "make_env", lambda world, **options: made(world, dataset_size=2_500, **options))
    assert cli.main(["show", "Breakout", "--strategies", "uniform", "--out", str(tmp_path)]) == 0
    assert "uniform" in capsys.readouterr().out
    assert (tmp_path / "Breakout-24.png").stat().st_size > 1_000
