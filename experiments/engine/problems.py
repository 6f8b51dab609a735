"""Problems by world and options, with the last few kept so that neighbouring cells share them."""

import json
from functools import lru_cache
from typing import Any

import numpy as np

import selectenv
from selectenv.domains.minatar.games import GAMES
from selectenv.problem import SelectionProblem


def _make(world: str, options: str) -> SelectionProblem:
    return selectenv.make_problem(world, cache=world in GAMES, **json.loads(options))


_problem = lru_cache(maxsize=8)(_make)
_game = lru_cache(maxsize=2)(_make)  # a million transitions each


def problem(world: str, options: dict[str, Any] | None = None) -> SelectionProblem:
    """Return a problem with counts of its own; the last few are kept, so that neighbouring cells share them."""
    kept = _game if world in GAMES else _problem
    return kept(world, json.dumps(options or {}, sort_keys=True)).view()


def prefix_masks(labels: Any, budgets: tuple[int, ...], n: int) -> Any:
    """Return the label sets [budgets, n] of the first labels of an episode."""
    masks = np.zeros((len(budgets), n), bool)
    for row, budget in zip(masks, budgets, strict=True):
        row[labels[:budget]] = True
    return masks
