"""The results committed under docs/ are compared with the right published metrics and have the right verdicts."""

import csv
import math
from pathlib import Path

import pytest

from experiments.analysis.row_text import CSV_COLUMNS

ROOT = Path(__file__).parents[3]
LABELS = {
    "Graph": (3, 6, 9, 12, 15),
    "Tree": (3, 9, 15, 21, 27),
    "TwoRooms": (6, 15, 24, 36, 45),
    "TwoRooms-Trap": (6, 12, 21, 30, 39),
    "FrozenLake": (2, 4, 6, 8, 10),
    "CliffWalk": (3, 12, 18, 25, 33),
}


@pytest.fixture(scope="module")
def committed():
    with (ROOT / "docs" / "results.csv").open() as file:
        return list(csv.DictReader(file))


def printed(table):
    """The published table as text, by world, number of labels and strategy, read without the readers under test."""
    path = ROOT / "experiments" / "protocol" / "published_tables" / f"{table}.csv"
    lines = [line.split(",") for line in path.read_text().splitlines()]
    shares = ("0.1", "0.3", "0.5", "0.7", "0.9")
    return {
        (world.replace("-", ""), str(LABELS[world][shares.index(share)]), strategy): rest
        for world, share, strategy, *rest in lines[1:]
    }


def test_columns(committed):
    assert tuple(committed[0]) == ("study", *CSV_COLUMNS)


@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_heuristics_stand_beside_their_published_mean_and_error(committed, learner):
    known = printed(f"heuristics_{learner}")
    rows = {
        (row["world"], row["labels"], row["strategy"]): row
        for row in committed
        if row["study"] == f"heuristics-{learner}"
    }
    for key, (mean, stderr, _) in known.items():
        assert (rows[key]["published"], rows[key]["its error"]) == (mean, stderr)
    assert {key for key, row in rows.items() if row["published"]} == set(known)


@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_searches_stand_beside_their_published_train_and_test_scores(committed, learner):
    known = printed(f"trained_{learner}")
    rows = {
        (row["world"], row["labels"], row["strategy"], row["metric"]): row
        for row in committed
        if row["study"] == f"trained-{learner}"
    }
    for key, (train, test, stderr) in known.items():
        assert (rows[*key, "train"]["published"], rows[*key, "train"]["its error"]) == (train, "")
        assert (rows[*key, "test"]["published"], rows[*key, "test"]["its error"]) == (test, stderr)
    assert {key[:3] for key, row in rows.items() if row["published"]} == set(known)


def test_verdicts_of_heuristics_follow_from_the_numbers_beside_them(committed):
    """Three combined errors; what rounding to three decimals leaves open is left out."""
    rows = [row for row in committed if row["study"].startswith("heuristics") and row["published"]]
    assert len(rows) == 240
    clear = 0
    for row in rows:
        ours, error, theirs, their_error = (float(row[k]) for k in ("ours", "std. error", "published", "its error"))
        limit, distance = 3 * math.hypot(error, their_error) + 0.0005, abs(ours - theirs)
        if abs(distance - limit) > 0.003 and their_error > 0:
            clear += 1
            assert row["verdict"].split(":")[0] == ("agrees" if distance < limit else "differs"), row
    assert clear > 200
