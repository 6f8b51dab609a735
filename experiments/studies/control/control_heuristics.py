"""Which strategy labels groups of states best in the control worlds, with tables and with networks?"""

from collections.abc import Iterable
from typing import Any

import numpy as np

import agents
from experiments.analysis.claims import by_budget, is_better
from experiments.analysis.headlines import listed_means
from experiments.analysis.row import Row, mean_of
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import prefix_masks
from experiments.engine.study import Study
from experiments.protocol.budgets import percentage
from experiments.studies.control.control_cells import (
    COLLECTING,
    FRESH_EPISODES,
    FULL,
    GROUPS,
    NETWORK,
    PLAYING,
    REFERENCES,
    SHARES,
    TABLE,
    WORLDS,
    control_cell,
    control_problem,
    control_rows,
    fresh_problem,
    panels,
    record,
    reference_labels,
)
from experiments.studies.training_checkpoints import checkpoints
from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.options import TrainingOptions
from selectenv.problem import SelectionProblem

NAME = "control-heuristics"
QUICK = (
    "uniform",
    "visitation",
    "visitation-on-policy",
    "guided",
    "guided-on-policy",
    "terminal",
    "terminal-guided",
    "learned",
    "learned-v1",
)
PLANNING = {"imagine": 28.0, "auto": 32.0}
"""Strategies that plan with imagined rewards, and their seconds on one core per episode."""
HEURISTICS = (*QUICK, *PLANNING)
"""The strategies that never ask the evaluator."""
CALLS = {"best-of": 8, "es-200": 200}
"""Searches, and their evaluations per budget."""
NETWORK_WORLDS = ("CartPole", "Acrobot")
NETWORK_SEEDS = 3
OPEN = ("uniform", "visitation", "terminal")
"""Strategies whose labels do not depend on what is learned: one training run per budget."""
REFITS = 10
"""Refits of the network within an episode of guided; they start from the networks of the refit before."""
MARKERS = "os^vDPX*<>h"
"""Markers of the strategies in figures, which have ten colours."""
UPDATE_SECONDS = 6e-4
"""Seconds on one core per update of a network."""


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return all labels first, then quick strategies, networks, and what takes longest."""

    def tables(strategies: Iterable[str], worlds: Iterable[str] = WORLDS) -> list[Cell]:
        plan = [(seed, world, name) for seed in range(seeds) for world in worlds for name in strategies]
        return [cell for seed, world, name in plan for cell in _table_cells(world, name, seed)]

    few = min(seeds, NETWORK_SEEDS)
    networks = [
        _cell(world, name, seed, NETWORK, share=share)
        for seed in range(few)
        for share in SHARES
        for world in NETWORK_WORLDS
        for name in (*OPEN, "guided")
    ]
    return [
        *tables(REFERENCES),
        *(_cell(world, FULL, seed, NETWORK) for seed in range(few) for world in WORLDS),
        *tables((*QUICK, "best-of")),
        *tables(("es-200",), [world for world in WORLDS if world != "LunarLander"]),
        *networks,
        *tables(PLANNING),
        *tables(("es-200",), ("LunarLander",)),
    ]


def _table_cells(world: str, strategy: str, seed: int) -> list[Cell]:
    """Return one cell, or for a search, whose sets depend on the budget, one per budget."""
    if strategy not in CALLS:
        return [_cell(world, strategy, seed)]
    return [_cell(world, strategy, seed, share=share) for share in SHARES]


def _cell(world: str, strategy: str, seed: int, variant: str = TABLE, **more: Any) -> Cell:
    return control_cell(NAME, world, strategy, seed, GROUPS, variant, **more)


def run_cell(cell: Cell) -> list[Record]:
    """Choose labels, learn, and evaluate in fresh episodes."""
    with checkpoints(cell) as folder:
        network = cell.settings["variant"] == NETWORK
        fresh = fresh_problem(cell, **({"checkpoints": str(folder), "warm_start": True} if network else {}))
        if cell.strategy in REFERENCES:
            return [record(cell.world, fresh, reference_labels(fresh, cell.strategy), None)]
        return _run_share(cell, fresh) if "share" in cell.settings else _run_prefixes(cell, fresh)


def _run_share(cell: Cell, fresh: SelectionProblem) -> list[Record]:
    """Train the strategy and play it with the one budget of the cell."""
    network, share = cell.settings["variant"] == NETWORK, cell.settings["share"]
    # A network is learned once and judged in fresh episodes; a search must not see these.
    task = fresh if network else control_problem(cell)
    labels = number_of_labels(share, task.n_states)
    refits = REFITS if cell.strategy == "guided" else 1
    env = RewardSelectionEnv(task, labels, labels_per_refit=-(-labels // refits) if network else 1)
    agent = agents.make(cell.strategy)
    agent.train(env, cell.seed)
    episode = agents.play(env, agent, cell.seed)
    return [record(cell.world, fresh, fresh.mask(episode.labels), share, cost=episode.cost)]


def _run_prefixes(cell: Cell, task: SelectionProblem) -> list[Record]:
    """Play one episode with the largest budget, and evaluate the first labels at each budget."""
    budgets = tuple(number_of_labels(share, task.n_states) for share in SHARES)
    env = RewardSelectionEnv(task, budgets[-1])
    episode = agents.play(env, agents.make(cell.strategy), cell.seed)
    masks = prefix_masks(episode.labels, budgets, task.n_states)
    return [record(cell.world, task, mask, share) for mask, share in zip(masks, SHARES, strict=True)]


def findings(rows: list[Row]) -> list[str]:
    """Summarise what full labels earn and how strategies compare, in shares of the way from random to expert."""
    sentences = []
    for variant in (TABLE, NETWORK):
        mine = [row for row in rows if row.setting == variant and row.metric == "normalised"]
        worlds = [world for world in WORLDS if any(row.world == world for row in mine)]
        full = {world: mean_of(mine, world=world, strategy=FULL) for world in worlds}
        if full:
            listed = ", ".join(f"{world} {value:.2f}" for world, value in full.items())
            sentences.append(f"{variant}, every group labelled, random 0 and expert 1: {listed}")
        for world in worlds:
            local = [row for row in mine if row.world == world]
            names = [name for name in dict.fromkeys(row.strategy for row in local) if name not in REFERENCES]
            means = {name: mean_of(local, strategy=name) for name in names}
            if means:
                sentences.append(f"{world}, {variant}, mean over budgets: {listed_means(means)}")
            for name in names:
                found = None if name == "uniform" else by_budget(local, name, "uniform")
                if found is not None and found.error is not None:
                    said = is_better(found, max(full.get(world, np.nan), 0.0))
                    sentences.append(f"{world}, {variant}: {name} earns more than uniform: {said} ({found})")
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the normalised return against the share of labelled groups, one panel per world with labelled shares."""
    drawn = {}
    for variant in (TABLE, NETWORK):
        mine = [result for result in results if result.cell.settings["variant"] == variant]
        rows = [row for row in control_rows(mine) if row.metric == "normalised" and row.ours]
        played = {row.world for row in rows if row.strategy not in REFERENCES}
        if not played:
            continue
        known = [*HEURISTICS, *CALLS]
        others = sorted({row.strategy for row in rows} - {*known, *REFERENCES})
        names = [name for name in (*known, *others) if any(row.strategy == name for row in rows)]
        figure, axes = panels(WORLDS, [result for result in mine if result.cell.world in played])
        handles = {}
        for world, panel in axes.items():
            local = [row for row in rows if row.world == world]
            for name in REFERENCES:
                level = mean_of(local, strategy=name)
                panel.axhline(level, color="black", ls="--" if name == FULL else ":", lw=1)
            for i, name in enumerate(names):  # the same colour and marker in every panel
                points = sorted(
                    (percentage(row.labels), row.ours.mean, row.ours.stderr)
                    for row in local
                    if row.strategy == name and row.ours
                )
                if points:
                    x, mean, error = zip(*points, strict=True)
                    style = {"color": f"C{i % 10}", "marker": MARKERS[i % len(MARKERS)], "ls": "-" if i < 10 else "-."}
                    handles[name] = panel.errorbar(x, mean, error, label=name, markersize=3, lw=1, **style)
            panel.set_xlabel("percentage of groups labelled", fontsize=8)
            panel.set_ylabel("random 0, expert 1", fontsize=8)
        figure.legend([handles[name] for name in names], names, fontsize=7, loc="outside right center")
        drawn[f"Strategies in the control worlds: {variant} (dashed: all groups labelled, dotted: none)"] = figure
    return drawn


def cpu_hours(cells: list[Cell]) -> float:
    """Return the estimated duration of cells on one core, in hours."""
    total = COLLECTING * len({(cell.world, cell.seed) for cell in cells})
    for cell in cells:
        playing = PLAYING[cell.world]
        judged = 1 if cell.strategy in REFERENCES or "share" in cell.settings else len(SHARES)
        total += judged * playing * FRESH_EPISODES / 50
        if cell.settings["variant"] == NETWORK:
            warm = 1 + TrainingOptions.warm_share * (REFITS - 1) if cell.strategy == "guided" else 0.0
            total += UPDATE_SECONDS * cell.settings["preset"]["updates"] * (1 + warm)
        else:
            total += PLANNING.get(cell.strategy, 0.0)
        total += CALLS.get(cell.strategy, 0) * playing
    return total / 3600


STUDY = Study(
    NAME,
    __doc__ or "",
    cells,
    run_cell,
    control_rows,
    seeds=10,
    figures=figures,
    place=40,
    solvers=("exact",),
    findings=findings,
    problem_of=control_problem,
    cells_per_task=1,
    cpu_hours=cpu_hours,
)
