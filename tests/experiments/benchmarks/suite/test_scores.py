"""Scores: gaps, interquartile means, intervals, probabilities of improvement, ranks."""

import numpy as np
import pytest
from scipy import stats

from experiments.analysis.statistics import probability_of_improvement
from experiments.benchmarks.suite.benchmark_scores import (
    Estimate,
    Stratum,
    cell_gaps,
    cost_of,
    groups_of,
    improvement,
    interquartile_mean,
    left_out,
    ranks,
    score,
    strata,
)
from experiments.benchmarks.suite.suite_references import references
from experiments.benchmarks.suite.suite_tasks import ALWAYS, PLACES, RANDOM, RULES, places_of


def result_of(measure, names=None):
    """Return results that equal a reference in every cell."""
    names = names or [place.name for place in places_of(ALWAYS)]
    rows = {
        name: {
            rule: {"returns": references()[name][rule][measure], "cost": {}, "seconds": 0.0, "labels": 1}
            for rule in RULES
        }
        for name in names
    }
    return {"results": rows}


def stratum(place, returns, gaps):
    return Stratum(PLACES[place], ("uds",) * len(returns), np.array(returns, float), np.array(gaps, float))


def test_the_best_sets_score_0_and_random_ones_score_1():
    for measure, value in (("best", 0), ("uniform", 1)):
        found = groups_of(strata(result_of(measure)))
        assert list(found) == ["all", "tabular", "random", "uds", "adapted"]
        for name, group in found.items():  # datasets of a world share a denominator, so only their mean is exactly 1
            assert group.value == pytest.approx(value, abs=1e-6 if name == RANDOM else 0.01)


def test_gaps_by_cell():
    found = cell_gaps(result_of("uniform"))
    assert found["Tree"]["uds"]["9"] == pytest.approx(1)
    for place in places_of(("tabular",)):
        rows = [(rule, budget) for rule in RULES for budget in place.budgets]
        empty = {f"{rule}, {budget}" for rule, budget in rows if found[place.name][rule][budget] is None}
        assert empty == set(left_out(place))


def test_optional_parts_do_not_count_in_the_score_of_all():
    row = {"uds": {"returns": {"10 %": [0.0, 0.0], "30 %": [0.0, 0.0]}, "cost": {}, "seconds": 0.0, "labels": 1}}
    best, more = result_of("best"), result_of("best")
    more["results"]["CartPole"] = {**row, "adapted": row["uds"]}
    found = groups_of(strata(more))
    assert found["all"].value == groups_of(strata(best))["all"].value == pytest.approx(0)
    assert found["control"].value > 0.5


def test_gaps_of_a_world_share_their_denominator():
    (one,) = strata(result_of("uniform", ["Tree"]))
    best, uniform = (np.array([references()["Tree"]["uds"][name]["9"]])[0] for name in ("best", "uniform"))
    np.testing.assert_allclose(one.gaps[1], (best - uniform) / (best - uniform).mean())


def test_cells_without_a_difference_are_left_out_and_listed():
    for place in places_of(ALWAYS):
        best, uniform = (
            np.array([references()[place.name][rule][name][budget] for rule in RULES for budget in place.budgets])
            for name in ("best", "uniform")
        )
        if place.part != RANDOM:
            best, uniform = best.mean(axis=1, keepdims=True), uniform.mean(axis=1, keepdims=True)
        small = best - uniform <= 0.01 * np.maximum(np.abs(best), np.abs(uniform))
        (one,) = strata(result_of("best", [place.name]))
        np.testing.assert_array_equal(np.isnan(one.gaps), np.broadcast_to(small, one.gaps.shape))
        assert len(left_out(place)) == small.any(axis=1).sum()


def test_interquartile_mean():
    gaps = np.random.default_rng(0).normal(size=40)
    assert interquartile_mean(np.append(gaps, np.nan)) == pytest.approx(np.sort(gaps)[10:30].mean())
    assert interquartile_mean(gaps) == pytest.approx(stats.trim_mean(gaps, 0.25))
    assert np.isnan(interquartile_mean(np.array([np.nan])))


def test_units_are_drawn_together_with_all_their_rows():
    """If units differ and rows do not, the interval is that of a bootstrap of the units alone."""
    units = np.random.default_rng(1).normal(size=20)
    wide = score([stratum("Tree", np.zeros((4, 20)), np.tile(units, (4, 1)))])
    alone = score([stratum("Tree", np.zeros((1, 20)), units[None])])
    assert (wide.low, wide.high) == pytest.approx((alone.low, alone.high), rel=0.35)
    assert wide.value == pytest.approx(alone.value)
    same = score([stratum("Tree", np.zeros((4, 20)), np.arange(4.0)[:, None] * np.ones(20))])
    assert same.low == same.high == same.value == 1.5


def test_probability_of_improvement_is_the_mean_over_cells():
    rng = np.random.default_rng(2)
    mine, theirs = rng.integers(0, 4, (2, 5, 20)).astype(float)
    gaps = np.zeros((5, 20))
    found = improvement([stratum("Tree", mine, gaps)], [stratum("Tree", theirs, gaps)])
    by_cell = [probability_of_improvement(ours, others) for ours, others in zip(mine, theirs, strict=True)]
    assert found.value == pytest.approx(np.mean(by_cell))
    assert found.low < found.value < found.high


def test_a_random_world_is_compared_with_itself_and_cells_count_by_units():
    place, worse = "random, 8 to 20 states", np.zeros((1, 34))
    mine = np.where(np.arange(34) < 17, 1.0, -1.0)[None]
    gaps = np.where(np.arange(34) == 33, np.nan, 0.0)[None]
    alone = improvement([stratum(place, mine, gaps)], [stratum(place, worse, gaps)])
    assert alone.value == pytest.approx(17 / 33)
    tabular = [stratum("Tree", np.ones((1, 20)), np.zeros((1, 20)))]
    tied = improvement([*tabular, stratum(place, mine, gaps)], [*tabular, stratum(place, worse, gaps)])
    assert tied.value == pytest.approx((20 * 0.5 + 17) / 53)


def test_strategies_with_overlapping_intervals_share_a_rank():
    scores = [Estimate(v, v - w, v + w) for v, w in ((0.1, 0.01), (0.2, 0.05), (0.28, 0.04), (0.33, 0.02), (0.9, 0.1))]
    assert ranks(scores) == ["1", "2=", "2=", "4", "5"]
    assert ranks([]) == []
    assert str(scores[1]) == "0.20 [0.15, 0.25]"


def test_cost_is_per_episode_and_per_label():
    row = {"returns": {"3": [0.0] * 20, "9": [0.0] * 20}, "cost": {"3": 100, "9": 300}, "seconds": 2.4, "labels": 240}
    assert cost_of({"results": {"Tree": {"uds": row}}}) == pytest.approx((200, 0.01))
