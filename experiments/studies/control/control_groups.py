"""How many groups should there be, and are clusters or episodes better groups, when tables learn?

Groups are labelled in random order until a share of the transitions has a reward, so that many small groups and few
large ones reveal equally much.
"""

from typing import Any

import numpy as np

from experiments.analysis.claims import by_budget, is_better
from experiments.analysis.row import Row, mean_of
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import percent
from experiments.studies.control.control_cells import (
    CLUSTERING,
    COLLECTING,
    FRESH_EPISODES,
    FULL,
    PLAYING,
    WORLDS,
    control_cell,
    control_rows,
    fresh_problem,
    panels,
    record,
    reference_labels,
)
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray

NAME = "control-groups"
COUNTS = (25, 50, 100, 200, 400, 800, 1600)
"""Numbers of clusters."""
SHARES = (0.05, 0.10, 0.20, 0.40)
"""Shares of the transitions that are labelled."""
EPISODES = "episodes"
USUAL = 200
"""Number of clusters in comparisons."""
LEARNING_OPTIONS: dict[str, dict[str, Any]] = {
    f"{USUAL} clusters, smallest reward imputed": {"impute": "min"},
    f"{USUAL} clusters, adapted rule": {"learner": "adapted"},
}
"""Other ways to learn from the same labels than UDS with imputed zeros."""
EQUAL = 0.02
"""Improvements of the normalised return below this do not count."""
LEARNING = {1600: 1.0, 800: 0.15}
"""Seconds on one core to learn a table of so many groups, where that matters."""


def name_of(count: int) -> str:
    """Return how a number of clusters is named as a strategy."""
    return f"{count} clusters"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per seed, world and kind of groups or learner; what is compared at every budget comes first."""
    kinds: list[tuple[str, int | str, dict[str, Any]]] = [
        (name_of(USUAL), USUAL, {}),
        (EPISODES, "episode", {}),
        *((name, USUAL, learning) for name, learning in LEARNING_OPTIONS.items()),
        *((name_of(count), count, {}) for count in COUNTS if count != USUAL),
    ]
    return [
        control_cell(NAME, world, name, seed, groups, learning=learning)
        for seed in range(seeds)
        for world in WORLDS
        for name, groups, learning in kinds
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Label groups in random order, and evaluate at each share of the transitions and with full labels."""
    task = fresh_problem(cell)
    data = task.dataset
    order = generator(cell.seed, "selection", NAME).permutation(np.flatnonzero(data.labelable))
    reached = np.cumsum(data.visits[order]) / len(data)
    records = [record(cell.world, task, reference_labels(task, FULL), 1.0)]
    for share in SHARES:
        labels: BoolArray = np.zeros(task.n_states, bool)
        labels[order[: _nearest(reached, share)]] = True
        records.append(record(cell.world, task, labels, share))
    return records


def _nearest(reached: FloatArray, share: float) -> int:
    """Return the number of groups, at least one, whose share of the transitions is nearest to ``share``."""
    return int(np.abs(reached - share).argmin()) + 1


def findings(rows: list[Row]) -> list[str]:
    """Say at how many groups the table stops improving, and compare 200 clusters with episodes and other learners."""
    mine = [row for row in rows if row.metric == "normalised"]
    sentences = []
    for world in WORLDS:
        local = [row for row in mine if row.world == world]
        means = {n: mean_of(local, strategy=name_of(n), labels="100 %") for n in COUNTS}
        means = {n: value for n, value in means.items() if np.isfinite(value)}
        if means:
            best = max(means.values())
            enough = min(n for n, value in means.items() if value >= best - EQUAL)
            listed = ", ".join(f"{n} {value:.2f}" for n, value in means.items())
            sentences.append(f"{world}, every group labelled, by the number of groups: {listed}; best from {enough} on")
        full = max(mean_of(local, strategy=name_of(USUAL), labels="100 %"), 0.0)
        for name in (EPISODES, *LEARNING_OPTIONS):
            found = by_budget([row for row in local if row.labels != "100 %"], name, name_of(USUAL))
            if found is not None:
                sentences.append(
                    f"{world}: {name} earn more than {name_of(USUAL)}: {is_better(found, full)}; "
                    f"{found.over} {found.first:.2f} and {found.second:.2f} (difference {found})"
                )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the normalised return against the number of groups, one line per share of labelled transitions."""
    rows = [row for row in control_rows(results) if row.metric == "normalised"]
    if not rows:
        return {}
    figure, axes = panels(WORLDS, results)
    for world, panel in axes.items():
        for i, labels in enumerate(("100 %", *map(percent, SHARES[::-1]))):
            points = [
                (n, row.ours.mean, row.ours.stderr)
                for n in COUNTS
                for row in rows
                if (row.world, row.strategy, row.labels) == (world, name_of(n), labels) and row.ours
            ]
            if points:
                x, mean, error = zip(*points, strict=True)
                panel.errorbar(x, mean, error, label=labels, marker="o", markersize=3, lw=1, color=f"C{i}")
            level = mean_of(rows, world=world, strategy=EPISODES, labels=labels)
            if np.isfinite(level):
                panel.axhline(level, color=f"C{i}", ls=":", lw=1)
        panel.set_xscale("log")
        panel.set_xlabel("number of groups", fontsize=8)
        panel.set_ylabel("random 0, expert 1", fontsize=8)
    figure.legend(*next(iter(axes.values())).get_legend_handles_labels(), fontsize=7, loc="outside right center")
    return {"Return against the number of groups, by the share of labelled transitions (dotted: episodes)": figure}


def cpu_hours(cells: list[Cell]) -> float:
    """Return the estimated duration of cells on one core, in hours."""
    total = COLLECTING * len({(cell.world, cell.seed) for cell in cells})
    for cell in cells:
        groups = cell.settings["problem"]["groups"]
        playing = PLAYING[cell.world] * FRESH_EPISODES / 50 + LEARNING.get(groups, 0.0)
        total += CLUSTERING * (1.0 if isinstance(groups, str) else groups / 200) + (1 + len(SHARES)) * playing
    return total / 3600


STUDY = Study(
    NAME,
    __doc__ or "",
    cells,
    run_cell,
    control_rows,
    seeds=10,
    figures=figures,
    place=41,
    solvers=("exact",),
    findings=findings,
    problem_of=fresh_problem,
    cells_per_task=1,
    cpu_hours=cpu_hours,
)
