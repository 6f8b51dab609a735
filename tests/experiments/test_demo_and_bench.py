"""Demo and benchmark run, and their plain parts are right."""

import numpy as np
import pytest

import agents
import selectenv
from experiments import demo
from experiments.benchmarks import bench, bench_minatar, bench_networks, bench_selectors
from experiments.benchmarks.reference_qlearning import plain_performance
from experiments.cli import main as cli
from experiments.cli.tables import table


def test_demo(tmp_path, capsys):
    demo.main(["--seeds", "2", "--budgets", "3", "--out", str(tmp_path / "deep")])
    printed = capsys.readouterr().out
    for name, (kind, _) in agents.AGENTS.items():
        assert (f"\n{name} " in printed) != kind.slow
    assert "16.905" in printed
    for picture in ("performance.png", "selections.png"):
        assert (tmp_path / "deep" / picture).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("wrong", [["--seeds", "0"], ["--budgets", "0"], ["--budgets", "32"], ["--only", "guidd"]])
def test_demo_refuses(wrong, capsys):
    with pytest.raises(SystemExit):
        demo.main(wrong)
    assert "error" in capsys.readouterr().err


def test_bench_prints_its_tables(monkeypatch, capsys):
    monkeypatch.setattr(bench, "SETS", 500)
    bench.main(["--quick"])
    printed = capsys.readouterr().out
    for name in selectenv.TABULAR:
        assert name in printed
    assert "times faster" in printed
    assert "with a refit" in printed


def test_bench_of_games(monkeypatch, capsys):
    monkeypatch.setattr(bench_minatar, "SIZE", 3_000)
    monkeypatch.setattr(bench_minatar, "LABELS", 2_000)
    monkeypatch.setattr(bench_minatar, "VECTORS", 3)
    bench.main(["--minatar"])
    printed = capsys.readouterr().out
    assert "times better" in printed
    assert "2,000 labels in a world of 3,000 states" in printed


def test_bench_of_selectors(monkeypatch, capsys):
    monkeypatch.setattr(bench_selectors, "STEPS", 1024)
    monkeypatch.setattr(bench_selectors, "ROUNDS", 1)
    assert cli.main(["bench", "--selectors"]) == 0  # options get through
    printed = capsys.readouterr().out
    for part in ("maskable-ppo", "steps/s", "environment", "decisions a second", "TwoRooms"):
        assert part in printed


def test_commands_of_their_own_explain_themselves(capsys):
    for name in ("demo", "bench"):
        with pytest.raises(SystemExit):
            cli.main([name, "--help"])
        assert f"usage: selectenv {name}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["list", "--quick"])
    assert "unrecognized arguments: --quick" in capsys.readouterr().err


def test_bench_of_networks(monkeypatch, capsys):
    small = selectenv.make_problem("Breakout", dataset_size=3_000, learner="iql")
    monkeypatch.setattr(bench_networks, "UPDATES", 2)
    monkeypatch.setattr(bench_networks, "make_problem", lambda *_, **__: small)
    bench.main(["--networks"])
    printed = capsys.readouterr().out
    assert "times faster" in printed
    assert "bare products" in printed
    assert "125,000" in printed


def test_the_published_way_agrees_with_the_exact_one():
    problem = selectenv.make_problem("Graph", dataset_size=20_000)
    labels = np.zeros(15, bool)
    labels[[3, 7, 11]] = True
    plain = plain_performance(selectenv.TABULAR["Graph"].make(), problem.dataset, labels, passes=10)
    assert plain == pytest.approx(problem.performance(labels), abs=0.1)


def test_tables_align():
    assert table(("name", "n"), [("a", 1), ("long", 20)]).splitlines() == [
        "name   n",
        "----  --",
        "a      1",
        "long  20",
    ]
