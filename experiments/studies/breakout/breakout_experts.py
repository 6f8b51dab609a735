"""How much does the return with full labels in Breakout depend on the expert that collected the data?

The published recipe, trained with five seeds, gives five experts. A network learns from the data of each, with 30 % and
50 % of random actions, and an exact table with the same expectile learns from the data of all weights that the five
training runs kept on their way.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.analysis.figures import new_figure
from experiments.analysis.game_comparison import LAST_WEIGHTS
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.published import behaviour
from experiments.studies.breakout.behaviour_mixtures import expert_share, random_share, variant
from experiments.studies.breakout.kept_experts import kept_experts, weights_path
from experiments.studies.game_episodes import TABLE, expert_file, game_problem
from experiments.studies.minatar.network_cells import POOL, network_cell, network_study, run_network_cell
from experiments.studies.minatar.network_cost import cpu_hours as network_hours
from selectenv.domains.minatar.experts import SHIPPED

NAME, WORLD = "breakout-experts", "Breakout"
RANDOM_SHARES = (0.5, 0.3)
EXPERTS = tuple(name for name in SHIPPED if name.startswith("published"))
KEPT_SEEDS = 1
"""Datasets per kept weights: the spread over datasets is far smaller than that over experts."""
TABLE_RETURN = "exact table"
TABLE_HOURS = 0.01
"""Hours per kept weights: collecting the data takes longer than learning from them."""


def published_full(random_share: float) -> float:
    """Return the published return with full labels."""
    return next(row.score.mean for row in behaviour("uds") if (row.expert_ratio, row.feedback) == (random_share, 1.0))


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of networks, one per seed, share and shipped expert, then those of tables for kept weights."""
    shipped = [name for name in EXPERTS if expert_file(WORLD, name).exists()]
    found = [
        network_cell(WORLD, "full labels", seed, "paper", expert=name, random_share=share)
        for seed in range(seeds)
        for share in RANDOM_SHARES
        for name in shipped
    ]
    return found + [
        Cell(
            NAME,
            WORLD,
            expert.name,
            seed,
            {
                "variant": "paper",
                "expert": expert.mark,
                "weights": expert.file,
                "problem": {**TABLE, "expert_share": expert_share(share)},
            },
        )
        for seed in range(min(seeds, KEPT_SEEDS))
        for expert in kept_experts()
        for share in RANDOM_SHARES
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Run a cell of networks as in other studies, or learn a table from the data of kept weights."""
    if cell.study == POOL:
        return run_network_cell(cell)
    path = weights_path(cell.settings["weights"], cell.settings["expert"])
    task = game_problem(cell, expert=path, cache=False)
    return [{"labels": "", "return": task.score(task.dataset.labelable), "states": task.n_states}]


def cpu_hours(cells: list[Cell]) -> float:
    """Return the estimated duration of cells on one core, in hours."""
    tables = [cell for cell in cells if cell.study == NAME]
    return network_hours(cell for cell in cells if cell.study == POOL) + TABLE_HOURS * len(tables)


def expert_of(cell: Cell) -> str:
    """Return the name of the expert: that of a shipped one, or the seed and frames of kept weights."""
    return cell.strategy if cell.study == NAME else str(cell.settings["problem"].get("expert", "published"))


def rows(results: list[Result]) -> list[Row]:
    """Return one row per expert, share and metric, beside the published return without a verdict.

    The published numbers are judged where they are counted, with the default expert.
    """
    values: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        setting, expert, record = variant(random_share(result.cell)), expert_of(result.cell), result.records[0]
        table = result.cell.study == NAME
        for metric in (TABLE_RETURN,) if table else ("return", LAST_WEIGHTS):
            values.setdefault((setting, expert, metric), []).append(record["return" if table else metric])
    theirs = {variant(share): published_full(share) for share in RANDOM_SHARES}
    return [
        Row(WORLD, "100 %", expert, metric, summarise(np.array(found)), None, theirs[setting], setting=setting)
        for (setting, expert, metric), found in values.items()
    ]


def findings(rows: list[Row]) -> list[str]:
    """Say where the published returns lie in the spread over experts."""
    sentences = []
    for share in RANDOM_SHARES:
        theirs = published_full(share)
        parts = []
        for metric, what in (
            ("return", "a network earns"),
            (LAST_WEIGHTS, "its last weights earn"),
            (TABLE_RETURN, "an exact table on the data of kept weights earns"),
        ):
            means = [r.ours.mean for r in rows if r.ours and (r.setting, r.metric) == (variant(share), metric)]
            if means:
                parts.append(f"{what} {spread(means)}, {place(theirs, means)}")
        if parts:
            sentences.append(f"{variant(share)}, published {theirs:.2f} with full labels: {'; '.join(parts)}")
    return sentences


def spread(means: Sequence[float]) -> str:
    """Return the range and the median of means over experts."""
    experts = f"{len(means)} expert{'s' * (len(means) > 1)}"
    return f"{min(means):.2f} to {max(means):.2f} over {experts} (median {float(np.median(means)):.2f})"


def place(published: float, means: Sequence[float]) -> str:
    """Return where a published return lies among means over experts."""
    reached = sum(mean >= published for mean in means)
    if not 0 < reached < len(means):
        return f"{'all' if reached else 'none'} of them at least as much as published"
    return f"{reached} of them at least as much as published"


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the return with full labels by expert, one panel per share of random actions."""
    figure = new_figure(10, 4.5)
    found = rows(results)
    names = list(dict.fromkeys([*EXPERTS, *(row.strategy for row in found)]))
    for i, share in enumerate(RANDOM_SHARES):
        axes = figure.add_subplot(1, 2, i + 1)
        for metric, marker in (("return", "o"), (LAST_WEIGHTS, "x"), (TABLE_RETURN, "s")):
            points = [
                (names.index(row.strategy), row.ours.mean, row.ours.stderr)
                for row in found
                if row.ours and (row.setting, row.metric) == (variant(share), metric)
            ]
            if points:
                x, mean, error = zip(*points, strict=True)
                axes.errorbar(x, mean, error, fmt=marker, markersize=4, label=metric)
        axes.axhline(published_full(share), color="k", linestyle="--", label="published")
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
        axes.set_title(variant(share), fontsize=9)
        axes.set_ylabel("return with full labels", fontsize=8)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    return {"Return with full labels by expert": figure}


STUDY = replace(
    network_study(NAME, __doc__, cells, rows, figures, 28, findings), run_cell=run_cell, cpu_hours=cpu_hours
)
