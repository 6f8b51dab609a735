"""The suite: its size, its references, and the data behind them."""

import numpy as np
import pytest

from experiments.benchmarks.suite import suite_references
from experiments.benchmarks.suite.suite_references import bounds, check_data, references, references_of, suite_hash
from experiments.benchmarks.suite.suite_tasks import PARTS, PLACES, RANDOM, RULES, places_of, task_of
from experiments.engine.problems import problem
from experiments.errors import BenchmarkError
from selectenv.errors import UnknownNameError
from tests.docs_results import ALL_TABLES


def test_size_of_the_suite():
    tabular, random = places_of(("tabular",)), places_of(("random",))
    assert [(place.units, len(place.budgets)) for place in tabular] == [(20, 5)] * 6
    assert sum(place.units for place in random) == 100
    assert len(random) == 3
    assert {place.budgets for place in random} == {("10 %", "30 %", "50 %")}
    assert [place.name for place in places_of(("control",))] == ["CartPole", "Acrobot", "MountainCar"]
    with pytest.raises(UnknownNameError, match="part of the suite"):
        places_of(("tabula",))


@pytest.mark.parametrize("place", places_of(PARTS), ids=lambda place: place.name)
def test_random_sets_never_beat_the_best_known_one(place):
    for rule in RULES:
        for budget in place.budgets:
            best, uniform = bounds(place, rule, budget)
            assert best.shape == uniform.shape == (place.units,)
            assert (best >= uniform - 1e-8 * np.abs(best)).all()


@pytest.mark.parametrize(
    ("name", "unit", "rule"),
    [
        ("Graph", 3, "uds"),
        ("FrozenLake", 19, "adapted"),
        ("random, 8 to 20 states", 5, "adapted"),
        ("MountainCar", 0, "adapted"),
        ("Acrobot", 1, "uds"),
    ],
)
def test_references_can_be_computed_again(name, unit, rule):
    place, kept = PLACES[name], references()[name][rule]
    found = references_of(place, unit, rule)
    assert found["data"] == kept["data"][unit]
    for measure in ("best", "uniform"):
        np.testing.assert_allclose(found[measure], [kept[measure][budget][unit] for budget in place.budgets], rtol=1e-7)


@pytest.mark.parametrize("place", places_of(("random",)), ids=lambda place: place.name)
def test_random_worlds_have_the_size_of_their_class(place):
    smallest, largest = place.sizes
    for unit in (0, 1):
        tasks = [task_of(place, unit, rule) for rule in RULES]
        assert tasks[0].dataset is tasks[1].dataset
        assert [task.learner.rule for task in tasks] == list(RULES)
        assert tasks[0].dataset.labelable.sum() <= largest
        check_data(place, unit, "uds", tasks[0])
    assert smallest <= max(int(task_of(place, unit, "uds").dataset.labelable.sum()) for unit in range(4))


def test_other_data_are_refused():
    place = PLACES["Graph"]
    with pytest.raises(BenchmarkError, match=r"data of Graph \(unit 0\) are not those of suite v1"):
        check_data(place, 0, "uds", problem("Graph", {"dataset_seed": 0, "learner": "uds"}))


def test_the_hash_depends_on_every_reference(monkeypatch):
    hashes = {suite_hash((part,)) for part in PARTS}
    assert len(hashes) == len(PARTS)
    changed = {**references(), "Tree": {**references()["Tree"], "uds": {}}}
    monkeypatch.setattr(suite_references, "references", lambda: changed)
    assert len(hashes & {suite_hash((part,)) for part in PARTS}) == len(PARTS) - 1


def test_the_page_describes_the_suite():
    (table,) = (one for one in ALL_TABLES if one.page == "docs/leaderboard.md" and one.header[0] == "part")
    for (_, worlds, data, budgets, _), part in zip(table.rows, PARTS, strict=True):
        for place in places_of((part,)):
            described = [f"{place.units} of {place.sizes[0]} to {place.sizes[1]}"] if place.sizes[1] else [place.name]
            assert all(text in worlds for text in described), place
            assert part == RANDOM or f"{place.units} datasets" in data
            size = place.options.get("dataset_size", 100_000)
            assert part == RANDOM or f"{size:,} transitions" in data
            assert all(share.removesuffix(" %") in budgets for share in place.budgets if share.endswith("%"))
