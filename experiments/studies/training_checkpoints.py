"""Directories of the checkpoints of unfinished cells."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.engine.cell import Cell
from selectenv.datasets.storage import cache_folder

TRAINING = cache_folder() / "training"


@contextmanager
def checkpoints(cell: Cell) -> Iterator[Path]:
    """Provide the directory of a cell's checkpoints, and remove it unless the cell is interrupted or fails."""
    folder = TRAINING / cell.key
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
