"""The best label sets known: looked up, searched for again, and replaced only by better or newly proved ones."""

import json
import math

import pytest

from agents.errors import SearchLimitError
from experiments.analysis import best_known as module
from experiments.analysis.best_known import best_known, best_named, best_return, find_best, update


@pytest.fixture
def entries(tmp_path, monkeypatch):
    """A file of entries of the test's own; returns a function that writes it."""
    path = tmp_path / "best_known.json"
    monkeypatch.setattr(module, "PATH", path)

    def write(found):
        path.write_text(json.dumps(found))
        best_known.cache_clear()

    yield write
    best_known.cache_clear()


def entry(value, within=0.0):
    return {
        "return": value,
        "ids": [1],
        "found_by": "beam",
        "certified": within == 0.0,
        "distance_to_bound": within,
        "command": "c",
    }


def test_looking_up(entries):
    entries({"Graph/uds/3": entry(7.0)})
    assert best_return("Graph", "uds", 3) == 7.0
    assert best_named("Graph", "uds", 3) == "best known 7.000 by beam"
    assert math.isnan(best_return("Graph", "adapted", 3))
    assert math.isnan(best_return("Graph", "uds", 6))
    assert best_named("Tree", "uds", 3) == "no best set known"


def test_the_values_of_the_protocol_are_among_them():
    assert [best_return("Graph", "uds", labels) for labels in (3, 6)] == [7.0, 8.0]
    assert best_return("Tree", "uds", 3) == pytest.approx(16.904525)
    assert sorted(best_known()["Tree/uds/3"]["ids"]) == [15, 19, 23]


def test_a_search_that_proves_its_set():
    found = find_best("Graph", "uds", 2)
    assert found["return"] == 5.0
    assert len(found["ids"]) == 2
    assert {name: found[name] for name in ("found_by", "certified", "distance_to_bound", "command")} == {
        "found_by": "exact",
        "certified": True,
        "distance_to_bound": 0.0,
        "command": "selectenv best Graph --learner uds --labels 2 --update",
    }
    assert set(found) == {"return", "ids", "found_by", "certified", "distance_to_bound", "command"}


class Runs(dict):
    """Searches with chosen results, by name: performance, and for "exact" the upper bound. Records what was run.

    Without a result of "brute-force", there are too many sets to enumerate.
    """

    def __init__(self, **results):
        super().__init__(results)
        self.run = []

    def __call__(self, name, world, learner, labels):
        if name == "brute-force" and "brute_force" not in self:
            raise SearchLimitError("too many sets")
        self.run.append((name, world, learner, labels))
        performance, *bound = self[name.replace("-", "_")]
        notes = {"upper_bound": bound[0]} if bound else {}
        return {"performance": performance, "ranking": [4, 2, 0, 1], "notes": notes}


@pytest.mark.parametrize(
    ("results", "expected", "run"),
    [
        ({"exact": (5.0, 5.0)}, (5.0, "exact", 0.0), 1),
        ({"exact": (5.0, 5.0 + 1e-10)}, (5.0, "exact", 0.0), 1),
        ({"exact": (5.0, 5.0 + 1e-8), "swap_search": (5.0,), "beam": (5.0,)}, (5.0, "exact", 1e-8), 3),
        ({"exact": (5.0, 8.0), "swap_search": (6.0,), "beam": (6.0 + 1e-10,)}, (6.0, "swap-search", 2.0), 3),
        ({"exact": (5.0, 8.0), "swap_search": (4.0,), "beam": (5.0 + 1e-8,)}, (5.0 + 1e-8, "beam", 3.0 - 1e-8), 3),
        ({"exact": (5.0, 8.0), "swap_search": (8.0,)}, (8.0, "swap-search", 0.0), 2),
        ({"exact": (-5.0, -2.0), "swap_search": (-4.0,), "beam": (-6.0,)}, (-4.0, "swap-search", 2.0), 3),
    ],
)
def test_searches_follow_each_other_until_one_is_proved(monkeypatch, results, expected, run):
    runs = Runs(**results)
    monkeypatch.setattr(module, "run_search", runs)
    found = find_best("Tree", "adapted", 3)
    assert (found["return"], found["found_by"]) == expected[:2]
    assert found["distance_to_bound"] == pytest.approx(expected[2], abs=1e-12)
    assert found["certified"] == (found["distance_to_bound"] == 0.0)
    assert found["ids"] == [4, 2, 0]
    assert runs.run == [(name, "Tree", "adapted", 3) for name in ("exact", "swap-search", "beam")][:run]


@pytest.mark.parametrize(
    ("returns", "found_by"), [((5.0, 6.0), "brute-force"), ((6.0, 6.0), "exact"), ((6.0, 6.0 - 1e-10), "exact")]
)
def test_an_enumeration_proves_the_best_set(monkeypatch, returns, found_by):
    exact, brute_force = returns
    runs = Runs(exact=(exact, 9.0), brute_force=(brute_force,))
    monkeypatch.setattr(module, "run_search", runs)
    found = find_best("Tree", "adapted", 3)
    assert (found["return"], found["found_by"], found["certified"]) == (max(returns), found_by, True)
    assert found["distance_to_bound"] == 0.0
    assert [name for name, *_ in runs.run] == ["exact", "brute-force"]


def test_sets_are_enumerated_up_to_a_limit(monkeypatch):
    few = {"exact": {"max_evaluations": 1, "seconds": 1e9}, "brute-force": {"max_evaluations": 55}}
    monkeypatch.setattr(module, "SEARCHES", few)
    found = find_best("FrozenLake", "adapted", 2)  # 55 sets
    assert found["certified"]
    assert found["return"] == pytest.approx(best_return("FrozenLake", "adapted", 2))
    assert not find_best("FrozenLake", "adapted", 3)["certified"]


def test_the_options_of_a_search_are_used(monkeypatch):
    limited = dict(zip(module.SEARCHES["exact"], (1, 1e9), strict=True))
    monkeypatch.setattr(module, "SEARCHES", {"exact": limited})
    for learner in ("uds", "adapted"):
        memory = module.run_search("exact", "FrozenLake", learner, 2)
        assert not memory["notes"]["certified"]
        assert len(set(memory["ranking"][:2])) == 2
    monkeypatch.undo()
    assert module.run_search("exact", "FrozenLake", "adapted", 2)["performance"] == pytest.approx(
        best_return("FrozenLake", "adapted", 2)
    )


@pytest.fixture
def searches(monkeypatch):
    """Searches whose results the test chooses; returns a function that chooses them, and what was asked."""
    asked, results = [], {}

    def search(world, learner, labels):
        asked.append((world, learner, labels))
        return results[world, learner, labels]

    monkeypatch.setattr(module, "find_best", search)
    return asked, results


@pytest.mark.parametrize(
    ("old", "new", "improved"),
    [
        (None, entry(5.0, 1.0), 1),
        (entry(5.0, 1.0), entry(5.0, 1.0), 0),
        (entry(5.0, 1.0), entry(5.0 + 1e-8, 1.0), 1),
        (entry(5.0, 1.0), entry(5.0 + 1e-10, 1.0), 0),
        (entry(5.0, 1.0), entry(4.0, 2.0), 0),
        (entry(5.0, 1.0), entry(5.0, 0.5), 1),
        (entry(5.0, 1.0), entry(5.0, 1.0 - 1e-10), 0),
    ],
)
def test_only_what_is_better_or_newly_proved_is_kept(entries, searches, monkeypatch, old, new, improved):
    asked, results = searches
    shown = []
    monkeypatch.setattr(module, "progress", lambda items, total, title: shown.append((total, title)) or items)
    entries({"Tree/uds/3": entry(1.0), **({"Graph/uds/3": old} if old else {})})
    results["Graph", "uds", 3] = new
    assert update(("Graph",), ("uds",), 3) == improved
    assert asked == [("Graph", "uds", 3)]
    assert best_known()["Graph/uds/3"] == (new if improved else old)
    assert best_known()["Tree/uds/3"] == entry(1.0)
    assert shown == [(1, "best known")]


def test_the_file_is_sorted_and_need_not_exist(entries, searches):
    asked, results = searches
    for learner in ("uds", "adapted"):
        for labels in (3, 6, 9, 12, 15):
            results["Graph", learner, labels] = entry(float(labels))
    assert update(("Graph",)) == 10
    assert asked == [("Graph", learner, labels) for learner in ("uds", "adapted") for labels in (3, 6, 9, 12, 15)]
    text = module.PATH.read_text()
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert text == json.dumps(json.loads(text), indent=1) + "\n"
