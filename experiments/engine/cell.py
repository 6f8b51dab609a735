"""A cell: the smallest piece of a study that is run, stored and never run twice."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

RESULTS_VERSION = 2
"""Bump this when stored results become invalid: their cells are then run again."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """What to run: plain values only, so that a cell can be stored, sent to a worker, and identified by its content."""

    study: str
    world: str
    strategy: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    """Options of the problem and of the strategy, ready for JSON."""

    @property
    def key(self) -> str:
        """A hash of the content of the cell and of `RESULTS_VERSION`."""
        content = [RESULTS_VERSION, self.study, self.world, self.strategy, self.seed, self.settings]
        return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Result:
    """The result of running a cell."""

    cell: Cell
    records: list[Record]
    """One or more records, ready for JSON; usually one per budget."""
    seconds: float
