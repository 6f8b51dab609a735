"""The studies of the control worlds: cells, records of a small scale, rows, findings and figures."""

from dataclasses import replace

import numpy as np
import pytest

import agents
import selectenv
from experiments.engine.cell import Result
from experiments.studies import find_studies, training_checkpoints
from experiments.studies.control import control_cells, control_groups, control_heuristics
from experiments.studies.control.control_cells import FULL, NONE, WORLDS, record, return_range

STUDIES = {name: study for name, study in find_studies().items() if name.startswith("control")}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(training_checkpoints, "TRAINING", tmp_path / "training")
    monkeypatch.setattr(control_cells, "FRESH_EPISODES", 3)


def small(cell, groups=20):
    """The same cell on few data."""
    kind = cell.settings["problem"]["groups"]
    problem = {**cell.settings["problem"], "dataset_size": 1_500, "groups": kind if kind == "episode" else groups}
    return replace(cell, settings={**cell.settings, "problem": problem})


def made_up(cell):
    """Records such as a cell gives, made up."""
    rng = np.random.default_rng(int(cell.key, 16) % 2**32)
    shares = [cell.settings["share"]] if "share" in cell.settings else [None]
    if cell.study == "control-groups":
        shares = [1.0, *control_groups.SHARES]
    elif cell.strategy in control_heuristics.HEURISTICS and cell.settings["variant"] == "table":
        shares = list(control_cells.SHARES)
    records = [
        {"labels": "" if share is None else f"{round(100 * share)} %", "return": 9.0, "normalised": rng.random()}
        for share in shares
    ]
    return Result(cell, records, 0.1)


def test_there_are_two():
    assert set(STUDIES) == {"control-heuristics", "control-groups"}


def test_every_strategy_that_never_asks_is_compared():
    free = {name for name, row in agents.AGENTS.items() if row.kind.taxonomy.evaluator == "never"}
    assert free == {*control_heuristics.HEURISTICS}
    cells = STUDIES["control-heuristics"].cells(10, "exact")
    tables = [cell for cell in cells if cell.settings["variant"] == "table"]
    assert {(cell.world, cell.strategy) for cell in tables} == {
        (world, name) for world in WORLDS for name in (*free, "best-of", "es-200", FULL, NONE)
    }
    networks = [cell for cell in cells if cell.settings["variant"] == "network"]
    assert len(networks) == 3 * (4 + 4 * 2 * 4)  # datasets; full labels in four worlds; budgets, worlds, strategies
    assert [cell.strategy for cell in cells[:8]] == [FULL, NONE] * 4


def test_other_data_and_other_networks_give_other_cells(monkeypatch):
    before = {cell.key for cell in STUDIES["control-heuristics"].cells(1, "exact")}
    row = selectenv.CONTROL["CartPole"]
    fast = replace(row.defaults.learning.fast, updates=7)
    defaults = replace(row.defaults, learning=replace(row.defaults.learning, fast=fast))
    monkeypatch.setitem(selectenv.CONTROL, "CartPole", replace(row, defaults=defaults))
    changed = [cell for cell in STUDIES["control-heuristics"].cells(1, "exact") if cell.key not in before]
    assert {(cell.world, cell.settings["variant"]) for cell in changed} == {("CartPole", "network")}
    monkeypatch.setitem(selectenv.CONTROL, "CartPole", replace(row, defaults=replace(row.defaults, expert_share=0.6)))
    changed = [cell for cell in STUDIES["control-heuristics"].cells(1, "exact") if cell.key not in before]
    assert {(cell.world, cell.settings["variant"]) for cell in changed} == {
        ("CartPole", "table"),
        ("CartPole", "network"),
    }


@pytest.mark.parametrize("name", ["control-heuristics", "control-groups"])
def test_cells_rows_findings_and_figures(name):
    study = STUDIES[name]
    cells = study.cells(3, "exact")
    assert len({cell.key for cell in cells}) == len(cells)
    assert {cell.world for cell in cells} == set(WORLDS) == set(selectenv.CONTROL)
    assert cells[: len(study.cells(1, "exact"))] != cells  # seeds come one after the other
    results = [made_up(cell) for cell in cells]
    rows = study.rows(results)
    assert {row.metric for row in rows} == {"return", "normalised"}
    assert all(row.ours is not None and row.published is None for row in rows)
    said = study.findings(rows)
    assert all(any(world in sentence for sentence in said) for world in WORLDS)
    assert study.findings([]) == []
    assert study.figures(results)
    assert study.figures([]) == {}


def test_the_studies_state_their_cost():
    total = sum(study.cpu_hours(study.cells(study.seeds, "exact")) for study in STUDIES.values())
    assert 2 < total < 6


@pytest.mark.parametrize("strategy", [FULL, NONE, "uniform", "terminal-guided", "best-of"])
def test_tables_are_run(strategy):
    study = STUDIES["control-heuristics"]
    cell = next(
        cell
        for cell in study.cells(1, "exact")
        if (cell.world, cell.strategy, cell.settings["variant"]) == ("CartPole", strategy, "table")
    )
    records = study.run_cell(small(cell))
    shares = {FULL: [1.0], NONE: [0.0]}.get(strategy)
    if shares is not None:
        assert [one["transitions"] for one in records] == shares
    elif strategy == "best-of":
        assert [(one["labels"], one["cost"]) for one in records] == [("5 %", 8)]
    else:
        assert [one["labels"] for one in records] == ["5 %", "10 %", "20 %", "40 %"]
    low, high = return_range("CartPole")
    assert all(one["normalised"] == pytest.approx((one["return"] - low) / (high - low)) for one in records)
    assert study.run_cell(small(cell)) == records


def test_groups_reveal_the_same_share():
    study = STUDIES["control-groups"]
    cells = [cell for cell in study.cells(1, "exact") if cell.world == "CartPole"]
    assert [cell.strategy for cell in cells[:2]] == ["200 clusters", "episodes"]
    for cell in cells[:2]:
        records = study.run_cell(small(cell, 60))
        assert [one["labels"] for one in records] == ["100 %", "5 %", "10 %", "20 %", "40 %"]
        assert all(abs(one["transitions"] - one["share"]) < 0.05 for one in records)


def test_other_ways_to_learn_share_the_labels():
    cells = [cell for cell in STUDIES["control-groups"].cells(1, "exact") if cell.world == "CartPole"]
    usual, imputed, adapted = (
        next(cell for cell in cells if cell.strategy == name)
        for name in (control_groups.name_of(control_groups.USUAL), *control_groups.LEARNING_OPTIONS)
    )
    learners = [control_cells.control_problem(small(cell)).learner for cell in (usual, imputed, adapted)]
    assert [(learner.rule, learner.impute) for learner in learners] == [("uds", 0), ("uds", "min"), ("adapted", 0)]
    revealed = [
        [one["transitions"] for one in STUDIES["control-groups"].run_cell(small(cell))]
        for cell in (usual, imputed, adapted)
    ]
    assert revealed[0] == revealed[1] == revealed[2]


def test_records_name_the_budget():
    task = selectenv.make_problem("CartPole", dataset_size=500, groups=5, rollouts=1, cache=False)
    found = record("CartPole", task, np.ones(5, bool), 0.4, cost=3)
    assert (found["labels"], found["groups"], found["cost"], found["transitions"]) == ("40 %", 5, 3, 1.0)


def test_networks_are_run_and_leave_no_checkpoints():
    study = STUDIES["control-heuristics"]
    cell = next(
        small(cell)
        for cell in study.cells(1, "exact")
        if (cell.world, cell.strategy, cell.settings["variant"]) == ("CartPole", "guided", "network")
    )
    cell = replace(cell, settings={**cell.settings, "problem": {**cell.settings["problem"], "updates": 3}})
    (found,) = study.run_cell(cell)
    assert (found["labels"], found["cost"], found["groups"]) == ("5 %", 0, 20)
    assert not (training_checkpoints.TRAINING / cell.key).exists()


def test_a_strategy_looks_the_same_in_every_panel_of_a_figure():
    """Whatever the order of the results, so that one legend serves all panels."""
    study = STUDIES["control-heuristics"]
    rng = np.random.default_rng(0)
    results = [
        Result(cell, [{"labels": label, "return": 0.0, "normalised": rng.random()} for label in ("5 %", "10 %")], 0.0)
        for cell in study.cells(2, "exact")
        if cell.settings["variant"] == "table" and cell.strategy not in (FULL, NONE)
    ]
    (figure,) = study.figures([results[i] for i in rng.permutation(len(results))]).values()
    looks: dict[str, set[tuple[str, str]]] = {}
    for panel in figure.axes:
        for lines in panel.containers:
            looks.setdefault(lines.get_label(), set()).add((lines[0].get_color(), lines[0].get_marker()))
    names = [*control_heuristics.HEURISTICS, *control_heuristics.CALLS]
    assert looks.keys() == set(names)
    assert all(len(look) == 1 for look in looks.values())
    assert len(set.union(*looks.values())) == len(names)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names
