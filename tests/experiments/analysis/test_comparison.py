"""Comparison with published results: the right cell of the right table, with the right error and verdict."""

import numpy as np
import pytest

from experiments.analysis.best_known import best_return
from experiments.analysis.comparison import (
    HEURISTIC_REASONS,
    MORE_LABELS,
    NOISY,
    PLATEAU,
    SEARCH_REASONS,
    compare_budgets,
    compare_searches,
    published_heuristics,
    published_initial_samples,
    search_reason,
)
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import (
    AGREES,
    CANNOT_BE_TOLD,
    DIFFERS,
    IMPOSSIBLE,
    NOT_ENUMERATED,
    Control,
    Verdict,
)
from experiments.protocol.published import PublishedMean
from tests.experiments.analysis.synthetic_rows import result


def swept(strategy, returns, world="Graph", variant="uds", learner="uds", labels=3):
    """One result per seed of a strategy that was played at one budget."""
    problem = {"problem": {"learner": learner}} if learner else {}
    return [
        result([{"labels": labels, "return": value}], world, strategy, seed, variant=variant, **problem)
        for seed, value in enumerate(returns)
    ]


def test_published_heuristics_are_found_by_their_number_of_labels():
    uds, adapted = published_heuristics("uds"), published_heuristics("adapted")
    assert uds["Graph", "uds", "uniform", 3] == PublishedMean(2.949, 0.137)
    assert uds["TwoRoomsTrap", "uds", "guided", 21] == PublishedMean(-16.440, 0.968)
    assert adapted["CliffWalk", "adapted", "uniform", 3] == PublishedMean(-488.198, 6.642)
    assert (len(uds), len(adapted)) == (150, 90)


def test_published_initial_samples_are_found_by_their_variant():
    assert published_initial_samples("Graph")["Graph", "initial 0", "guided", 3] == PublishedMean(3.701, 0.129)
    known = published_initial_samples("TwoRooms")
    assert known["TwoRooms", "initial 0.1", "guided", 36] == PublishedMean(0.511, 0.050)


def test_budgets_are_set_beside_the_published_mean():
    runs = [3.0, 3.4, 2.6, 3.1]
    results = swept("uniform", runs) + swept("guided", [8.0, 8.0]) + swept("terminal", [3.2])
    uniform, guided, terminal = compare_budgets(results, published_heuristics("uds"))
    assert (uniform.world, uniform.labels, uniform.strategy, uniform.metric) == ("Graph", 3, "uniform", "return")
    assert uniform.ours == summarise(np.array(runs))
    assert uniform.setting == "uds"
    assert (uniform.published, uniform.published_error) == (2.949, 0.137)
    assert uniform.verdict == Verdict(AGREES, control=Control(2, 4))  # guided-on-policy and visitation-on-policy agree
    assert uniform.gap == pytest.approx(7.0 - np.mean(runs))  # the best three labels earn 7
    assert (guided.published, guided.published_error) == (3.701, 0.129)
    assert guided.verdict == Verdict(DIFFERS, HEURISTIC_REASONS["guided"], Control(0, 4))
    assert guided.ours.improvement == 1.0
    assert guided.gap == pytest.approx(-1.0)
    assert (terminal.published, terminal.published_error, terminal.verdict) == (None, None, None)
    assert terminal.ours.improvement == 0.75
    assert (terminal.world, terminal.labels, terminal.strategy) == ("Graph", 3, "terminal")
    assert (terminal.setting, terminal.metric, terminal.gap) == ("uds", "return", pytest.approx(7.0 - 3.2))


def test_our_error_counts_beside_the_published_one():
    def found(runs):
        (row,) = compare_budgets(swept("uniform", runs), published_heuristics("uds"))
        return row.verdict.by_rule

    assert found([2.0] * 4) == DIFFERS  # 0.949 away from the published mean, whose error is 0.137
    assert found([1.0, 3.0, 1.0, 3.0]) == AGREES  # the same mean with an error of 0.577


def test_budgets_without_a_published_table():
    (row,) = compare_budgets(swept("uniform", [3.0], variant="expert 0.5", learner=None))
    assert (row.published, row.verdict, row.setting) == (None, None, "expert 0.5")
    assert row.gap == pytest.approx(best_return("Graph", "uds", 3) - 3.0)
    (row,) = compare_budgets(
        [result([{"labels": 3, "return": 3.0}], variant="v", problem={"dataset_size": 5})], published_heuristics("uds")
    )
    assert row.gap == pytest.approx(best_return("Graph", "uds", 3) - 3.0)


def test_the_baseline_is_uniform_of_the_same_world_variant_and_budget():
    results = [
        *swept("uniform", [1.0], variant="other"),
        *swept("uniform", [1.0], labels=6),
        *swept("uniform", [1.0], world="Tree"),
        *swept("guided", [2.0]),
    ]
    assert [row.ours.improvement for row in compare_budgets(results)] == [None] * 4


def test_the_gap_is_that_of_the_learner():
    (row,) = compare_budgets(swept("uniform", [1.0], "CliffWalk", "adapted", "adapted", 12))
    assert row.gap == pytest.approx(best_return("CliffWalk", "adapted", 12) - 1.0)
    assert best_return("CliffWalk", "adapted", 12) != best_return("CliffWalk", "uds", 12)


@pytest.mark.parametrize(
    ("world", "strategy", "labels", "reason"),
    [
        ("Tree", "uniform", 27, MORE_LABELS),
        ("Tree", "guided", 27, MORE_LABELS),
        ("Tree", "uniform", 21, "unexplained"),
        ("CliffWalk", "visitation-on-policy", 33, HEURISTIC_REASONS["visitation-on-policy"]),
    ],
)
def test_reasons_of_heuristics(world, strategy, labels, reason):
    (row,) = compare_budgets(swept(strategy, [-999.0], world, labels=labels), published_heuristics("uds"))
    assert (row.verdict.by_rule, row.verdict.reason) == (DIFFERS, reason)


def test_a_published_mean_over_seeds_may_exceed_the_range_by_its_error():
    (row,) = compare_budgets(swept("uniform", [8.0]), {("Graph", "uds", "uniform", 3): PublishedMean(8.2, 0.1)})
    assert (row.verdict.by_rule, row.verdict.outcome) == (AGREES, CANNOT_BE_TOLD)
    (row,) = compare_budgets(swept("uniform", [8.0]), {("Graph", "uds", "uniform", 3): PublishedMean(8.4, 0.1)})
    assert row.verdict == Verdict(IMPOSSIBLE, "the world allows -8.000 to 8.000")


def searched(strategy, records, world="Graph", learner="uds"):
    return [result([record], world, strategy, seed, learner=learner) for seed, record in enumerate(records)]


def test_searches_are_set_beside_train_and_test_scores():
    records = [{"labels": 3, "train": 5.3, "test": [3.0, 3.1, 3.2, 2.9, 2.8], "noise": 0.01}]
    train, test = compare_searches(searched("brute-force", records, learner="adapted"), "trained_adapted")
    assert (train.metric, train.published, train.published_error) == ("train", 5.337, None)
    assert (test.metric, test.published, test.published_error) == ("test", 3.032, 0.213)
    assert train.ours.mean == 5.3
    assert test.ours.mean == pytest.approx(3.0)
    assert train.gap == pytest.approx(best_return("Graph", "adapted", 3) - 5.3)
    assert test.gap is None
    # 5.337 is that of sequential-greedy too; es-200 (5.308), es-50 and guided are rejected, and with them 0.01 * 1.96.
    assert train.verdict == Verdict(DIFFERS, SEARCH_REASONS["brute-force"], Control(1, 4))
    assert test.verdict == Verdict(AGREES, control=Control(2, 3))  # those of sequential-greedy and es-200 agree too
    assert (train.note, train.setting, train.labels, train.strategy, train.world) == ("", "", 3, "brute-force", "Graph")


def test_the_noise_of_one_run_stands_for_all():
    def found(*noises):
        records = [{"labels": 3, "train": 5.3, "test": [3.0], **({"noise": n} if n else {})} for n in noises]
        (train, _) = compare_searches(searched("sequential-greedy", records, learner="adapted"), "trained_adapted")
        return train.verdict.by_rule

    assert found(0.02) == found(0.02, None) == AGREES  # 5.337 - 5.3 is less than 1.96 * 0.02
    assert found(0.018) == found(None) == DIFFERS
    assert found(0.036, 0.002) == AGREES  # the mean of the two is 0.019


def test_a_search_is_judged_by_its_runs_and_guided_by_its_mean():
    spread = [{"labels": 3, "train": value, "test": [value]} for value in (4.0, 5.5)]
    rows = {
        strategy: compare_searches(searched(strategy, spread, learner="adapted"), "trained_adapted")[0]
        for strategy in ("es-200", "es-50", "guided")
    }
    assert rows["es-200"].verdict == Verdict(AGREES, control=Control(4, 4))  # all five are between the two runs
    assert rows["es-50"].verdict == Verdict(AGREES, control=Control(4, 4))
    assert rows["guided"].verdict == Verdict(AGREES, control=Control(4, 4))
    narrow = [{"labels": 3, "train": value, "test": [value]} for value in (4.4, 4.6) * 50]
    rows = {
        strategy: compare_searches(searched(strategy, narrow, learner="adapted"), "trained_adapted")[0]
        for strategy in ("es-50", "guided")
    }
    assert rows["es-50"].verdict == Verdict(DIFFERS, "unexplained", Control(1, 4))  # guided, 4.477, is between the runs
    assert rows["guided"].verdict == Verdict(AGREES, control=Control(0, 4))  # the mean, 4.5 +- 0.01
    many = [{"labels": 3, "train": value, "test": [value]} for value in (4.39, 4.59) * 500]
    (row, _) = compare_searches(searched("guided", many, learner="adapted"), "trained_adapted")
    assert row.verdict.by_rule == AGREES  # the published mean is over 100 seeds, however many ours are
    (row, _) = compare_searches(searched("guided", spread * 50, learner="adapted"), "trained_adapted")
    assert row.verdict.by_rule == DIFFERS  # 4.477 is between our runs, but far from their mean


def test_our_error_over_test_datasets_counts():
    def found(*scores):
        records = [{"labels": 3, "train": 5.3, "test": list(scores)}]
        return compare_searches(searched("brute-force", records, learner="adapted"), "trained_adapted")[1].verdict

    assert found(2.3, 2.3, 2.3, 2.3, 2.3).by_rule == DIFFERS  # 3.032 +- 0.213 with four degrees of freedom
    assert found(1.3, 1.8, 2.3, 2.8, 3.3).by_rule == AGREES


def test_the_spread_over_datasets_is_the_root_mean_square_over_runs():
    def found(*spreads):
        records = [{"labels": 3, "train": 5.3, "test": [2.3 - x, 2.3, 2.3 + x, 2.3, 2.3]} for x in spreads]
        return compare_searches(searched("es-200", records, learner="adapted"), "trained_adapted")[1].verdict.by_rule

    low, high = 0.0, 2.0  # es-200 is printed as 3.014 +- 0.211
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) == AGREES else (middle, high)
    limit = high
    assert found(limit * 1.41, 0.0) == DIFFERS
    assert found(limit * 1.42, 0.0) == AGREES


def test_a_search_that_was_not_published():
    records = [{"labels": 3, "train": 7.0, "test": [7.0]}]
    for strategy in ("swap-search", "no such strategy"):
        train, test = compare_searches(searched(strategy, records), "trained_uds")
        assert (train.published, train.published_error, train.verdict) == (None, None, None)
        assert (test.published, test.published_error, test.verdict) == (None, None, None)
    train, test = compare_searches(searched("guided", records), "trained_uds")
    assert (train.published, test.published) == (3.701, None)
    assert train.verdict == Verdict(DIFFERS, SEARCH_REASONS["guided"], Control(0, 4))
    assert test.verdict is None


def test_what_was_not_enumerated_is_named_and_has_no_number():
    note = [{"labels": 12, "note": "not enumerated", "why": "too many sets"}]
    train, test = compare_searches(searched("brute-force", note, "CliffWalk"), "trained_uds")
    assert train.ours is None
    assert train.gap is None
    assert (train.world, train.labels, train.strategy) == ("CliffWalk", 12, "brute-force")
    assert train.note == train.verdict.outcome == NOT_ENUMERATED
    assert train.verdict.reason == f"best known {best_return('CliffWalk', 'uds', 12):.3f} by exact"
    assert (train.published, train.published_error) == (-84.016, None)
    assert (train.metric, test.metric) == ("train", "test")
    assert (test.published, test.published_error) == (-83.986, 0.001)
    assert train.judged is None
    train, _ = compare_searches(searched("exact", note, "CliffWalk"), "trained_uds")
    assert train.published is None


def test_the_table_of_populations_has_its_own_budgets():
    records = [{"labels": 15, "train": 1.0, "test": [1.0]}]
    train, _ = compare_searches(searched("es-10x5", records, "TwoRoomsTrap"), "es_population_ablation")
    assert train.published == 1.0
    train, _ = compare_searches(searched("es-3x20", records, "TwoRoomsTrap"), "es_iterations_ablation")
    assert train.published is None


def test_nothing_searched():
    assert compare_searches([], "trained_uds") == []


@pytest.mark.parametrize(
    ("world", "strategy", "gap", "reason"),
    [
        ("CliffWalk", "sequential-greedy", 1.01, PLATEAU),
        ("CliffWalk", "sequential-greedy", 1.0, "unexplained"),
        ("CliffWalk", "es-50", 50.0, "unexplained"),
        ("Graph", "sequential-greedy", 50.0, "unexplained"),
        ("FrozenLake", "sequential-greedy", 50.0, NOISY),
        ("FrozenLake", "es-200", 0.0, NOISY),
        ("FrozenLake", "guided", 0.0, SEARCH_REASONS["guided"]),
        ("Graph", "brute-force", 0.0, SEARCH_REASONS["brute-force"]),
    ],
)
def test_reasons_of_searches(world, strategy, gap, reason):
    assert search_reason(world, strategy, gap) == reason


def test_the_plateau_is_seen_in_the_training_score_of_both_rows():
    best = best_return("CliffWalk", "uds", 12)
    records = [{"labels": 12, "train": best - 5, "test": [best - 9, best - 7]}]
    rows = compare_searches(searched("sequential-greedy", records, "CliffWalk"), "trained_uds")
    assert [(row.verdict.by_rule, row.verdict.reason) for row in rows] == [(DIFFERS, PLATEAU)] * 2
    assert [row.ours.mean for row in rows] == [best - 5, best - 8]


@pytest.mark.parametrize("side", [-1, 1])
def test_only_the_other_strategies_of_the_same_world_variant_and_budget_are_controls(side):
    """Numbers that agree must be counted once each: not the right one, and none of another cell."""
    here, near = ("Graph", "uds", "uniform", 3), PublishedMean(3.0, 0.1)
    table = {
        here: near,
        ("Graph", "uds", "a", 3): near,
        ("Graph", "uds", "b", 3): PublishedMean(3.0 + side * 2, 0.1),
        ("Graph", "uds", "c", 6): near,
        ("Graph", "other", "d", 3): near,
        ("Tree", "uds", "e", 3): near,
        ("Graph", "other", "uniform", 3): near,
        ("Graph", "uds", "uniform", 6): near,
    }
    (row,) = compare_budgets(swept("uniform", [2.9, 3.1]), table)
    assert row.verdict == Verdict(AGREES, control=Control(1, 2))


def test_training_scores_are_swapped_with_training_scores_and_test_scores_with_test_scores():
    records = [{"labels": 12, "train": -84.016, "test": [-83.986]}]
    train, test = compare_searches(searched("sequential-greedy", records, "CliffWalk"), "trained_uds")
    assert (train.verdict.control.others, test.verdict.control.others) == (4, 3)  # guided has no test score
    assert (train.verdict.by_rule, test.verdict.by_rule) == (AGREES, AGREES)
