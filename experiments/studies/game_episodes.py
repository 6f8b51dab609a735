"""Shared by the studies of MinAtar games: one episode per cell, evaluated at several budgets."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import agents
from experiments.analysis.figures import new_figure
from experiments.analysis.game_comparison import metrics_by_cell
from experiments.analysis.row import Row
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import large_problem, prefix_masks
from experiments.engine.runner import RunCell
from experiments.engine.study import Study
from experiments.protocol.budgets import percent, percentage
from selectenv.budget import number_of_labels
from selectenv.domains.minatar.experts import FOLDER, SHIPPED
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError
from selectenv.problem import SelectionProblem
from selectenv.rendering import frames
from selectenv.worlds import GAME_DEFAULTS

SHARES = (0.15, 0.30, 0.45, 0.60, 0.75, 0.90)
TABLE: Mapping[str, Any] = {"scale": "paper", "expectile": 0.7}
"""Options of a problem in Breakout whose learner is a table: the published data, and the expectile of the network."""
DATA = {"paper": {"problem": {**TABLE}}, "paper, tabular expert": {"problem": {**TABLE, "expert": "tabular"}}}
"""Variants of the data that strategies are compared on."""
TABLE_REASON = "the published learner is a network"
"""Why returns of a table may differ from published ones."""
HEURISTICS = (
    "uniform",
    "visitation",
    "visitation-on-policy",
    "guided",
    "guided-on-policy",
    "terminal",
    "terminal-guided",
    "adaptive-mixture",
)
OPTIONS: Mapping[str, dict[str, Any]] = {
    "guided": {"decay": "concave", "temperature": 6.0},
    "guided-on-policy": {"decay": "concave", "temperature": 6.0},
    "reduced-brute-force": {"sizes": "largest"},
}
"""Options of strategies, as published for MinAtar."""
FIRST = 24
"""Number of labelled states whose ids are recorded."""
DRAWN = 12
"""Number of their images per row of a figure."""
FRESH_SEED, FRESH_EPISODES = 1, 200
"""Seed and number of evaluation episodes that no search uses."""


def game_cells(
    study: str, world: str, seeds: int, variants: Mapping[str, dict[str, Any]], strategies: Iterable[str], **more: Any
) -> list[Cell]:
    """Return one cell per variant, seed and strategy."""
    strategies = tuple(strategies)
    more |= {"shares": SHARES}
    return [
        Cell(study, world, strategy, seed, {"variant": name, "expert": expert_mark(world, options), **options, **more})
        for name, options in variants.items()
        for seed in range(seeds)
        for strategy in strategies
    ]


def expert_mark(world: str, options: Mapping[str, Any] | None = None) -> str:
    """Return a hash of the expert that collected a variant's data, so that another expert gives other cells."""
    name = (options or {}).get("problem", {}).get("expert", "published")
    return file_mark(expert_file(world, name))


def expert_file(world: str, expert: str = "published") -> Path:
    """Return the file of a shipped expert, which need not exist in every game."""
    return FOLDER / SHIPPED[expert].format(game=world.lower())


@cache
def file_mark(path: Path) -> str:
    """Return a hash of the content of a file."""
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


def game_problem(cell: Cell, **more: Any) -> SelectionProblem:
    """Return the problem of a cell; the seed of the data defaults to that of the cell."""
    return large_problem(cell.world, {"dataset_seed": cell.seed, **cell.settings.get("problem", {}), **more})


def game_study(
    name: str,
    question: str | None,
    cells: Callable[[int, str], list[Cell]],
    run_cell: RunCell,
    rows: Callable[[list[Result]], list[Row]],
    seeds: int,
    **more: Any,
) -> Study:
    """Return a study of games: every cell is a task of its own, and its data are kept on disk."""
    return Study(
        name,
        question or "",
        cells,
        run_cell,
        rows,
        seeds,
        solvers=("exact",),
        cells_per_task=1,
        problem_of=game_problem,
        **more,
    )


def run_game(cell: Cell) -> list[Record]:
    """Play one episode with the largest budget, and evaluate the first labels at each budget."""
    task = game_problem(cell)
    shares = tuple(cell.settings["shares"])
    budgets = tuple(number_of_labels(share, task.n_states) for share in shares)
    env = RewardSelectionEnv(task, budgets[-1], labels_per_refit=GAME_DEFAULTS.labels_per_refit)
    agent = agents.make(cell.strategy, **OPTIONS.get(cell.strategy, {}))
    agent.train(env, cell.seed)
    episode = agents.play(env, agent, cell.seed)
    returns = task.performance_many(prefix_masks(episode.labels, budgets, task.n_states))
    first = episode.ids[:FIRST].tolist()
    return [
        {"labels": percent(share), "share": share, "return": float(value), "states": task.n_states, "first": first}
        for share, value in zip(shares, returns, strict=True)
    ]


def played(results: list[Result]) -> list[str]:
    """Return the variants that have results, in order."""
    return list(dict.fromkeys(result.cell.settings["variant"] for result in results))


def curves_figure(results: list[Result], variant: str, metric: str = "return") -> Any:
    """Draw the mean over seeds against the share of labels, one line per strategy."""
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for (name, strategy, labels), values in metrics_by_cell(results, metric).items():
        if name == variant and labels.endswith("%"):
            summary = summarise(np.array(values))
            lines[strategy].append((percentage(labels), summary.mean, summary.stderr))
    for i, (strategy, points) in enumerate(lines.items()):
        x, mean, error = zip(*sorted(points), strict=True)
        axes.errorbar(x, mean, error, label=strategy, marker="os^vDPX*"[i % 8], markersize=4)
    axes.set(xlabel="percentage of states labelled", ylabel="return of the learned policy")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def frames_figure(results: list[Result], variant: str, strategies: Iterable[str]) -> dict[str, Any]:
    """Draw the images that strategies label first, for seed 0; empty if there are no such results."""
    chosen = {
        result.cell.strategy: result
        for result in results
        if result.cell.seed == 0 and result.cell.settings["variant"] == variant and "first" in result.records[0]
    }
    shown = [chosen[name] for name in strategies if name in chosen]
    if not shown:
        return {}
    figure = new_figure(9, 0.75 * len(shown))
    for i, result in enumerate(shown):
        try:
            task = game_problem(result.cell)
        except MissingExtraError:  # results are stored without images, which need the data
            return {}
        axes = figure.add_subplot(len(shown), 1, i + 1)
        states = task.actions(result.records[0]["first"])
        axes.imshow(frames.mosaic(task, states[:DRAWN], columns=DRAWN), interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_ylabel(result.cell.strategy, rotation=0, ha="right", va="center", fontsize=8)
    return {f"Frames of {shown[0].cell.world} that are labelled first": figure}
