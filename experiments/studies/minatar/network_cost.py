"""Estimates of what the cells of neural learners cost, in hours on one core."""

import math
from collections.abc import Iterable

from experiments.engine.cell import Cell

SECONDS = {"Breakout": 0.0008, "Freeway": 0.0035, "Seaquest": 0.0014, "Asterix": 0.0015}
"""Seconds per update on one core; measured by `python -m experiments.benchmarks.bench --networks`."""
CLONING = 0.2
"""Cost of an update of behaviour cloning, relative to one of IQL."""
PLAYING = {"Breakout": 1.0, "Freeway": 7.0, "Seaquest": 2.0, "Asterix": 1.5}
"""Seconds per evaluation, 50 episodes."""
REFITTING = {"Breakout": 0.1, "Freeway": 0.5, "Seaquest": 0.5, "Asterix": 0.4}
"""Seconds to compute the learned features of 200,000 transitions after a refit."""
WARM = 0.2
"""Share of the updates in a refit that starts from earlier networks."""


def training_runs(cell: Cell) -> int:
    """Return the number of training runs that are evaluated."""
    if "search" in cell.settings:
        return int(cell.settings["search"]["max_evaluations"])
    if "budgets" in cell.settings:
        return len(cell.settings["budgets"])
    return round(cell.settings["reach"] / 0.15) if "refit" in cell.settings else 1


def refits(cell: Cell) -> int:
    """Return the number of refits of a closed-loop strategy."""
    return round(cell.settings["reach"] / cell.settings["refit"]) if "refit" in cell.settings else 0


def refits_from_scratch(cell: Cell) -> int:
    """Return the number of refits that do not start from earlier networks."""
    count = refits(cell)
    if not cell.settings.get("warm") or not count:
        return count
    growth = cell.settings.get("growth", math.inf)
    return 1 + int(math.log(count) / math.log(growth) + 1e-9)


def cpu_hours(cells: Iterable[Cell]) -> float:
    """Return the estimated duration of cells on one core, in hours."""
    total = 0.0
    for cell in cells:
        options = cell.settings["problem"]
        world = cell.world
        training = cell.settings["preset"]["updates"] * SECONDS[world]
        if options["learner"].startswith("bc"):
            training *= CLONING
        runs = training_runs(cell)
        total += runs * (training + options["evaluations"] * PLAYING[world])
        full = refits_from_scratch(cell)
        total += training * (full + WARM * (refits(cell) - full))
        total += refits(cell) * REFITTING[world] * cell.settings["preset"]["transitions"] / 200_000
    return total / 3600
