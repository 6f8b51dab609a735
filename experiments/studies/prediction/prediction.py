"""Do rankings on the benchmark of tables predict rankings where networks learn?

docs/prediction.md is the plan of this study.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

import agents
import selectenv
from experiments.analysis.figures import new_figure
from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.benchmarks.suite.result_files import committed
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Study
from experiments.studies.control import control_heuristics
from experiments.studies.control.control_cells import (
    FRESH_EPISODES,
    FRESH_SEED,
    FULL,
    GROUPS,
    NETWORK,
    PLAYING,
    control_rows,
    expert_mark,
    record,
)
from experiments.studies.minatar import minatar_heuristics, network_cells
from experiments.studies.prediction.minari_data import recorded
from experiments.studies.prediction.rank_agreement import (
    FEWEST,
    NetworkGroup,
    Tables,
    agreement,
    cell_agreement,
    group_of,
    read_tables,
    shared_strategies,
)
from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.problem import SelectionProblem

NAME = "prediction"
STRATEGIES = tuple(name for name in control_heuristics.HEURISTICS if name != "learned-v1")
"""The strategies of the plan: those that never ask the evaluator."""
LEARNERS = {"fitted Q": "fitted_q:FittedQ", "conservative Q": "conservative_q:ConservativeQ"}
"""The plug-in learners of this package, by the name of their group."""
WORLDS = ("CartPole", "LunarLander")
FAILING = {("LunarLander", "fitted Q")}
"""Worlds and learners in which full labels fail already: they are run to confirm it, and no strategy is played."""
SHARES = (0.1, 0.3)
TRANSITIONS = 20_000
REFITS = 10
"""Refits within an episode of a strategy whose labels depend on earlier ones."""
REWARD_FREE = ("labelled", "visitation", "termination", "budget")
"""What the other strategies look at: nothing is learned for them before the end."""
LEAST = 0.5
"""Learners that reach less of the way from random actions to the expert with full labels do not count in a world."""
FIT_SECONDS = 5.5
"""Seconds on one core per fit."""
CONTROL, GAMES = "control", "games"
TAU, CELL_TAU = "tau", "mean tau over groups"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return full labels first, then the quick strategies, those that plan, and the cells of the other studies."""
    plan = [(seed, world, learner) for seed in range(seeds) for world in WORLDS for learner in LEARNERS]
    quick = [name for name in STRATEGIES if name not in control_heuristics.PLANNING]
    found = [_cell(world, FULL, seed, learner) for seed, world, learner in plan]
    for names in (quick, control_heuristics.PLANNING):
        found += [
            _cell(world, name, seed, learner, share)
            for seed, world, learner in plan
            if (world, learner) not in FAILING
            for name in names
            for share in SHARES
        ]
    return [*found, *_other_cells(seeds, solver)]


def _cell(world: str, strategy: str, seed: int, learner: str, share: float | None = None) -> Cell:
    more = {} if share is None else {"share": share}
    settings = {"variant": learner, "expert": expert_mark(world), "transitions": TRANSITIONS, "groups": GROUPS}
    return Cell(NAME, world, strategy, seed, {**settings, **more})


def _other_cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells of the studies of control worlds and games in which networks learn."""
    control = control_heuristics.cells(min(seeds, control_heuristics.NETWORK_SEEDS), solver)
    games = minatar_heuristics.cells(min(seeds, network_cells.SEEDS), solver)
    return [
        *(cell for cell in control if cell.settings["variant"] == NETWORK and cell.strategy in STRATEGIES),
        *(cell for cell in games if cell.settings["variant"] == "fast" and cell.strategy in STRATEGIES),
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Choose labels, learn, and evaluate in fresh episodes; cells of other studies are run by these."""
    if cell.study != NAME:
        return _study_of(cell).run_cell(cell)
    import torch

    torch.set_num_threads(1)  # one core per process; small networks gain nothing from more
    task, share = task_of(cell), cell.settings.get("share")
    if share is None:
        return [record(cell.world, task, task.dataset.labelable.copy(), None)]
    labels = number_of_labels(share, task.n_states)
    adapts = _adapts(cell.strategy)
    refit = -(-labels // REFITS) if adapts else labels
    env = RewardSelectionEnv(task, labels, labels_per_refit=refit, **({} if adapts else {"features": REWARD_FREE}))
    episode = agents.play(env, agents.make(cell.strategy), cell.seed)
    return [record(cell.world, task, task.mask(episode.labels), share)]


def _study_of(cell: Cell) -> Study:
    return control_heuristics.STUDY if cell.study == control_heuristics.NAME else minatar_heuristics.STUDY


def _adapts(strategy: str) -> bool:
    """Return whether the labels of a strategy depend on what was learned from earlier ones."""
    return agents.AGENTS[strategy].kind.taxonomy.test_loop == "closed"


def task_of(cell: Cell) -> SelectionProblem:
    """Return the problem of a cell, with an evaluator that plays episodes of its own."""
    if cell.study != NAME:
        return _study_of(cell).problem_of(cell)
    return selectenv.make_problem(
        cell.world,
        dataset=recorded(cell.world, cell.settings["transitions"], cell.seed),
        groups=cell.settings["groups"],
        learner=f"{__package__}.{LEARNERS[cell.settings['variant']]}",
        learner_seed=cell.seed,
        evaluation_seed=FRESH_SEED,
        rollouts=FRESH_EPISODES,
    )


def groups_of(results: Iterable[Result]) -> list[NetworkGroup]:
    """Return the groups that have at least three strategies in common in some cell."""
    returns: dict[str, dict[Any, dict[str, dict[int, float]]]] = {}
    full: dict[tuple[str, str], list[float]] = defaultdict(list)
    for result in results:
        cell = result.cell
        name = cell.settings["variant"] if cell.study == NAME else _group_name(cell)
        for one in result.records:
            if cell.strategy in STRATEGIES:
                block = returns.setdefault(name, {}).setdefault((cell.world, one["labels"]), {})
                block.setdefault(cell.strategy, {})[cell.seed] = one["return"]
            elif cell.strategy == FULL and cell.study == NAME:
                full[name, cell.world].append(one["normalised"])
    found = []
    for name, blocks in returns.items():
        failed = {world for learner, world in full if learner == name and np.mean(full[learner, world]) < LEAST}
        kept = {key: block for key, block in blocks.items() if key[0] not in failed}
        group = group_of(name, kept, STRATEGIES)
        if len(group.strategies) >= FEWEST and group.cells:
            found.append(group)
    return found


def _group_name(cell: Cell) -> str:
    return CONTROL if cell.study == control_heuristics.NAME else GAMES


def rows(results: list[Result]) -> list[Row]:
    """Return what the plug-in learners earn, and the agreement of the suite's scores and cells with the groups."""
    own = control_rows([result for result in results if result.cell.study == NAME])
    tables, groups = _ready(results)
    found = []
    for group in groups:
        for score, chosen in tables.parts.items():
            one = agreement(tables, group, chosen)
            setting = f"{score}; one strategy left out: {one.least:.2f} to {one.most:.2f}"
            found.append(_tau_row(group.name, TAU, setting, one.tau, one.low, one.high))
    if not groups:
        return own
    cells_found = cell_agreement(tables, groups)
    means, (low, high) = cells_found.tau.mean(axis=0), cells_found.intervals()
    for i, cell in enumerate(cells_found.cells):
        found.append(_tau_row("all groups", CELL_TAU, ", ".join(cell), means[i], low[i], high[i]))
    chance = cells_found.shuffled
    found.append(
        _tau_row("all groups", "cells that predict, shuffled", "", chance.mean(), *np.quantile(chance, (0.025, 0.975)))
    )
    for i, group in enumerate(groups if len(groups) > 1 else ()):
        chosen = cells_found.predicting([j for j in range(len(groups)) if j != i])
        if chosen.any():
            one = agreement(tables, group, chosen)
            setting = f"cells that predict the other groups ({chosen.sum()})"
            found.append(_tau_row(group.name, TAU, setting, one.tau, one.low, one.high))
    return own + found


def _ready(results: list[Result]) -> tuple[Tables, list[NetworkGroup]]:
    """Return the suite's gaps, and the groups that share at least three strategies with it."""
    tables = read_tables(committed(), STRATEGIES)
    return tables, [group for group in groups_of(results) if len(shared_strategies(tables, group)) >= FEWEST]


def _tau_row(group: str, metric: str, setting: str, value: float, low: float, high: float) -> Row:
    summary = Summary(1, float(value), 0.0, float(low), float(high), float(value))
    return Row("benchmark", "", group, metric, summary, None, setting=setting)


def findings(rows: list[Row]) -> list[str]:
    """Say which groups the suite predicts, and how many of its cells predict."""
    sentences = []
    for row in rows:
        score = row.setting.partition(";")[0]
        if row.metric == TAU and row.ours and score in ("all", "tabular", "random"):
            said = "predicts" if row.ours.low > 0 else "does not predict"
            interval = f"{row.ours.mean:.2f} [{row.ours.low:.2f}, {row.ours.high:.2f}]"
            sentences.append(f"the score {score!r} of the suite {said} {row.strategy}: tau {interval}")
    single = [row.ours for row in rows if row.metric == CELL_TAU and row.ours]
    if single:
        predicting = sum(summary.low > 0 for summary in single)
        (chance,) = (row.ours for row in rows if row.metric.endswith("shuffled") and row.ours)
        sentences.append(
            f"{predicting} of {len(single)} cells of the suite predict; with strategies shuffled {chance.mean:.1f}"
        )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw the mean rank of each strategy in each group against its score on the suite."""
    tables, groups = _ready(results)
    if not groups:
        return {}
    figure = new_figure(3.4 * len(groups), 3.2)
    for i, group in enumerate(groups):
        names = shared_strategies(tables, group)
        gaps, ranks = (
            tables.of(names).scores(tables.parts["all"]),
            dict(zip(group.strategies, group.ranks(), strict=True)),
        )
        axes = figure.add_subplot(1, len(groups), i + 1)
        for name, gap in zip(names, gaps, strict=True):
            axes.plot(gap, ranks[name], "o", ms=4)
            axes.annotate(name, (gap, ranks[name]), fontsize=7, xytext=(3, 2), textcoords="offset points")
        axes.invert_yaxis()
        axes.set_title(group.name, fontsize=9)
        axes.set_xlabel("normalised gap on the suite", fontsize=8)
        axes.set_ylabel("mean rank with networks", fontsize=8)
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=7)
    return {"Rank where networks learn against the score on the suite": figure}


def cpu_hours(cells: list[Cell]) -> float:
    """Return the estimated duration of cells on one core, in hours."""
    total = 0.0
    for cell in cells:
        if cell.study != NAME:
            estimate = _study_of(cell).cpu_hours
            total += 3600 * estimate([cell]) if estimate else 0.0
            continue
        adapts = "share" in cell.settings and _adapts(cell.strategy)
        total += FIT_SECONDS * (1 + REFITS * adapts) + PLAYING[cell.world] * FRESH_EPISODES / 50
        total += control_heuristics.PLANNING.get(cell.strategy, 0.0)
    return total / 3600


STUDY = Study(
    NAME,
    __doc__ or "",
    cells,
    run_cell,
    rows,
    seeds=5,
    figures=figures,
    place=50,
    solvers=("exact",),
    findings=findings,
    problem_of=task_of,
    cells_per_task=1,
    cpu_hours=cpu_hours,
)
