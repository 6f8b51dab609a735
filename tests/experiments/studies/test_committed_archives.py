"""The committed archives hold results of today's cells: a change of their keys would orphan hours of training."""

from pathlib import Path

import pytest

from experiments.engine.archive import read_archive
from experiments.studies import find_studies

ARCHIVES = sorted((Path(__file__).parents[3] / "docs" / "archives").glob("*.jsonl.xz"))


def test_there_are_archives():
    assert "networks.jsonl.xz" in [path.name for path in ARCHIVES]


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_archived_results_belong_to_cells_of_studies(path):
    keys = {
        cell.key
        for study in find_studies().values()
        if study.cpu_hours is not None
        for cell in study.cells(study.seeds, "exact")
    }
    rows = read_archive(path)
    assert rows
    assert [row[1:5] for row in rows if row[0] not in keys] == []
