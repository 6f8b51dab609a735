"""Warm starts against training from scratch: the same label sets at three budgets, and guided with both."""

import itertools
from dataclasses import replace

import pytest

from experiments.engine.cell import Result
from experiments.studies import training_checkpoints
from experiments.studies.minatar.minatar_warm_start import REFITS, STUDY
from experiments.studies.minatar.network_cells import CLOSED, network_cell
from experiments.studies.minatar.network_cost import refits, refits_from_scratch, training_runs
from selectenv.datasets import minatar_collection as play
from selectenv.problem import SelectionProblem


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(training_checkpoints, "TRAINING", tmp_path / "training")
    monkeypatch.setattr(play, "GAMES_AT_ONCE", 4)


def small(cell):
    tiny = {key: value for key, value in cell.settings["problem"].items() if key != "scale"}
    few = {"dataset_size": 2_400, "rollouts": 2, "updates": 10, "evaluations": 2}
    return replace(cell, settings={**cell.settings, "problem": {**tiny, **few}})


def test_the_plan():
    cells = STUDY.cells(3, "exact")
    found = [(cell.world, cell.strategy, cell.seed, cell.settings["warm"]) for cell in cells]
    games = ("Breakout", "Asterix")
    assert found[:8] == [
        *((game, REFITS, 0, True) for game in games),
        *((game, REFITS, 0, True) for game in games),
        *((game, "guided", 0, True) for game in games),
        *((game, "guided", 0, False) for game in games),
    ]
    assert not any(seed and not warm for _, _, seed, warm in found)
    assert [cell.settings.get("growth") for cell in cells[:8]] == [2.0, 2.0, None, None, 2.0, 2.0, None, None]
    assert [refits_from_scratch(cell) for cell in cells[:8]] == [6, 6, 1, 1, 6, 6, 36, 36]
    shared = network_cell("Asterix", "guided", 2, "fast", **CLOSED).key
    assert shared in {cell.key for cell in cells}
    assert {(refits(cell), training_runs(cell)) for cell in cells if cell.strategy == REFITS} == {(36, 3)}


def test_both_ways_learn_the_same_growing_sets(monkeypatch, tmp_path):
    learned, evaluated = [], []
    learn, curve = SelectionProblem.learn, SelectionProblem.learning_curve

    def watched(self, labels, previous=None):
        result = learn(self, labels, previous)
        learned.append((tuple(labels), previous, result))
        return result

    monkeypatch.setattr(SelectionProblem, "learn", watched)
    monkeypatch.setattr(
        SelectionProblem, "learning_curve", lambda self, x: evaluated.append(tuple(x)) or curve(self, x)
    )
    cell = small(network_cell("Asterix", REFITS, 0, "fast", budgets=(0.3, 0.6, 0.9), **CLOSED))
    records = STUDY.run_cell(cell)
    assert [record["labels"] for record in records] == ["30 %", "60 %", "90 %"]
    learned = learned[1:]  # without that of the reset, which has no labels
    sets = [labels for labels, _, _ in learned]
    assert len(sets) == 36
    assert [sets.index(labels) for labels in evaluated] == [11, 23, 35]
    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(sets))
    assert learned[0][1] is None
    assert all(later[1] is earlier[2] for earlier, later in itertools.pairwise(learned))
    assert learned[-1][2].updates[-1] > 10  # more than one training run
    assert list((tmp_path / "training").glob("*")) == []


def test_rows_tell_the_ways_apart():
    same, always, warm, cold = (
        next(cell for cell in STUDY.cells(1, "exact") if cell.world == "Asterix" and wanted(cell))
        for wanted in (
            lambda cell: cell.strategy == REFITS and "growth" in cell.settings,
            lambda cell: cell.strategy == REFITS and "growth" not in cell.settings,
            lambda cell: cell.strategy == "guided" and cell.settings["warm"],
            lambda cell: cell.strategy == "guided" and not cell.settings["warm"],
        )
    )
    results = [
        Result(same, [{"labels": "30 %", "return": 1.0, "warm start": 2.0}], 0.1),
        Result(always, [{"labels": "30 %", "return": 1.0, "warm start": 0.5}], 0.1),
        Result(warm, [{"labels": "30 %", "return": 3.0}], 0.1),
        Result(cold, [{"labels": "30 %", "return": 4.0}], 0.1),
    ]
    rows = STUDY.rows(results)
    assert {(row.setting, row.strategy): row.ours.mean for row in rows} == {
        ("the same labels", "from scratch"): 1.0,
        ("the same labels", "warm start"): 2.0,
        ("the same labels", "always warm start"): 0.5,
        ("labels of guided", "warm start"): 3.0,
        ("labels of guided", "from scratch"): 4.0,
    }
    assert {row.world for row in rows} == {"Asterix"}
    assert STUDY.figures(results)
    assert STUDY.rows([]) == []
