"""The benchmarks run, and the reference they compare with is right."""

import math
import subprocess
import sys

import numpy as np
import pytest

import selectenv
from experiments.benchmarks import (
    bench_control,
    bench_label_sets,
    bench_logs,
    bench_minatar,
    bench_networks,
    bench_scaling,
    bench_selectors,
    bench_vector,
    timing,
)
from experiments.benchmarks.reference_qlearning import reference_performance
from experiments.cli import main as cli


def test_the_quick_benchmark(monkeypatch, capsys):
    monkeypatch.setattr(bench_label_sets, "SETS", 500)
    monkeypatch.setattr(bench_label_sets, "ROUNDS", 1)
    monkeypatch.setattr(bench_vector, "ROUNDS", 1)
    assert cli.main(["bench", "--quick"]) == 0
    printed = capsys.readouterr().out
    for name in selectenv.TABULAR:
        assert name in printed
    assert "times faster" in printed
    assert "with a refit" in printed
    assert "Steps per second of 256 environments at once" in printed
    assert "Steps per second of one environment" in printed


def test_games(monkeypatch, capsys):
    monkeypatch.setattr(bench_minatar, "SIZE", 3_000)
    monkeypatch.setattr(bench_minatar, "LABELS", 2_000)
    monkeypatch.setattr(bench_minatar, "VECTORS", 3)
    assert cli.main(["bench", "--minatar"]) == 0
    printed = capsys.readouterr().out
    assert "times better" in printed
    assert "2,000 labels in a world of 3,000 states" in printed


def test_control_worlds(monkeypatch, capsys):
    monkeypatch.setattr(bench_control, "OPTIONS", {"dataset_size": 1_000, "groups": 10, "rollouts": 2})
    assert cli.main(["bench", "--control"]) == 0
    printed = capsys.readouterr().out
    assert all(world in printed for world in selectenv.CONTROL)


def test_scaling(monkeypatch, capsys, tmp_path):
    """Time against the number of states, one process per size, with a figure; a search; episodes."""
    monkeypatch.setattr(bench_scaling, "SIZES", (130, 200))
    monkeypatch.setattr(bench_scaling, "LIMITS", {200: 0.5})
    monkeypatch.setattr(bench_scaling, "GREEDY_STATES", 150)
    monkeypatch.setattr(bench_scaling, "GREEDY_LABELS", 1)
    monkeypatch.setattr(bench_scaling, "EPISODE_STATES", 200)
    monkeypatch.setattr(bench_scaling, "EPISODE_LABELS", 20)
    monkeypatch.setattr(bench_scaling, "FIGURE", tmp_path / "docs" / "scaling.png")
    assert cli.main(["bench", "--scaling"]) == 0
    printed = capsys.readouterr().out
    for part in ("distinct transitions", "1024", "0.5", "150 evaluations", "terminal-guided", "scaling.png"):
        assert part in printed
    assert (tmp_path / "docs" / "scaling.png").stat().st_size > 10_000


def test_selectors(monkeypatch, capsys):
    monkeypatch.setattr(bench_selectors, "STEPS", 1024)
    monkeypatch.setattr(bench_selectors, "TRAININGS", 1)
    monkeypatch.setattr(bench_selectors, "DECISIONS", 1)
    monkeypatch.setattr(bench_selectors, "IMAGINED", (("Tree", {}, 50.0),))
    monkeypatch.setattr(bench_selectors, "IMAGINED_LABELS", 2)
    assert cli.main(["bench", "--selectors"]) == 0
    printed = capsys.readouterr().out
    for part in (
        "maskable-ppo",
        "steps/s",
        "256, native",
        "updates take",
        "decisions per second",
        "TwoRooms",
        "imagine",
        "auto",
    ):
        assert part in printed


def test_networks(monkeypatch, capsys):
    small = selectenv.make_problem("Breakout", dataset_size=3_000, learner="iql")
    monkeypatch.setattr(bench_networks, "UPDATES", 2)
    monkeypatch.setattr(bench_networks, "FIRST_FRAMES", 50)
    monkeypatch.setattr(bench_networks, "FRAMES", 2)
    monkeypatch.setattr(bench_networks, "make_problem", lambda *_, **__: small)
    assert cli.main(["bench", "--networks"]) == 0
    printed = capsys.readouterr().out
    assert "times faster" in printed
    assert "bare products" in printed
    assert "125,000" in printed


def test_logs(monkeypatch, capsys):
    monkeypatch.setattr(bench_logs, "ROWS", 2_000)
    assert cli.main(["bench", "--logs"]) == 0
    printed = capsys.readouterr().out
    assert "Logs of 2,000 rows" in printed
    for function in ("from_csv", "from_parquet"):
        assert function in printed


def test_the_reference_agrees_with_the_exact_learner():
    problem = selectenv.make_problem("Graph", dataset_size=20_000)
    labels = np.zeros(15, bool)
    labels[[3, 7, 11]] = True
    sampled = reference_performance(selectenv.TABULAR["Graph"].make(), problem.dataset, labels, passes=10)
    assert sampled == pytest.approx(problem.performance(labels), abs=0.1)


def test_peak_memory(monkeypatch, tmp_path):
    assert timing.peak_memory() > 10
    monkeypatch.setattr(timing, "PROCESS_STATUS", tmp_path / "missing")  # as outside of Linux
    assert timing.peak_memory() > 10
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    assert math.isnan(timing.peak_memory())


@pytest.mark.skipif(
    not timing.PROCESS_STATUS.exists(), reason="only Linux tells the memory of a process from its parent's"
)
def test_peak_memory_is_not_that_of_the_parent_process():
    held = np.ones(200 * 2**17)  # 200 MiB
    program = "from experiments.benchmarks.timing import peak_memory; print(peak_memory())"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(child.stdout) < held.nbytes / 2**20 < timing.peak_memory()
