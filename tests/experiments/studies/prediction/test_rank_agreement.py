"""Kendall's tau between scores of the suite and rankings of networks, with intervals, chosen cells and the control."""

import numpy as np
import pytest
from scipy import stats

from experiments.benchmarks.suite.benchmark_scores import left_out
from experiments.benchmarks.suite.result_files import committed, summary
from experiments.benchmarks.suite.suite_tasks import ALWAYS, PLACES, RULES, places_of
from experiments.studies.prediction.rank_agreement import (
    NetworkGroup,
    TableCell,
    Tables,
    agreement,
    cell_agreement,
    group_of,
    read_tables,
    tau,
)

NAMES = ("a", "b", "c", "d", "e")
ORDER = np.arange(5.0)


def tables(*orders, units=6, noise=0.01):
    """Return one cell per order: the gaps of the strategies, with some noise."""
    rng = np.random.default_rng(0)
    cells = tuple(TableCell(place, "uds", "3") for place in PLACES)[: len(orders)]
    return Tables(NAMES, cells, tuple(order[:, None] + noise * rng.normal(size=(5, units)) for order in orders))


def group(order, name="group", seeds=4, noise=0.01):
    """Return a group whose first cell has returns in this order, the best first."""
    rng = np.random.default_rng(1)
    return NetworkGroup(name, NAMES, tuple(-order[:, None] + noise * rng.normal(size=(5, seeds)) for _ in range(2)))


def test_tau_counts_pairs():
    rng = np.random.default_rng(0)
    first, second = rng.permutation(7).astype(float), rng.permutation(7).astype(float)
    assert tau(first, second) == pytest.approx(stats.kendalltau(first, second).statistic)
    assert tau(ORDER, ORDER) == 1
    assert tau(ORDER, -ORDER) == -1
    assert tau(ORDER, np.zeros(5)) == 0
    assert tau(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 2.0])) == pytest.approx(2 / 3)
    assert tau(np.full(5, np.nan), ORDER) == 0
    assert tau(np.stack([ORDER, -ORDER]), ORDER[None]).tolist() == [1, -1]


def test_ranks_are_means_over_cells():
    cells = (np.array([[5.0, 7.0], [1.0, 1.0], [2.0, 2.0]]), np.array([[0.0], [1.0], [1.0]]))
    found = NetworkGroup("g", NAMES[:3], cells).ranks()
    np.testing.assert_allclose(found, [(1 + 3) / 2, (3 + 1.5) / 2, (2 + 1.5) / 2])


@pytest.mark.parametrize(("order", "expected"), [(ORDER, 1.0), (-ORDER, -1.0)])
def test_rankings_that_are_certain(order, expected):
    found = agreement(tables(ORDER, ORDER), group(order), np.ones(2, bool), resamples=50)
    assert found == (expected, expected, expected, expected, expected)


def test_noise_widens_the_interval_and_one_strategy_can_matter():
    swapped = np.array([0.0, 1.0, 2.0, 4.0, 3.0])
    found = agreement(tables(ORDER, noise=2.0), group(swapped, noise=2.0), np.ones(1, bool), resamples=200)
    assert found.low < found.tau <= found.high
    certain = agreement(tables(ORDER), group(swapped), np.ones(1, bool), resamples=20)
    assert certain.tau == pytest.approx(0.8)
    assert (certain.least, certain.most) == (pytest.approx(2 / 3), 1.0)


def test_strategies_that_one_side_lacks_are_left_out():
    returns = np.array([[1.0, 1.0], [3.0, 3.0], [2.0, 2.0], [0.0, 0.0]])
    some = NetworkGroup("g", ("c", "a", "z", "e"), (returns,))
    assert agreement(tables(ORDER), some, np.ones(1, bool), resamples=10).tau == 1


def test_single_cells_that_predict():
    good, bad = ORDER, np.array([2.0, 0.0, 4.0, 1.0, 3.0])
    found = cell_agreement(tables(good, -good, bad), [group(good, "x"), group(good, "y")], resamples=60, shuffles=30)
    assert found.groups == ("x", "y")
    np.testing.assert_allclose(found.tau[:, :2], [[1, -1], [1, -1]])
    assert found.predicting().tolist()[:2] == [True, False]
    assert found.predicting([0]).tolist()[:2] == [True, False]
    assert (found.intervals()[:, 0] == 1).all()
    assert len(found.shuffled) == 30
    assert found.shuffled.mean() < 2  # of three cells


def test_the_tables_of_the_leaderboard():
    names = ("uniform", "learned", "no such strategy", "guided")
    found = read_tables(committed(), names)
    assert found.strategies == ("uniform", "learned", "guided")
    cells = {
        TableCell(place.name, rule, budget) for place in places_of(ALWAYS) for rule in RULES for budget in place.budgets
    }
    missing = {
        TableCell(place.name, *text.split(", ")) for place in places_of(("tabular",)) for text in left_out(place)
    }
    assert set(found.cells) == cells - missing
    scores = {score: found.scores(chosen) for score, chosen in found.parts.items()}
    for i, name in enumerate(found.strategies):
        gaps = summary(committed()[name])["gaps"]
        for score, value in scores.items():
            assert value[i] == pytest.approx(gaps[score].value)


def test_only_what_is_complete_makes_up_a_group():
    returns = {
        ("w", "10 %"): {"a": {0: 1.0, 1: 2.0}, "b": {1: 3.0, 2: 9.0}},
        ("w", "30 %"): {"a": {0: 1.0}},
        ("v", "10 %"): {"a": {0: 4.0}, "b": {0: 5.0}, "other": {0: 6.0}},
    }
    found = group_of("g", returns, ("b", "a", "c"))
    assert found.strategies == ("b", "a")
    assert [cell.tolist() for cell in found.cells] == [[[3.0], [2.0]], [[5.0], [4.0]]]
