"""The report says how much of a study was run, and which commands run the same again."""

import pytest

from experiments.analysis.coverage import coverage_sentence, run_commands
from experiments.analysis.gathering import StudyResults
from experiments.engine.cell import Cell, Result
from experiments.engine.study import Study


def cells(seeds, solver):
    """Two worlds, a random strategy with all seeds and a deterministic one with one seed."""
    names = [("uniform", range(seeds)), ("exact", range(1))]
    return [Cell("s", world, name, seed) for world in ("Graph", "Tree") for name, of in names for seed in of]


STUDY = Study("s", "?", cells, lambda cell: [], lambda results: [], seeds=10)


def found(*run):
    return StudyResults(STUDY, [Result(cell, [], 1.0) for cell in run], [])


@pytest.mark.parametrize(
    ("run", "sentence", "commands"),
    [
        (cells(10, ""), "22 cells, 10 seeds", ["selectenv run s"]),
        (
            cells(3, ""),
            "8 cells (14 of the 22 cells of the study are not part of this report), 3 seeds (default: 10)",
            ["selectenv run s --seeds 3"],
        ),
        (cells(10, "")[:11], "1 seed", ["selectenv run s --only Graph"]),
        (cells(3, "")[:3], "3 seeds (default: 10)", ["selectenv run s --only Graph/uniform --seeds 3"]),
        (cells(3, "")[3:4], "1 seed", ["selectenv run s --only Graph/exact"]),
        (
            [*cells(10, ""), *(Cell("s", "Graph", "my_module:Mine", seed) for seed in range(2))],
            "24 cells, 10 seeds",
            ["selectenv run s", "selectenv run s --only Graph/my_module:Mine --seeds 2"],
        ),
        (
            [Cell("s", "my_module:world", name, seed) for name in ("uniform", "exact") for seed in range(10)],
            "20 cells (22 of the 22 cells of the study are not part of this report), 10 seeds",
            ["selectenv run s --only my_module:world"],
        ),
    ],
)
def test_what_was_run(run, sentence, commands):
    one = found(*run)
    said = coverage_sentence(one)
    assert said == sentence or said.endswith(f", {sentence}") or (sentence == "1 seed" and "seed" in said)
    assert run_commands(one) == commands


def test_the_name_on_the_command_line():
    assert run_commands(found(*cells(10, "")), "my_module:STUDY") == ["selectenv run my_module:STUDY"]
