"""The studies of networks, on a few hundred transitions and a few updates."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.analysis.tensorboard_log import TensorBoardLog
from experiments.cli import main as cli
from experiments.cli import study_commands
from experiments.engine.cell import Result
from experiments.engine.store import ResultsStore
from experiments.studies import find_studies
from experiments.studies.breakout.breakout_iql import correlation, pairs
from experiments.studies.game_episodes import game_problem
from experiments.studies.minatar import network_cells as networks
from experiments.studies.minatar.network_cells import (
    CLOSED,
    FEW,
    POOL,
    REFERENCES,
    network_cell,
    run_network_cell,
    training_runs,
)
from selectenv.datasets import minatar_collection as play
from selectenv.domains.minatar.games import GAMES
from selectenv.learners import IqlLearner

STUDIES = {name: study for name, study in find_studies().items() if study.cpu_hours is not None}


def small(cell, updates=3):
    """The same cell on few data, with few updates."""
    settings = dict(cell.settings)
    for name in ("problem", "chooser"):
        if name in settings:
            tiny = {key: value for key, value in settings[name].items() if key != "scale"}
            settings[name] = {**tiny, "dataset_size": 2_400, "rollouts": 2}
    settings["problem"]["updates"] = updates
    if "search" in settings:
        settings["search"] = {**settings["search"], "max_evaluations": 2}
    return replace(cell, settings=settings)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(networks, "TRAINING", tmp_path / "training")
    monkeypatch.setattr(play, "GAMES_AT_ONCE", 4)  # long enough to earn something


def fast(study, seeds=1):
    return [cell for cell in study.cells(seeds, "exact") if cell.settings["variant"] == "fast"]


def made_up(cell, value=5.0):
    """Records such as a cell gives, made up."""
    shares = [0.15, 0.3, 0.45, 0.6] if "refit" in cell.settings else [cell.settings.get("share")]
    rng = np.random.default_rng(int(cell.key, 16) % 2**32)
    records = [
        {
            "labels": "" if share is None else networks.percent(share),
            "return": value + rng.normal(),
            "states": 9,
            "cost": 8 if "search" in cell.settings else 0,
            "exact": value + rng.normal(),
        }
        for share in shares
    ]
    if cell.strategy in REFERENCES:
        records += [{"updates": u, "curve": value * u / 1000} for u in (500, 1000)]
    return Result(cell, records, 1.0)


def test_the_four_studies():
    assert set(STUDIES) == {"minatar-heuristics", "minatar-trained", "minatar-cost", "breakout-iql"}
    for study in STUDIES.values():
        cells = study.cells(3, "exact")
        assert len({cell.key for cell in cells}) == len(cells)
        assert {cell.study for cell in cells} == {POOL}
        assert study.scales == ("fast",)
        paper = [cell for cell in cells if cell.settings["variant"] == "paper"]
        assert study.cpu_hours(paper) > 5 * study.cpu_hours(fast(study, 3)) > 0


def test_studies_share_their_cells():
    heuristics, trained, cost, both = (
        {cell.key for cell in fast(STUDIES[name], 3)}
        for name in (
            "minatar-heuristics",
            "minatar-trained",
            "minatar-cost",
            "breakout-iql",
        )
    )
    guided = {cell.key for cell in fast(STUDIES["minatar-trained"], 3) if cell.strategy == "guided"}
    assert guided <= heuristics & trained
    assert len(cost & heuristics) == 15
    assert both & heuristics


def test_the_plan_of_heuristics():
    cells = fast(STUDIES["minatar-heuristics"], 3)
    wanted = {
        (game, strategy, seed, share)
        for game in GAMES
        for strategy in ("uniform", "visitation", "terminal")
        for seed in range(3)
        for share in networks.SHARES
    }
    assert {(c.world, c.strategy, c.seed, c.settings["share"]) for c in cells if "share" in c.settings} == wanted
    guided = [cell for cell in cells if cell.strategy == "guided"]
    assert len(guided) == 12
    assert all(training_runs(cell) <= 10 for cell in guided)
    order = [cell.settings["share"] for cell in cells if cell.strategy == "uniform"]
    assert order.index(0.90) > max(i for i, share in enumerate(order) if share in FEW)


@pytest.mark.parametrize("game", GAMES)
def test_cells_of_a_game(game, tmp_path):
    for strategy, settings in (("full labels", {}), ("visitation", {"share": 0.3}), ("greedy cloning", {})):
        cell = small(network_cell(game, strategy, 0, "fast", **settings))
        records = run_network_cell(cell)
        assert np.isfinite(records[0]["return"])
        if strategy == "visitation":
            assert 0 < records[0]["revealed"] <= 1
        else:
            assert records[1]["updates"] == 3
            assert records[1]["curve"] == records[0]["return"]
    assert list((tmp_path / "training").glob("*")) == []


def test_closed_loops_refit_and_are_scored_at_every_budget(monkeypatch):
    runs = []
    monkeypatch.setattr(networks, "OPTIONS", {})
    cell = small(network_cell("Breakout", "guided", 0, "fast", **CLOSED["fast"]))
    train = IqlLearner.train

    def counted(self, *arguments, **options):
        runs.append(1)
        return train(self, *arguments, **options)

    monkeypatch.setattr(IqlLearner, "train", counted)
    records = run_network_cell(cell)
    assert [record["labels"] for record in records] == ["15 %", "30 %", "45 %", "60 %"]
    sizes = [record["size"] for record in records]
    assert sizes == [sizes[0] * k for k in (1, 2, 3, 4)]
    assert len(runs) <= training_runs(cell) == 4
    assert all("exact" in record for record in records)


def test_a_search_counts_its_calls():
    (cell,) = (c for c in fast(STUDIES["minatar-cost"]) if c.strategy == "best-of")
    assert training_runs(cell) == 4
    few = small(cell)
    few.settings["search"]["max_evaluations"] = 5
    records = run_network_cell(few)
    assert [record["cost"] for record in records] == [2, 4]
    assert records[1]["return"] >= records[0]["return"]
    assert {record["labels"] for record in records} == {"60 %"}
    assert all(np.isfinite(record["fresh"]) for record in records)


def test_strategies_may_choose_with_the_table():
    cells = [c for c in fast(STUDIES["breakout-iql"]) if c.strategy == "terminal-guided"]
    (record,) = run_network_cell(small(cells[0]))
    assert {"exact", "return"} <= record.keys()


def test_an_interrupted_cell_resumes(tmp_path, monkeypatch):
    from selectenv.learners import training_run as training

    monkeypatch.setattr(training, "STRETCH", 2)
    monkeypatch.setattr(training, "CHECKPOINT_EVERY", 2)
    monkeypatch.setattr(networks, "STRETCH", 2)
    cell = small(network_cell("Breakout", "full labels", 0, "fast"), updates=6)
    undisturbed = run_network_cell(cell)
    assert [record["updates"] for record in undisturbed[1:]] == [2, 4, 6]
    advance, done = training.IqlRun.advance, []

    def killed(self, chosen, before):
        done.append(before)
        if len(done) == 2:
            raise KeyboardInterrupt
        advance(self, chosen, before)

    monkeypatch.setattr(training.IqlRun, "advance", killed)
    with pytest.raises(KeyboardInterrupt):
        run_network_cell(cell)
    assert len(list((tmp_path / "training" / cell.key).iterdir())) == 2
    assert run_network_cell(cell) == undisturbed
    assert done == [0, 2, 2, 4]


@pytest.mark.parametrize("name", STUDIES)
def test_rows_findings_and_figures(name):
    study = STUDIES[name]
    results = [made_up(cell) for cell in fast(study, 2)]
    rows = study.rows(results)
    assert all(row.ours is not None for row in rows)
    assert study.findings(rows)
    assert study.figures(results)
    assert study.rows([]) == []


def test_published_figures_stand_beside_ours():
    study = STUDIES["minatar-trained"]
    rows = study.rows([made_up(cell) for cell in fast(study, 2)])
    known = {(row.world, row.strategy, row.labels): row.published for row in rows if row.published is not None}
    assert known["Freeway", "reduced-brute-force", ""] == 58.28
    assert known["Asterix", "guided", "45 %"] == 24.00
    assert len(known) == 4 * (1 + 4)
    heuristics = STUDIES["minatar-heuristics"]
    rows = heuristics.rows([made_up(cell) for cell in fast(heuristics, 2)])
    assert {row.strategy for row in rows if row.published is not None} == {"guided"}
    assert "all states labelled" in heuristics.findings(rows)[0]


def test_ranks_are_spearmans():
    assert correlation([1, 2, 3, 4], [10, 20, 25, 90]) == pytest.approx(1)
    assert correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert np.isnan(correlation([1, 1, 1], [3, 2, 1]))
    cells = [cell for cell in fast(STUDIES["breakout-iql"]) if "chooser" in cell.settings][:3]
    names, table, network = pairs([made_up(cell) for cell in cells], "fast")
    assert len(names) == len(table) == len(network) == 3


def test_the_command_says_the_cost_first(tmp_path, capsys, monkeypatch):
    study = STUDIES["minatar-heuristics"]
    monkeypatch.setattr(study_commands, "run_cells", lambda cells, *_, **__: len(cells))
    options = ["run", study.name, "--results", str(tmp_path / "r.sqlite"), "--seeds", "1"]
    assert cli.main(options) == 0
    cells = fast(study)
    printed = capsys.readouterr().out
    assert f"{len(cells)} of {len(cells)} cells to run, about {study.cpu_hours(cells):.1f} CPU hours" in printed
    assert cli.main([*options, "--scale", "paper", "--only", "Freeway/guided"]) == 0
    assert "1 of 1 cells to run" in capsys.readouterr().out


def test_all_leaves_out_what_takes_hours(tmp_path, capsys, monkeypatch):
    ran = []
    monkeypatch.setattr(
        study_commands, "run_cells", lambda cells, *_, **options: ran.append(options["title"]) or len(cells)
    )
    assert cli.main(["run", "all", "--results", str(tmp_path / "r.sqlite")]) == 0
    assert "minatar-heuristics: NOT RUN, it takes about" in capsys.readouterr().out
    assert set(ran) == set(find_studies()) - set(STUDIES)


def test_results_of_networks_in_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    cell = small(network_cell("Breakout", "full labels", 0, "fast"))
    TensorBoardLog(tmp_path, game_problem).log(Result(cell, run_network_cell(cell), 0.1))
    (folder,) = {path.parent for path in tmp_path.rglob("events.*")}
    log = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in log.Scalars("return_by_updates")] == [3]
    assert [event.step for event in log.Scalars("performance")] == [100]


def test_stored_results_stand_in_the_comparison(tmp_path, capsys):
    path = tmp_path / "r.sqlite"
    with ResultsStore(path) as store, store.writing():
        store.add([made_up(cell) for cell in fast(STUDIES["minatar-cost"], 3)])
    assert cli.main(["compare", "minatar-cost", "--results", str(path)]) == 0
    assert "fast, 8 calls" in capsys.readouterr().out
