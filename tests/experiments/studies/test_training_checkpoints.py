"""Checkpoints of a cell are removed when it is finished, and kept when it is interrupted."""

import pytest

from experiments.engine.cell import Cell
from experiments.studies import training_checkpoints


def test_checkpoints_of_finished_cells_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(training_checkpoints, "TRAINING", tmp_path)
    cell = Cell("a-study", "Breakout", "uniform", 0, {})

    def interrupted():
        with training_checkpoints.checkpoints(cell) as folder:
            folder.mkdir()
            (folder / "run.npz").write_bytes(b"weights")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with training_checkpoints.checkpoints(cell) as folder:
        assert (folder / "run.npz").read_bytes() == b"weights"
    assert list(tmp_path.iterdir()) == []
