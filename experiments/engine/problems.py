"""Problems by world and options; the last few are kept, so that neighbouring cells share them."""

import json
from functools import lru_cache
from typing import Any

import numpy as np

import selectenv
from experiments.engine.cell import Cell
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, IntArray


def _make(world: str, options: str) -> SelectionProblem:
    return selectenv.make_problem(world, **json.loads(options))


_small = lru_cache(maxsize=8)(_make)
_large = lru_cache(maxsize=2)(_make)


def problem(world: str, options: dict[str, Any] | None = None) -> SelectionProblem:
    """Return a problem with call counts of its own; its data are collected and not kept on disk."""
    return _small(world, _key({"cache": False, **(options or {})})).with_calls()


def large_problem(world: str, options: dict[str, Any]) -> SelectionProblem:
    """Return a problem with call counts of its own, for data of up to a million transitions, which are kept on disk."""
    return _large(world, _key(options)).with_calls()


def cell_problem(cell: Cell) -> SelectionProblem:
    """Return the problem of a cell in a tabular world, whose states are the same for all data."""
    settings = cell.settings
    return problem(cell.world, {"learner": settings.get("problem", settings).get("learner", "uds")})


def _key(options: dict[str, Any]) -> str:
    return json.dumps(options, sort_keys=True)


def prefix_masks(labels: IntArray, budgets: tuple[int, ...], n: int) -> BoolArray:
    """Return the label sets [budgets, n] made of the first labels of an episode."""
    masks = np.zeros((len(budgets), n), bool)
    for row, budget in zip(masks, budgets, strict=True):
        row[labels[:budget]] = True
    return masks
