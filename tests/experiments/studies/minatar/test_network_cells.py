"""The studies of networks, on a few hundred transitions and a few updates."""

from dataclasses import replace

import numpy as np
import pytest

import agents
from agents.search.best_of import BestOf
from experiments.analysis.game_comparison import number_of_figures, published_game
from experiments.analysis.game_verdicts import NOT_RUN, GameVerdict
from experiments.analysis.headlines import games_sentence
from experiments.analysis.tensorboard_log import TensorBoardLog
from experiments.cli import main as cli
from experiments.cli import study_commands
from experiments.engine.cell import Result
from experiments.engine.store import ResultsStore
from experiments.protocol.budgets import percent
from experiments.studies import find_studies, training_checkpoints
from experiments.studies.breakout.breakout_iql import correlation, pairs
from experiments.studies.game_episodes import SHARES, game_problem
from experiments.studies.minatar import network_cells as networks
from experiments.studies.minatar.network_cells import (
    CLOSED,
    GAMES,
    POOL,
    REFERENCES,
    network_cell,
    run_network_cell,
)
from experiments.studies.minatar.network_cost import SECONDS, cpu_hours, refits, training_runs
from experiments.studies.minatar.share_curves import our_shares, published_shares
from selectenv.budget import number_of_labels
from selectenv.datasets import minatar_collection as play
from selectenv.env import RewardSelectionEnv
from selectenv.learners import IqlLearner, training_run

LONG = {name: study for name, study in find_studies().items() if study.cpu_hours is not None}
STUDIES = {name: study for name, study in LONG.items() if not name.startswith(("control", "prediction"))}
ALL = {
    "minatar-trained",
    "minatar-scales",
    "minatar-heuristics",
    "minatar-cost",
    "minatar-warm-start",
    "breakout-experts",
    "breakout-mixtures",
    "breakout-iql",
}


def small(cell, updates=3):
    """The same cell on few data, with few updates."""
    settings = dict(cell.settings)
    for name in ("problem", "chooser"):
        if name in settings:
            tiny = {key: value for key, value in settings[name].items() if key != "scale"}
            settings[name] = {**tiny, "dataset_size": 2_400, "rollouts": 2, "horizon": 500}
    settings["problem"] |= {"updates": updates, "evaluations": 2}
    if "search" in settings:
        settings["search"] = {**settings["search"], "max_evaluations": 2}
    return replace(cell, settings=settings)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(training_checkpoints, "TRAINING", tmp_path / "training")
    monkeypatch.setattr(play, "GAMES_AT_ONCE", 4)  # long enough to earn something


def of_pool(study, seeds=1):
    return [cell for cell in study.cells(seeds, "exact") if cell.study == POOL]


def made_up(cell, value=5.0):
    """Records such as a cell gives, made up."""
    shares = SHARES if "refit" in cell.settings else [cell.settings.get("share")]
    rng = np.random.default_rng(int(cell.key, 16) % 2**32)
    records = [
        {
            "labels": "" if share is None else percent(share),
            "return": value + rng.normal(),
            "last weights": value + rng.normal(),
            "states": 9,
            "cost": 8 if "search" in cell.settings else 0,
            "exact": value + rng.normal(),
        }
        for share in shares
    ]
    if cell.strategy in REFERENCES:
        records += [{"updates": u, "curve": value * u / 1000} for u in (500, 1000)]
    return Result(cell, records, 1.0)


def test_the_studies_of_networks():
    assert set(STUDIES) == ALL
    for study in STUDIES.values():
        cells = study.cells(3, "exact")
        assert len({cell.key for cell in cells}) == len(cells)
        assert study.cpu_hours(cells) > 0


def test_full_labels_run_first_and_seed_by_seed():
    cells = [cell for cell in STUDIES["minatar-trained"].cells(3, "exact") if cell.settings["variant"] == "paper"]
    plan = [(seed, strategy, game) for seed in range(3) for strategy in REFERENCES for game in GAMES]
    assert [(cell.seed, cell.strategy, cell.world) for cell in cells] == plan
    assert GAMES == ("Breakout", "Asterix", "Seaquest", "Freeway")
    assert {cell.settings["problem"]["learner"] for cell in cells} == {"iql", "bc", "bc-greedy"}
    assert all(cell.settings["problem"]["scale"] == "paper" for cell in cells)
    assert all(cell.settings["problem"]["learner_seed"] == cell.seed for cell in cells)


def test_the_plan_of_heuristics():
    cells = STUDIES["minatar-heuristics"].cells(3, "exact")
    fast = [cell for cell in cells if cell.settings["variant"] == "fast"]
    drawn = {(c.world, c.strategy, c.seed, c.settings["share"]) for c in fast if "share" in c.settings}
    assert drawn == {
        (game, strategy, seed, share)
        for game in GAMES
        for strategy in ("uniform", "visitation")
        for seed in range(3)
        for share in SHARES
    }
    guided = [cell for cell in fast if cell.strategy == "guided"]
    assert len(guided) == 12
    assert {(refits(cell), training_runs(cell)) for cell in guided} == {(36, 6)}
    assert [cell.seed for cell in fast] == sorted(cell.seed for cell in fast)
    paper = [cell for cell in cells if cell.settings["variant"] == "paper"]
    assert {(c.world, c.strategy, c.seed) for c in paper} == {
        (game, strategy, 0)
        for game in ("Breakout", "Seaquest", "Asterix")
        for strategy in ("full labels", "uniform", "visitation")
    }


def test_studies_share_their_cells():
    keys = {name: {cell.key for cell in of_pool(study, 3)} for name, study in STUDIES.items()}
    references = {cell.key for cell in of_pool(STUDIES["minatar-trained"], 3) if cell.settings["variant"] == "fast"}
    assert references <= keys["minatar-heuristics"]
    assert len(keys["minatar-cost"] - keys["minatar-heuristics"]) == 3  # best-of
    expert = network_cell("Breakout", "full labels", 1, "paper").key
    assert expert in keys["breakout-experts"] & keys["minatar-trained"]
    half = network_cell("Breakout", "guided", 2, "fast", **CLOSED).key
    assert half in keys["breakout-mixtures"] & keys["minatar-heuristics"] & keys["breakout-iql"]


def test_cells_know_their_data():
    other = network_cell("Breakout", "full labels", 0, "paper", random_share=0.3)
    assert other.settings["problem"]["expert_share"] == 0.7
    usual = network_cell("Breakout", "full labels", 0, "paper")
    assert "expert_share" not in usual.settings["problem"]
    assert network_cell("Breakout", "full labels", 0, "paper", random_share=0.5).key == usual.key != other.key
    assert usual.settings["preset"] == {
        "transitions": 1_000_000,
        "updates": 125_000,
        "rate": 3e-4,
        "target_step": 0.005,
    }
    tabular = network_cell("Breakout", "full labels", 0, "paper", expert="tabular")
    assert tabular.settings["expert"] != usual.settings["expert"]


def test_estimated_hours():
    paper = [network_cell(game, "full labels", 0, "paper") for game in GAMES]
    by_hand = sum(
        updates * SECONDS[game] + 10 * playing
        for game, updates, playing in (
            ("Breakout", 125_000, 1.0),
            ("Asterix", 75_000, 1.5),
            ("Seaquest", 125_000, 2.0),
            ("Freeway", 25_000, 7.0),
        )
    )
    assert cpu_hours(paper) == pytest.approx(by_hand / 3600)
    cloning = [network_cell("Breakout", "behaviour cloning", 0, "paper")]
    assert cpu_hours(cloning) == pytest.approx((0.2 * 125_000 * SECONDS["Breakout"] + 10) / 3600)
    warm, cold = (network_cell("Breakout", "guided", 0, "paper", **{**CLOSED, "warm": warm}) for warm in (True, False))
    one = 125_000 * SECONDS["Breakout"]
    assert cpu_hours([cold]) - cpu_hours([warm]) == pytest.approx(
        (36 - 6) * 0.8 * one / 3600
    )  # six refits from scratch
    assert cpu_hours([cold]) == pytest.approx((42 * one + 60 * 1.0 + 36 * 5 * 0.1) / 3600)


@pytest.mark.parametrize("game", GAMES)
def test_cells_of_a_game(game, tmp_path):
    for strategy, settings in (("full labels", {}), ("visitation", {"share": 0.3}), ("greedy cloning", {})):
        cell = small(network_cell(game, strategy, 0, "fast", **settings))
        records = run_network_cell(cell)
        assert np.isfinite(records[0]["return"])
        assert len(records[0]["evaluations"]) == 2
        assert records[0]["evaluations"][-1] == records[0]["last weights"]
        assert records[0]["return"] == pytest.approx(np.mean(records[0]["evaluations"]))
        if strategy == "visitation":
            assert 0 < records[0]["revealed"] <= 1
            assert len(records) == 1
        else:
            assert records[-1] == {"updates": 3, "curve": records[0]["last weights"]}
            assert [record["curve"] for record in records[1:]] == records[0]["evaluations"]
    assert list((tmp_path / "training").glob("*")) == []


@pytest.mark.parametrize("warm", [True, False])
def test_closed_loops_refit_and_are_scored_from_scratch_at_every_budget(monkeypatch, warm):
    runs = []
    cell = small(network_cell("Breakout", "guided", 0, "fast", **{**CLOSED, "warm": warm}))
    train = IqlLearner.train

    def counted(self, *arguments, before=None, **options):
        runs.append(before is not None)
        return train(self, *arguments, before=before, **options)

    monkeypatch.setattr(IqlLearner, "train", counted)
    records = run_network_cell(cell)
    assert [record["labels"] for record in records] == [percent(share) for share in SHARES]
    sizes = [record["size"] for record in records]
    assert sizes == [sizes[0] * k for k in range(1, 7)]
    started = sum(runs)
    assert len(runs) <= training_runs(cell) + refits(cell) == 42
    assert (started > 20) == warm
    assert not warm or len(runs) - started <= 6 + 6  # refits after the labels have doubled, and the scores
    assert all("exact" in record for record in records)


def test_an_interrupted_closed_loop_resumes(monkeypatch):
    cell = small(network_cell("Asterix", "guided", 0, "fast", refit=0.15, reach=0.9, warm=True), updates=8)
    undisturbed = run_network_cell(cell)
    advance, calls = training_run.IqlRun.advance, []

    def killed(self, chosen, before, *rate):
        calls.append(before)
        if len(calls) == 7:
            raise KeyboardInterrupt
        advance(self, chosen, before, *rate)

    monkeypatch.setattr(training_run.IqlRun, "advance", killed)
    with pytest.raises(KeyboardInterrupt):
        run_network_cell(cell)
    interrupted = len(calls)
    assert run_network_cell(cell) == undisturbed
    resumed = len(calls) - interrupted
    run_network_cell(cell)
    assert len(calls) - interrupted - resumed > resumed  # finished refits were not made again


def test_a_search_keeps_the_best_of_2_4_and_8(monkeypatch):
    (cell,) = (c for c in of_pool(STUDIES["minatar-cost"]) if c.strategy == "best-of")
    assert training_runs(cell) == 8
    values = iter([1.0, 3.0, 2.0, 2.5, 9.0, 0.0, 4.0, 5.0])
    monkeypatch.setattr(networks, "_record", lambda task, chosen, labels: {"labels": labels, "return": next(values)})
    many = small(cell)
    many.settings["search"]["max_evaluations"] = 8
    records = run_network_cell(many)
    assert [(record["cost"], record["return"]) for record in records] == [(2, 3.0), (4, 3.0), (8, 9.0)]
    assert {record["labels"] for record in records} == {"60 %"}


def test_a_search_is_judged_on_fresh_episodes():
    cell = small(network_cell("Asterix", "best-of", 0, "fast", share=0.6, search={"max_evaluations": 2}), updates=20)
    (record,) = run_network_cell(cell)
    chosen = game_problem(cell).actions(record["first"])
    assert len(chosen) == 24
    other = game_problem(cell, evaluation_seed=1)
    sets = [other.learn(mask) for mask in drawn_sets(cell)]
    assert record["fresh"] in [pytest.approx(np.mean(other.evaluator.returns(fit.batch))) for fit in sets]


def drawn_sets(cell):
    """The label sets of best-of, drawn again."""
    task = game_problem(cell)
    env = RewardSelectionEnv(task, number_of_labels(0.6, task.n_states), labels_per_refit=task.n_states)
    return BestOf(**cell.settings["search"]).draw(agents.SearchTask(env, cell.seed))


def test_learning_curves_begin_before_the_evaluations_and_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(training_run, "STRETCH", 2)
    monkeypatch.setattr(training_run, "CHECKPOINT_EVERY", 4)
    cell = small(network_cell("Asterix", "full labels", 0, "fast"), updates=20)
    undisturbed = run_network_cell(cell)
    assert [record["updates"] for record in undisturbed[1:]] == [2, 4, 6, 8, 10, 12, 16, 20]
    everything = game_problem(cell).dataset.labelable
    last = game_problem(cell, evaluations=1).score(everything)
    assert undisturbed[0]["last weights"] == undisturbed[0]["evaluations"][-1] == last
    assert len({point["curve"] for point in undisturbed[1:]}) > 1
    for point in undisturbed[1:7]:
        shorter = small(cell, updates=point["updates"])
        assert game_problem(shorter, evaluations=1).score(everything) == point["curve"]
    advance, done = training_run.IqlRun.advance, []

    def killed(self, chosen, before, *rate):
        done.append(before)
        if len(done) == 4:
            raise KeyboardInterrupt
        advance(self, chosen, before, *rate)

    monkeypatch.setattr(training_run.IqlRun, "advance", killed)
    with pytest.raises(KeyboardInterrupt):
        run_network_cell(cell)
    assert len(list((tmp_path / "training" / cell.key).iterdir())) == 2
    assert run_network_cell(cell) == undisturbed
    assert done[:5] == [0, 2, 4, 6, 4]  # from the checkpoint after 4 updates


def test_without_labels_networks_act_at_random():
    cell = small(network_cell("Asterix", "no labels", 0, "fast"))
    (record,) = run_network_cell(cell)
    assert record["labels"] == "0 %"
    assert set(record["evaluations"]) == {game_problem(cell).score([])}


@pytest.mark.parametrize("strategy", ["full labels", "guided"])
def test_the_adapted_rule(strategy):
    more = {**CLOSED, "refit": 0.15, "warm": False} if strategy == "guided" else {}
    cell = small(network_cell("Breakout", strategy, 0, "fast", learner="iql-adapted", random_share=0.7, **more))
    records = [record for record in run_network_cell(cell) if "return" in record]
    assert len(records) == (6 if strategy == "guided" else 1)
    assert all("exact" not in record for record in records)
    everything = game_problem(cell).dataset.labelable
    assert strategy == "guided" or records[0]["return"] == pytest.approx(game_problem(cell).score(everything))


def test_strategies_may_choose_with_the_table():
    cells = [c for c in of_pool(STUDIES["breakout-iql"]) if c.strategy == "terminal-guided"]
    (record,) = run_network_cell(small(cells[0]))
    assert {"exact", "return"} <= record.keys()


@pytest.mark.parametrize("name", sorted(ALL - {"breakout-experts", "minatar-warm-start"}))
def test_rows_findings_and_figures(name):
    study = STUDIES[name]
    results = [made_up(cell) for cell in study.cells(2, "exact")]
    rows = study.rows(results)
    assert all(row.ours is not None or row.verdict.outcome == NOT_RUN for row in rows)
    assert study.findings(rows)
    assert study.figures(results)
    assert study.rows([]) == []


def test_published_figures_stand_beside_ours():
    study = STUDIES["minatar-trained"]
    rows = study.rows([made_up(cell) for cell in of_pool(study, 2)])
    known = {
        (row.world, row.strategy, row.labels): row
        for row in rows
        if row.published is not None and (row.setting, row.metric) == ("paper", "return")
    }
    assert known["Freeway", "reduced-brute-force", ""].published == 58.28
    assert len(known) == 4 * (1 + 6)
    assert str(known["Asterix", "es-1000", "45 %"].verdict) == "not run: 1,000 training runs per figure"
    heuristics = STUDIES["minatar-heuristics"]
    rows = heuristics.rows([made_up(cell) for cell in of_pool(heuristics, 2)])
    assert {row.strategy for row in rows if row.published is not None} == {"guided"}
    guided = {(row.world, row.labels): row for row in rows if row.strategy == "guided" and row.metric == "return"}
    assert guided["Asterix", "45 %"].published == 24.00
    assert guided["Asterix", "45 %"].verdict.counted
    assert len(guided) == 24
    last = [row for row in rows if row.metric == "last weights" and row.published is not None]
    assert len(last) == 24
    assert not any(row.verdict.counted for row in last)


def test_every_published_figure_is_counted_once():
    figures, results = {}, {}
    for name, study in find_studies().items():
        if name.startswith(("minatar-", "breakout-")):
            made = name in STUDIES and name != "minatar-warm-start"
            results[name] = [made_up(cell) for cell in study.cells(2, "exact")] if made else []
    results["breakout-coverage"] = [
        Result(cell, [{"unique states": 9.0, "return of full labels": 1.0}], 0.1)
        for cell in find_studies()["breakout-coverage"].cells(1, "exact")
    ]
    results["breakout-rewards"] = [
        Result(
            cell,
            [{"labels": percent(s), "share": s, "rewards": [1.0, 2.0], "total": 9.0} for s in cell.settings["shares"]],
            0.1,
        )
        for cell in find_studies()["breakout-rewards"].cells(1, "exact")
    ]
    rows = [row for name, found in results.items() for row in find_studies()[name].rows(found)]
    counted = [row for row in rows if isinstance(row.verdict, GameVerdict) and row.verdict.counted]
    for row in counted:
        figures.setdefault((row.world, row.setting, row.strategy, row.labels, row.metric), []).append(row.published)
    assert all(len(published) == 1 for published in figures.values())
    assert len(counted) == number_of_figures()
    not_run = sum(row.verdict.outcome == NOT_RUN for row in counted)
    assert not_run == 24
    assert f"Of the 149 published figures of MinAtar, {149 - not_run} were run" in games_sentence(rows)


def test_shares_of_the_full_return():
    cells = [network_cell("Asterix", "full labels", seed, "fast") for seed in (0, 1)]
    results = [Result(cell, [{"labels": "", "return": value}], 0.1) for cell, value in zip(cells, (8, 12), strict=True)]
    drawn = [network_cell("Asterix", "uniform", seed, "fast", share=0.3) for seed in (0, 1)]
    results += [Result(cell, [{"labels": "30 %", "return": v}], 0.1) for cell, v in zip(drawn, (2.0, 4.0), strict=True)]
    assert our_shares(results, "fast", "uniform") == [(30.0, pytest.approx(0.3), pytest.approx(0.1))]
    assert our_shares(results, "paper", "uniform") == our_shares(results, "fast", "guided") == []
    table = published_game("Asterix")
    assert published_shares(table, "guided")[2] == (45.0, pytest.approx(24.00 / 35.16), pytest.approx(0.84 / 35.16))
    assert len(published_shares(table, "es-1000")) == 6


def test_ranks_are_spearmans():
    assert correlation([1, 2, 3, 4], [10, 20, 25, 90]) == pytest.approx(1)
    assert correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert np.isnan(correlation([1, 1, 1], [3, 2, 1]))
    cells = [cell for cell in of_pool(STUDIES["breakout-iql"]) if "chooser" in cell.settings][:3]
    names, table, network = pairs([made_up(cell) for cell in cells], "fast")
    assert len(names) == len(table) == len(network) == 3


def test_the_command_says_the_cost_first(tmp_path, capsys, monkeypatch):
    study = STUDIES["minatar-heuristics"]
    monkeypatch.setattr(study_commands, "run_cells", lambda cells, *_, **__: len(cells))
    options = ["run", study.name, "--results", str(tmp_path / "r.sqlite"), "--seeds", "1"]
    assert cli.main(options) == 0
    cells = [cell for cell in study.cells(1, "exact") if cell.settings["variant"] == "fast"]
    printed = capsys.readouterr().out
    assert f"{len(cells)} of {len(cells)} cells to run, about {study.cpu_hours(cells):.1f} CPU hours" in printed
    assert cli.main([*options, "--scale", "paper", "--only", "Seaquest/uniform"]) == 0
    assert "6 of 6 cells to run" in capsys.readouterr().out
    assert cli.main(["run", "minatar-trained", "--scale", "paper", *options[2:4]]) == 0
    assert "36 of 36 cells to run" in capsys.readouterr().out


def test_all_leaves_out_what_takes_hours(tmp_path, capsys, monkeypatch):
    ran = []
    monkeypatch.setattr(
        study_commands, "run_cells", lambda cells, *_, **options: ran.append(options["title"]) or len(cells)
    )
    assert cli.main(["run", "all", "--results", str(tmp_path / "r.sqlite")]) == 0
    assert "minatar-heuristics: NOT RUN, it takes about" in capsys.readouterr().out
    assert set(ran) == set(find_studies()) - set(LONG)


def test_results_of_networks_in_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    cell = small(network_cell("Breakout", "full labels", 0, "fast"))
    TensorBoardLog(tmp_path, game_problem).log(Result(cell, run_network_cell(cell), 0.1))
    (folder,) = {path.parent for path in tmp_path.rglob("events.*")}
    log = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in log.Scalars("return_by_updates")] == [3, 3]
    assert [event.step for event in log.Scalars("performance")] == [100]


def test_stored_results_stand_in_the_comparison(tmp_path, capsys):
    path = tmp_path / "r.sqlite"
    with ResultsStore(path) as store, store.writing():
        store.add([made_up(cell) for cell in STUDIES["minatar-cost"].cells(3, "exact")])
        store.add([made_up(cell) for cell in STUDIES["minatar-heuristics"].cells(3, "exact")])
    assert cli.main(["compare", "minatar-cost", "--results", str(path)]) == 0
    assert "8 calls" in capsys.readouterr().out
    assert cli.main(["compare", "minatar-heuristics", "--results", str(path)]) == 0
    assert "same share" in capsys.readouterr().out
