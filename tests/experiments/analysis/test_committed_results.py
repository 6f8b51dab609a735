"""The results committed under docs/ are compared with the right published numbers and have the right verdicts."""

import csv
import math
from pathlib import Path

import pytest

from experiments.analysis.row_text import CSV_COLUMNS
from experiments.protocol.budgets import BUDGETS

ROOT = Path(__file__).parents[3]
LABELS = {
    "Graph": (3, 6, 9, 12, 15),
    "Tree": (3, 9, 15, 21, 27),
    "TwoRooms": (6, 15, 24, 36, 45),
    "TwoRooms-Trap": (6, 12, 21, 30, 39),
    "FrozenLake": (2, 4, 6, 8, 10),
    "CliffWalk": (3, 12, 18, 25, 33),
}
FULL = {"Breakout": 17.75, "Freeway": 58.28, "Seaquest": 34.99, "Asterix": 35.16}
"""The published returns with full labels."""


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


@pytest.mark.parametrize("learner", ["uds", "adapted"])
def test_verdicts_of_heuristics_follow_from_the_numbers_beside_them(committed, learner):
    """The limit is 1.98 errors for 198 degrees of freedom; what rounding to three decimals leaves open is left out."""
    rows = [row for row in committed if row["study"] == f"heuristics-{learner}" and row["published"]]
    clear = controls = 0
    for row in rows:
        near = [
            (other is row, *_distance(row, other))
            for other in rows
            if (other["world"], other["labels"]) == (row["world"], row["labels"])
        ]
        if any(abs(distance - limit) < 0.02 * limit + 0.002 for _, distance, limit in near):
            continue
        clear += 1
        (right,) = (distance < limit for own, distance, limit in near if own)
        agreeing = sum(distance < limit for own, distance, limit in near if not own)
        others = len(near) - 1
        controls += others
        assert row["by the rule"] == ("agrees" if right else "differs"), row
        assert row["swapped"] == f"{agreeing} of {others}", row
        told = others - agreeing >= agreeing
        assert row["verdict"].split(":")[0] == (row["by the rule"] if told else "cannot be told"), row
    assert clear > 0.7 * len(rows)
    assert controls == clear * {"uds": 4, "adapted": 2}[learner]


def _distance(row, other):
    """The distance of our mean to a published one, and the largest that is not significant."""
    ours, error, theirs, their_error = (
        float(text) for text in (row["ours"], row["std. error"], other["published"], other["its error"])
    )
    return abs(ours - theirs), 1.98 * math.hypot(error, their_error + 0.0005) + 0.0005


def test_every_judged_row_has_a_control_and_a_verdict_that_follow_from_each_other(committed):
    tabular = [row for row in committed if row["world"] in BUDGETS]
    judged = [row for row in tabular if row["by the rule"]]
    assert len(judged) == 1304
    for row in judged:
        agreeing, others = map(int, row["swapped"].split(" of "))
        told = others > 0 and others - agreeing >= agreeing
        assert row["verdict"].split(":")[0] == (row["by the rule"] if told else "cannot be told"), row
    unjudged = [row for row in tabular if not row["by the rule"]]
    assert {row["verdict"].split(":")[0] for row in unjudged} == {"", "not enumerated"}
    assert {row["swapped"] for row in unjudged} == {""}


def test_verdicts_of_networks_follow_from_the_numbers_beside_them(committed):
    """Three combined errors, the largest error, and the share, without the code under test."""
    rows = [row for row in committed if row["study"].startswith("minatar-") and row["setting"] in ("fast", "paper")]
    full = {(row["world"], row["setting"], row["metric"]): row for row in rows if row["strategy"] == "full labels"}
    for row in rows:
        if not row["by the rule"] or not row["its error"]:
            continue
        assert row["verdict"].split(":")[0] == row["by the rule"]
        ours, error, theirs, their_error = (
            float(row[name]) for name in ("ours", "std. error", "published", "its error")
        )
        together, distance = math.hypot(error, their_error + 0.005), abs(ours - theirs)
        share = ours / float(full[row["world"], row["setting"], row["metric"]]["ours"])
        apart = abs(share - theirs / FULL[row["world"]])
        if min(abs(distance - 3 * together - 0.005), abs(together - 0.15 * theirs), abs(apart - 0.1)) < 0.01:
            continue  # rounding to three decimals leaves it open
        if distance < 3 * together:
            assert row["by the rule"] == ("agrees" if together <= 0.15 * theirs else "cannot be told"), row
        else:
            assert row["by the rule"] == ("same share" if apart <= 0.1 else "differs"), row


def test_numbers_of_others_are_counted_once_per_cell(committed):
    """How many other strategies each table prints for the same world and budget."""
    expected = {
        "heuristics-uds": {"4"},
        "heuristics-adapted": {"2"},
        "trained-uds": {"3", "4"},  # guided has no test score
        "trained-adapted": {"3", "4"},
        "es-iterations": {"3"},
        "es-population": {"3"},
        "initial-sample": {"2"},
        "breakout-heuristics": {"1"},
        "breakout-trained": {"0", "1"},  # reduced-brute-force is alone
        "breakout-rewards": {"1"},
        "breakout-behaviour-uds": {"4"},
        "breakout-behaviour-adapted": {"4"},
        "breakout-coverage": {"4"},
    }
    found = {}
    for row in committed:
        if row["swapped"] and row["study"] in expected:
            found.setdefault(row["study"], set()).add(row["swapped"].split(" of ")[1])
    assert found == expected
