"""The study of strategies without evaluator calls: its cells, its measures and its random worlds."""

import numpy as np
import pytest

from experiments.engine.cell import Cell, Result
from experiments.protocol.budgets import BUDGETS, WORLDS
from experiments.studies import find_studies
from experiments.studies.selectors.zero_call import GAP, PER_BUDGET, SIX, UNSEEN, compared, gaps_of
from experiments.studies.selectors.zero_call_cells import (
    ABLATIONS,
    DEVELOPMENT,
    FREE,
    LARGER,
    LEARNERS,
    RANDOM_WORLDS,
    REFERENCE,
    SEARCHES,
    TEST,
    USUAL,
    VARIANTS,
    run_zero_call,
    task_of,
)

STUDY = find_studies()["zero-call"]


def cell(world, strategy, seed=0, learner="uds", variant=USUAL):
    return Cell("zero-call", world, strategy, seed, {"learner": learner, "variant": variant})


def results_with(world, returns, seed=0, learner="uds"):
    """Results of strategies from their returns by budget; no labels earn 0 and all earn 10."""
    return [
        Result(
            cell(world, name, seed, learner),
            [{"labels": b, "return": r, "cost": 0, "none": 0.0, "all": 10.0, "ids": []} for b, r in by_budget.items()],
            0.0,
        )
        for name, by_budget in returns.items()
    ]


def test_every_strategy_runs_at_every_place():
    cells = STUDY.cells(20, "exact")
    assert len({one.key for one in cells}) == len(cells)
    every = {*FREE, *SEARCHES, REFERENCE}
    places = {(one.world, one.settings["variant"], one.seed) for one in cells}
    assert {world for world, _, _ in places} == {*WORLDS, *LARGER, *RANDOM_WORLDS}
    for place in places:
        names = {one.strategy for one in cells if (one.world, one.settings["variant"], one.seed) == place}
        assert every <= names <= every | set(ABLATIONS)
    assert sum(world == TEST for world, _, _ in places) == 100
    assert sum(world == "Graph" and variant == USUAL for world, variant, _ in places) == 20
    assert {variant for _, variant, _ in places} == {USUAL, *VARIANTS}
    assert len({one.strategy for one in cells} & set(ABLATIONS)) == len(ABLATIONS)


def test_test_worlds_are_not_development_worlds():
    seen = [task_of(cell(stream, "uniform", number))[0] for stream in (DEVELOPMENT, TEST) for number in range(2)]
    assert len({task.dataset.fingerprint for task in seen}) == 4
    again, budgets = task_of(cell(TEST, "terminal", 1))
    assert again.dataset.fingerprint == seen[3].dataset.fingerprint
    assert budgets == sorted(budgets)
    assert budgets[-1] < again.budget_states


def test_data_of_a_place():
    task, budgets = task_of(cell("Tree", "uniform", 3, "adapted", "share 0.25"))
    assert (task.learner.rule, budgets) == ("adapted", list(BUDGETS["Tree"]))
    assert {name: task.dataset.spec[name] for name in ("expert_share", "seed")} == {"expert_share": 0.25, "seed": 3}
    task, _ = task_of(cell("FrozenLake", "uniform", variant="size 1000"))
    assert (task.dataset.spec["expert_share"], len(task.dataset)) == (0.5, 1_000)
    task, budgets = task_of(cell("FrozenLake 8x8", "uniform"))
    assert (task.n_states, budgets) == (53, [5, 15, 31])
    assert task_of(cell("FrozenLake 10x10", "uniform"))[0].n_states == 87


def test_records_of_a_cell():
    records = {name: run_zero_call(cell(DEVELOPMENT, name, 8)) for name in ("uniform", "terminal", "imagine")}
    task, budgets = task_of(cell(DEVELOPMENT, "uniform", 8))
    for name, found in records.items():
        assert [record["labels"] for record in found] == budgets
        for record in found:
            assert record["all"] == task.score(task.dataset.labelable)
            assert record["cost"] == 0
            if name != "uniform":
                assert record["return"] == task.score(task.actions(record["ids"]))
    assert run_zero_call(cell(DEVELOPMENT, "uniform", 8)) == records["uniform"]


def test_gaps_by_hand():
    returns = {
        "uniform": {2: 4.0, 4: 8.0, 6: 9.95},
        "imagine": {2: 6.0, 4: 9.0, 6: 10.0},
        REFERENCE: {2: 8.0, 4: 9.0, 6: 9.99},
    }
    gaps, left_out = gaps_of(results_with("Tree", returns))
    mine = gaps["uds", USUAL, "Tree"]["imagine"]
    assert mine.summed.tolist() == pytest.approx([2.0 / (4.0 + 1.0 + 0.05)])
    assert mine.per_budget.tolist() == pytest.approx([(2 / 4 + 0 / 1) / 2])
    assert gaps["uds", USUAL, "Tree"]["uniform"].summed.tolist() == [1.0]
    assert left_out == ["uds usual data Tree, dataset 0, 6 labels"]


def test_rows_and_findings_of_groups():
    results = []
    for i, world in enumerate(WORLDS):
        for seed in range(3):
            returns = {"uniform": {2: 4.0}, "imagine": {2: 7.0 + 0.1 * i}, REFERENCE: {2: 8.0}}
            results += results_with(world, returns, seed)
    rows = {(row.world, row.metric, row.strategy): row.ours for row in STUDY.rows(results)}
    assert rows[SIX, GAP, "imagine"].mean == pytest.approx((1 - 0.25) / 4)
    assert rows[SIX, GAP, "imagine"].runs == 3
    assert rows[UNSEEN, PER_BUDGET, "uniform"].mean == 1
    assert (SIX, GAP, "auto") not in rows
    sentences = STUDY.findings(STUDY.rows(results))
    assert any(s.startswith(f"uds, {SIX}, {GAP}, uniform = 1: imagine 0.188") for s in sentences)
    assert list(STUDY.figures(results)) == ["Gap left without evaluator calls"]


def test_two_strategies_in_the_test_worlds():
    results = []
    for learner in LEARNERS:
        for seed in range(10):
            mine = 3.0 if seed == 0 else 7.0
            returns = {"uniform": {2: 4.0}, "auto": {2: mine}, "learned": {2: 6.0}, REFERENCE: {2: 8.0}}
            results += results_with(TEST, returns, seed, learner)
    found = compared(results, "auto", "learned")
    mean, low, high, below, worlds = found["adapted"]
    assert mean == pytest.approx(np.mean([0.75] + 9 * [-0.25]))
    assert low < mean < high
    assert (below, worlds) == (1, 10)
    assert compared(results, "auto", "guided") == {}
