"""The study of prediction: its cells, data that went through Minari, and what it says about made-up results."""

import numpy as np
import pytest

from experiments.benchmarks.suite.result_files import committed
from experiments.engine.cell import Cell, Result
from experiments.studies.control import control_heuristics
from experiments.studies.minatar import minatar_heuristics
from experiments.studies.prediction import fitted_q, prediction
from experiments.studies.prediction.minari_data import recorded
from tests.markdown_pages import ROOT


def test_cells():
    found = prediction.cells(2, "exact")
    assert len({cell.key for cell in found}) == len(found)
    own = [cell for cell in found if cell.study == prediction.NAME]
    full, played = ([cell for cell in own if ("share" in cell.settings) == is_played] for is_played in (False, True))
    assert len(full) == 2 * 2 * 2  # seeds, worlds, learners
    assert (
        len(played) == 2 * 3 * 10 * 2
    )  # seeds, worlds and learners in which full labels do not fail, strategies, budgets
    assert ("LunarLander", "fitted Q") not in {(cell.world, cell.settings["variant"]) for cell in played}
    assert {cell.strategy for cell in own} == {*prediction.STRATEGIES, "full labels"}
    keys = {cell.key for study in (control_heuristics, minatar_heuristics) for cell in study.cells(2, "exact")}
    others = [cell for cell in found if cell.study != prediction.NAME]
    assert {cell.key for cell in others} <= keys
    assert {prediction._group_name(cell) for cell in others} == {"control", "games"}
    assert {cell.strategy for cell in others} == {"uniform", "visitation", "terminal", "guided"}


def test_the_estimate_adds_up():
    cells = prediction.cells(1, "exact")
    assert prediction.cpu_hours(cells) == pytest.approx(sum(prediction.cpu_hours([cell]) for cell in cells), rel=0.05)
    guided, uniform = (
        prediction.cpu_hours([cell for cell in cells if cell.study == prediction.NAME and cell.strategy == name])
        for name in ("guided", "uniform")
    )
    assert guided > 5 * uniform > 0


@pytest.fixture
def quick(monkeypatch):
    """Learners that hardly learn, and count their fits."""
    fits, fit = [], fitted_q.FittedQ.fit

    def once(self, *arguments):
        fits.append(self)
        self.iterations = self.updates = 1
        return fit(self, *arguments)

    monkeypatch.setattr(fitted_q.FittedQ, "fit", once)
    return fits


@pytest.mark.parametrize(("strategy", "fits"), [("uniform", 1), ("terminal", 1), ("guided", 6)])
def test_a_cell(quick, strategy, fits, monkeypatch):
    monkeypatch.setattr(prediction, "REFITS", 5)
    settings = {"variant": "conservative Q", "transitions": 400, "groups": 20, "share": 0.5}
    (found,) = prediction.run_cell(Cell(prediction.NAME, "CartPole", strategy, 1, settings))
    assert len(quick) == fits  # guided: before its first label, and five times
    assert {type(learner).__name__ for learner in quick} == {"ConservativeQ"}
    assert (found["labels"], found["share"], found["groups"]) == ("50 %", 0.5, 20)
    assert found["return"] > 5


def test_recorded_data_are_kept_and_their_rewards_withheld():
    first, again, other = (recorded("CartPole", 300, seed) for seed in (7, 7, 8))
    assert len(first) == 300
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.hidden_reward.tolist() == [1.0] * 300
    assert first.without_rewards.hidden_reward is None
    assert first.vectors.shape == (4,)
    assert 0.2 < first.action.mean() < 0.8


def results(quality, learner="conservative Q", world="CartPole", full=1.0, noise=0.1):
    """Return results in which strategies earn what ``quality`` says."""
    rng, found = np.random.default_rng(0), []
    for cell in prediction.cells(3, "exact"):
        if cell.study != prediction.NAME or (cell.settings["variant"], cell.world) != (learner, world):
            continue
        earned = full if cell.strategy == "full labels" else quality[cell.strategy]
        share = cell.settings.get("share")
        one = {
            "labels": "" if share is None else f"{100 * share:.0f} %",
            "return": 100 * earned + noise * rng.normal(),
            "normalised": earned,
        }
        found.append(Result(cell, [one], 1.0))
    return found


def ranked():
    """Return the mean gap of each strategy on the leaderboard, as a quality; other strategies come last."""
    tables = prediction.read_tables(committed(), prediction.STRATEGIES)
    gaps = dict(zip(tables.strategies, tables.scores(tables.parts["all"]), strict=True))
    return {name: 1 - gaps.get(name, 2.0) for name in prediction.STRATEGIES}


def test_a_group_that_the_suite_predicts(monkeypatch):
    monkeypatch.setattr(prediction, "agreement", _few)
    monkeypatch.setattr(prediction, "cell_agreement", _few_cells)
    rows = prediction.rows(results(ranked()))
    tau = {row.setting.partition(";")[0]: row.ours for row in rows if row.metric == prediction.TAU}
    assert tau["all"].mean == 1.0
    assert set(tau) == {"all", "tabular", "random", "uds", "adapted"}
    said = prediction.findings(rows)
    assert said[0].startswith("the score 'all' of the suite predicts conservative Q: tau 1.00 [")
    assert "cells of the suite predict; with strategies shuffled" in said[-1]
    reversed_rows = prediction.rows(results({name: -value for name, value in ranked().items()}))
    assert prediction.findings(reversed_rows)[0].startswith("the score 'all' of the suite does not predict")
    assert list(prediction.figures(results(ranked()))) == ["Rank where networks learn against the score on the suite"]


def _few(tables, group, chosen):
    from experiments.studies.prediction.rank_agreement import agreement

    return agreement(tables, group, chosen, resamples=10)


def _few_cells(tables, groups):
    from experiments.studies.prediction.rank_agreement import cell_agreement

    return cell_agreement(tables, groups, resamples=10, shuffles=3)


def test_a_learner_that_fails_with_full_labels_does_not_count():
    assert [group.name for group in prediction.groups_of(results(ranked()))] == ["conservative Q"]
    assert prediction.groups_of(results(ranked(), full=0.4)) == []
    assert prediction.figures(results(ranked(), full=0.4)) == {}
    both = results(ranked()) + results(ranked(), world="LunarLander", full=0.4)
    (group,) = prediction.groups_of(both)
    assert len(group.cells) == 2  # CartPole's two budgets


def test_the_plan_names_what_is_run():
    plan = (ROOT / "docs" / "prediction.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in plan for name in prediction.STRATEGIES)
    assert f"{prediction.TRANSITIONS:,} transitions, 200 groups" in plan
    defaults = fitted_q.FittedQ()
    assert f"{defaults.iterations} iterations of {defaults.updates} updates" in plan
    assert "10 and 30 %" in plan
    assert prediction.SHARES == (0.1, 0.3)
    assert prediction.STUDY.seeds == 5
