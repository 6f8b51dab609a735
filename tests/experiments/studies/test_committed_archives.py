"""The committed archives hold results of today's cells: a change of their keys would orphan hours of training."""

import json
from pathlib import Path

import pytest

from experiments.engine.archive import read_archive
from experiments.studies import find_studies

ARCHIVES = sorted((Path(__file__).parents[3] / "docs" / "archives").glob("*.jsonl.xz"))
NETWORKS, CONTROL = (ARCHIVES[0].parent / f"{name}.jsonl.xz" for name in ("networks", "control"))


def test_there_are_archives():
    assert "networks.jsonl.xz" in [path.name for path in ARCHIVES]


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_archived_results_belong_to_cells_of_studies(path):
    keys = {cell.key for study in find_studies().values() for cell in study.cells(study.seeds, "exact")}
    rows = read_archive(path)
    assert rows
    assert [row[1:5] for row in rows if row[0] not in keys] == []


def test_the_page_of_the_games_quotes_the_archived_runs():
    """Warm starts, and networks on the data of other experts: the numbers in docs/minatar.md."""
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
    found = {
        settings["problem"].get("expert", "published"): records[0]
        for world, strategy, seed, settings, records in rows
        if (world, strategy, seed, settings["variant"]) == ("Breakout", "full labels", 0, "paper")
        and settings["problem"].get("expert_share", 0.5) == 0.5
        and "updates" not in settings["problem"]
    }
    names = ("published", *(f"published-{seed}" for seed in (1, 2, 3, 4)))
    returns, last = ([f"{found[name][metric]:.1f}" for name in names] for metric in ("return", "last weights"))
    assert "networks earn {} on the data of seed 0 and {}, {}, {} and {} on those".format(*returns) in page
    assert "last weights {}, {}, {}, {} and {}".format(*last) in page


def test_the_page_of_the_control_worlds_quotes_the_archived_runs():
    page = (ARCHIVES[0].parents[1] / "control.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str], list[str]] = {}
    for _, _, world, strategy, _, settings, _, records, *_ in sorted(read_archive(CONTROL), key=lambda row: row[4]):
        if strategy == "full labels":
            normalised = json.loads(records)[0]["normalised"]
            found.setdefault((world, json.loads(settings)["variant"]), []).append(f"{normalised:.2f}")
    worlds = sorted({world for world, _ in found})
    assert worlds == ["Acrobot", "CartPole", "LunarLander", "MountainCar"]
    for world in worlds:
        assert f"| {world} | {', '.join(found[world, 'network'])} | {', '.join(found[world, 'table'])} |" in page
