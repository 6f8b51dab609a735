"""What the studies of MinAtar games share: budgets as shares of the states, played and scored in one episode."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import agents
from experiments.analysis.figures import new_figure
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import AGREES, Verdict, judge
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import large_problem, prefix_masks
from experiments.engine.study import Row
from experiments.protocol.published import number, published
from selectenv.budget import number_of_labels
from selectenv.domains.minatar.experts import FOLDER, SHIPPED
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError
from selectenv.problem import SelectionProblem
from selectenv.rendering import frames
from selectenv.worlds import GAME_DEFAULTS

SHARES = (0.15, 0.30, 0.45, 0.60, 0.75, 0.90)
SCALES = {scale: {"problem": {"scale": scale}} for scale in ("laptop", "paper")}
DATA = {**SCALES, "paper, tabular expert": {"problem": {"scale": "paper", "expert": "tabular"}}}
"""The data that strategies are compared on."""
HEURISTICS = (
    "uniform", "visitation", "visitation-on-policy", "guided", "guided-on-policy", "terminal", "terminal-guided",
    "adaptive-mixture",
)  # fmt: skip
OPTIONS: Mapping[str, dict[str, Any]] = {
    "guided": {"decay": "concave", "temperature": 6.0},
    "guided-on-policy": {"decay": "concave", "temperature": 6.0},
    "reduced-brute-force": {"sizes": "largest"},
}
"""As published for MinAtar."""
FIRST = 24
"""States whose pictures are kept of a selection."""
DRAWN = 12
"""How many of them stand side by side in a figure."""
FRESH_SEED, FRESH_EPISODES = 1, 200
"""Episodes that no search has seen."""
WORTH = (0.0, np.inf)
"""No policy loses anything in these games; what the best one earns is not known."""
Published = dict[tuple[str, str], tuple[float, float | None]]
"""Strategy and percentage of labels -> published mean and error."""


def game_cells(
    study: str, world: str, seeds: int, variants: Mapping[str, dict[str, Any]], strategies: Iterable[str], **more: Any
) -> list[Cell]:
    """Return a cell a variant, seed and strategy."""
    strategies = tuple(strategies)
    more |= {"shares": SHARES}
    return [
        Cell(study, world, strategy, seed, {"variant": name, "expert": expert_mark(world, options), **options, **more})
        for name, options in variants.items()
        for seed in range(seeds)
        for strategy in strategies
    ]


def expert_mark(world: str, options: Mapping[str, Any] | None = None) -> str:
    """Return a hash of the expert behind a variant's data: results with another one are other results."""
    name = (options or {}).get("problem", {}).get("expert", "published")
    return _mark(FOLDER / SHIPPED[name].format(game=world.lower()))


@cache
def _mark(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


def percent(share: float) -> str:
    """Return a share of the states as the tables say it."""
    return f"{round(100 * share)} %"


def game_problem(cell: Cell, **more: Any) -> SelectionProblem:
    """Return the problem of a cell, on data of its own seed unless the cell says otherwise."""
    return large_problem(cell.world, {"dataset_seed": cell.seed, **cell.settings.get("problem", {}), **more})


def run_game(cell: Cell) -> list[Record]:
    """Play one episode of the largest budget, and score the first labels of each budget."""
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


def figures_by_cell(results: list[Result], figure: str) -> dict[tuple[str, str, str], list[float]]:
    """Return the figures of all seeds by variant, strategy and percentage of labels."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for result in results:
        for record in result.records:
            if figure in record:
                found[result.cell.settings["variant"], result.cell.strategy, record["labels"]].append(record[figure])
    return found


def game_rows(
    results: list[Result], theirs: Mapping[str, Published], *, figure: str = "return", reason: str = "unexplained",
    otherwise: Mapping[str, tuple[Published, str]] | None = None,
) -> list[Row]:  # fmt: skip
    """Set the mean over seeds beside the published figures of a variant.

    ``otherwise`` gives other published figures of a variant and what it means if ours agree with them instead.
    """
    if not results:
        return []
    world = results[0].cell.world
    found = figures_by_cell(results, figure)
    rows = []
    for (variant, strategy, labels), values in found.items():
        ours = np.array(values)
        baseline = found.get((variant, "uniform", labels))
        summary = summarise(ours, np.array(baseline) if baseline and strategy != "uniform" else None)
        known = theirs.get(variant, {}).get((strategy, labels))
        if known is None:
            rows.append(Row(world, labels, strategy, figure, summary, None, setting=variant))
            continue
        verdict = verdict_of(known, ours, reason)
        if verdict.outcome != AGREES and otherwise and variant in otherwise:
            others, meaning = otherwise[variant]
            if verdict_of(others[strategy, labels], ours, reason).outcome == AGREES:
                verdict = Verdict(verdict.outcome, meaning)
        rows.append(Row(world, labels, strategy, figure, summary, None, *known, verdict, setting=variant))
    return rows


def verdict_of(known: tuple[float, float | None], ours: Any, reason: str) -> Verdict:
    """Judge one published figure by its own error and that of our seeds."""
    return judge(*known, ours, 0.0, stochastic=True, allowed=WORTH, noisy_mean=True, reason=reason)


def mean_of(rows: Iterable[Row], **wanted: Any) -> float:
    """Return the mean of our figures over the rows with the given fields, NaN if there are none."""
    found = [row.ours.mean for row in rows if row.ours and all(getattr(row, k) == v for k, v in wanted.items())]
    return float(np.mean(found)) if found else float("nan")


def minatar_table(world: str) -> Published:
    """Return the published figures of a game by strategy and percentage; "" where no share is given."""
    return {
        (row["strategy"], percent(float(row["feedback"])) if row["feedback"] else ""): (
            float(row["mean"]),
            number(row["stderr"]),
        )
        for row in published("minatar_uds")
        if row["domain"] == world
    }


def played(results: list[Result]) -> list[str]:
    """Return the variants that have results."""
    return list(dict.fromkeys(result.cell.settings["variant"] for result in results))


def curves_figure(results: list[Result], variant: str, figure: str = "return") -> Any:
    """Draw the mean over seeds against the share of labels, a line a strategy."""
    picture = new_figure(8, 4.5)
    axes = picture.add_subplot()
    lines: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for (name, strategy, labels), values in figures_by_cell(results, figure).items():
        if name == variant and labels.endswith("%"):
            summary = summarise(np.array(values))
            lines[strategy].append((float(labels.split()[0]), summary.mean, summary.stderr))
    for i, (strategy, points) in enumerate(lines.items()):
        x, mean, error = zip(*sorted(points), strict=True)
        axes.errorbar(x, mean, error, label=strategy, marker="os^vDPX*"[i % 8], markersize=4)
    axes.set(xlabel="percentage of states labelled", ylabel="return of the learned policy")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return picture


def frames_figure(results: list[Result], variant: str, strategies: Iterable[str]) -> dict[str, Any]:
    """Draw the pictures that strategies label first, those of seed 0; nothing where there are no such results."""
    chosen = {
        result.cell.strategy: result
        for result in results
        if result.cell.seed == 0 and result.cell.settings["variant"] == variant and "first" in result.records[0]
    }
    shown = [chosen[name] for name in strategies if name in chosen]
    if not shown:
        return {}
    picture = new_figure(9, 0.75 * len(shown))
    for i, result in enumerate(shown):
        try:
            task = game_problem(result.cell)
        except MissingExtraError:  # the results are stored, the pictures are in the data
            return {}
        axes = picture.add_subplot(len(shown), 1, i + 1)
        states = task.actions(result.records[0]["first"])
        axes.imshow(frames.mosaic(task, states[:DRAWN], columns=DRAWN), interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_ylabel(result.cell.strategy, rotation=0, ha="right", va="center", fontsize=8)
    return {f"Frames of {shown[0].cell.world} that are labelled first": picture}
