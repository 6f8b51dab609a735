"""The PPO of docs/ in the style of CleanRL: short, and it finds the optimum of Graph."""

import runpy

import pytest
import torch

from tests.markdown_pages import ROOT

SCRIPT = ROOT / "docs" / "ppo_cleanrl.py"


def test_it_learns(capsys):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        script = runpy.run_path(str(SCRIPT))
        returns = script["train"](script["arguments"](["--iterations", "30"]))
    finally:
        torch.set_num_threads(threads)
    assert returns[0] < 6
    assert returns[-1] == pytest.approx(8, abs=0.1)
    assert "iteration 29" in capsys.readouterr().out


def test_it_is_short():
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) < 120
