"""Demo and benchmark run, and their plain parts are right."""

import numpy as np
import pytest

import selectenv
from experiments import bench, demo
from experiments.plain import plain_performance
from experiments.tables import table


def test_demo(tmp_path, capsys):
    demo.main(["--episodes", "2", "--out", str(tmp_path / "deep" / "demo.png")])
    printed = capsys.readouterr().out
    assert "lookahead  16.905" in printed
    assert (tmp_path / "deep" / "demo.png").read_bytes()[:4] == b"\x89PNG"


def test_demo_refuses_no_episodes(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--episodes", "0"])
    assert "must be 1 or more" in capsys.readouterr().err


def test_bench_prints_its_tables(monkeypatch, capsys):
    monkeypatch.setattr(bench, "SETS", 500)
    bench.main([])
    printed = capsys.readouterr().out
    for name in selectenv.WORLDS:
        assert name in printed
    assert "times faster" in printed
    assert "with a refit" in printed


def test_the_published_way_agrees_with_the_exact_one():
    problem = selectenv.make_problem("Graph", dataset_size=20_000)
    labels = np.zeros(15, bool)
    labels[[3, 7, 11]] = True
    plain = plain_performance(selectenv.WORLDS["Graph"].make(), problem.dataset, labels, passes=10)
    assert plain == pytest.approx(problem.performance(labels), abs=0.1)


def test_tables_align():
    assert table(("name", "n"), [("a", 1), ("long", 20)]).splitlines() == [
        "name   n",
        "----  --",
        "a      1",
        "long  20",
    ]
