"""The committed archives hold results of today's cells: a change of their keys would orphan hours of training."""

import json
from pathlib import Path

import pytest

from experiments.engine.archive import read_archive
from experiments.studies import find_studies

ARCHIVES = sorted((Path(__file__).parents[3] / "docs" / "archives").glob("*.jsonl.xz"))
NETWORKS, CONTROL = (ARCHIVES[0].parent / f"{name}.jsonl.xz" for name in ("networks", "control"))

CHANGED = ("auto",)
"""Strategies whose results in control worlds belonged to an earlier version and have not been run again."""


def test_there_are_archives():
    assert "networks.jsonl.xz" in [path.name for path in ARCHIVES]


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_archived_results_belong_to_cells_of_studies(path):
    keys = {cell.key for study in find_studies().values() for cell in study.cells(study.seeds, "exact")}
    rows = read_archive(path)
    assert rows
    assert [row[1:5] for row in rows if row[0] not in keys] == []


def test_the_page_of_the_games_quotes_the_archived_runs():
    """Warm starts: the numbers in docs/minatar.md."""
    page = " ".join((ARCHIVES[0].parents[1] / "minatar.md").read_text(encoding="utf-8").split())
    rows = [
        (world, strategy, seed, json.loads(settings), json.loads(records))
        for _, _, world, strategy, seed, settings, _, records, *_ in read_archive(NETWORKS)
    ]
    for game in ("Breakout", "Asterix"):
        (records,) = (
            records
            for world, strategy, _, settings, records in rows
            if (world, strategy) == (game, "refits") and "growth" not in settings
        )
        for name in ("warm start", "return"):
            first, second, third = (f"{record[name]:.1f}" for record in records)
            assert f"{first}, {second} and {third}" in page


@pytest.mark.parametrize("name", ["control-heuristics", "control-groups"])
def test_the_studies_of_the_control_worlds_are_complete(name):
    study, stored = find_studies()[name], {row[0] for row in read_archive(CONTROL)}
    missing = [
        cell for cell in study.cells(study.seeds, "exact") if cell.key not in stored and cell.strategy not in CHANGED
    ]
    assert [(cell.world, cell.strategy, cell.seed, cell.settings["variant"]) for cell in missing] == []
