"""The shipped selector where it was never trained, and the study that measures it."""

import numpy as np
import pytest

import agents
from agents.errors import SavedAgentError
from agents.learned.selector import SHIPPED, selector_path
from agents.learned.state_features import LARGE, TERMINATION_FEATURES
from experiments.engine.cell import Result
from experiments.protocol.budgets import BUDGETS, WORLDS
from experiments.studies import find_studies
from experiments.studies.selectors.learned_selectors import GAP, SHOWN, SIX, cost_figure
from experiments.studies.selectors.learned_selectors import _runs as runs_of
from experiments.studies.selectors.unseen_worlds import RANDOM, SELECTORS, run_zero_shot
from selectenv.errors import OptionError

STUDY = find_studies()["learned"]
RIVALS = ("uniform", "guided", "terminal", "terminal-guided", "es-50")


@pytest.fixture(scope="module")
def results():
    """The six worlds under UDS, all budgets and a few seeds."""
    wanted = [
        cell
        for cell in STUDY.cells(3, "exact")
        if cell.world in WORLDS and cell.settings["learner"] == "uds" and cell.strategy in (*RIVALS, *SELECTORS)
    ]
    return [Result(cell, run_zero_shot(cell), 0.0) for cell in wanted]


@pytest.fixture(scope="module")
def left(results):
    """What strategies leave of uniform's gap on the six worlds."""
    return {row.strategy: row.ours for row in STUDY.rows(results) if (row.world, row.metric) == (SIX, GAP)}


def test_uniform_leaves_everything(results):
    gaps = [row for row in STUDY.rows(results) if row.metric == GAP and row.strategy == "uniform"]
    assert {row.world for row in gaps} == {*WORLDS, SIX}
    for row in gaps:
        assert row.ours.mean == pytest.approx(1.0)


def test_the_selectors_beat_their_rivals_in_worlds_they_never_saw(left):
    """What the README says of five training seeds; three seeds of the rivals with chance are enough to see it."""
    mine = left["learned"]
    assert mine.runs == len(SELECTORS["learned"]) == 5
    assert mine.mean < left["guided"].mean / 2
    for rival in ("terminal", "terminal-guided", "es-50"):
        assert mine.mean < left[rival].mean, rival


def test_gaps_are_those_of_the_records(results, left):
    """The same number, computed directly from the records."""
    from experiments.analysis.best_known import best_return

    means = []
    for world in WORLDS:
        gaps = {
            name: np.mean(
                [
                    best_return(world, "uds", record["labels"]) - record["train"]
                    for result in results
                    for record in result.records
                    if result.cell.world == world and result.cell.strategy == name
                ]
            )
            for name in ("guided", "uniform")
        }
        means.append(gaps["guided"] / gaps["uniform"])
    assert left["guided"].mean == pytest.approx(np.mean(means))


def test_figures_show_strategies_of_the_study():
    assert set(SHOWN) <= {cell.strategy for cell in STUDY.cells(1, "exact")}


def test_findings_and_figures(results):
    said = " ".join(STUDY.findings(STUDY.rows(results)))
    assert "over 5 training seeds" in said
    assert len(STUDY.figures(results)) == 2
    assert len(cost_figure(runs_of(results)).axes) == 2


def test_strategies_without_evaluator_calls_choose_anew_on_the_test_data(results):
    for result in results:
        record = result.records[0]
        assert ("anew" in record) == (record["cost"] == 0)
        assert len(record["ids"]) == record["labels"] in BUDGETS[result.cell.world]


@pytest.mark.parametrize("strategy", ["learned", "uniform", "sequential-greedy"])
def test_random_worlds(strategy):
    cell = next(c for c in STUDY.cells(1, "exact") if c.world == RANDOM and c.strategy == strategy and c.seed == 2)
    records = run_zero_shot(cell)
    assert [record["labels"] for record in records] == ["10 %", "30 %", "50 %", "70 %", "90 %"]
    assert {record["kind"] for record in records} == {"grid"}
    assert records == run_zero_shot(cell)
    assert (records[0]["cost"] > 0) == (strategy == "sequential-greedy")


def test_breakout():
    cell = next(c for c in STUDY.cells(1, "exact") if c.world == "Breakout" and c.strategy == "learned")
    cell.settings["problem"] = {"dataset_size": 3_000, "learner": "uds"}
    records = run_zero_shot(cell)
    assert len(records) == 6
    assert all(record["cost"] == 0 and record["return"] >= 0 for record in records)


def test_selectors_ship():
    agent = agents.make("learned")
    assert agent.weights == SHIPPED
    for names in SELECTORS.values():
        for seed, name in enumerate(names):
            other = agents.make("learned", weights=name)
            assert other.card["seed"] == seed
            assert other.card["without"] == (list(TERMINATION_FEATURES) if "without" in name else [])
            assert other.card["settings"]["padding"] == LARGE  # larger worlds are larger
    assert selector_path(SHIPPED).stat().st_size < 300_000
    with pytest.raises(SavedAgentError, match="Did you mean 'seed-1'"):
        agents.make("learned", weights="sed-1")
    with pytest.raises(OptionError):
        agents.make("learned", weights=1)
