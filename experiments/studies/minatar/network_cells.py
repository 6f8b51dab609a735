"""Shared by the studies with neural learners: one pool of cells, each of one or a few training runs in a MinAtar game.

A cell belongs to the pool rather than to a study, so that studies share training runs.
"""

import json
import math
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.search.best_of import BestOf
from agents.search.brute_force import rewarding_states
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import percent
from experiments.studies.game_episodes import (
    FIRST,
    FRESH_EPISODES,
    FRESH_SEED,
    OPTIONS,
    SHARES,
    expert_mark,
    game_problem,
    game_study,
)
from selectenv.budget import number_of_labels
from selectenv.datasets.storage import cache_folder
from selectenv.domains.minatar.games import GAMES
from selectenv.env import RewardSelectionEnv
from selectenv.evaluation import Evaluator
from selectenv.io.atomic import whole_file
from selectenv.learners import make_learner
from selectenv.learners.training_run import STRETCH, Run
from selectenv.policies import PolicyList
from selectenv.problem import SelectionProblem
from selectenv.typing import IntArray
from selectenv.worlds import WORLDS

POOL = "minatar-networks"
SEEDS = 3
OPEN = ("uniform", "visitation", "terminal")
"""Open-loop strategies, which choose labels before anything is learned: one training run per budget."""
LEARNER = {"behaviour cloning": "bc", "greedy cloning": "bc-greedy"}
REFERENCES = ("full labels", *LEARNER)
CURVE = 10
"""Number of points of a learning curve."""
REASON = "another expert; at the fast scale half of the data and fewer, larger updates"
"""Why published results may differ."""
WITH_TABLE = "Breakout"
"""The game that is also learned by an exact table, for comparison."""
FEW = (0.15, 0.30, 0.60)
"""Budgets that run first."""
CLOSED = {"fast": {"refit": 0.15, "reach": 0.60}, "paper": {"refit": 0.025, "reach": 0.90}}
"""Closed-loop strategies: labels between two refits ("refit") and in total ("reach"), as shares of the states."""
TRAINING = cache_folder() / "training"
"""Directory of the checkpoints of unfinished cells."""
SECONDS = {"Breakout": 0.0042, "Freeway": 0.0170, "Seaquest": 0.0090, "Asterix": 0.0072}
"""Seconds per update on one core; measured by `python -m experiments.benchmarks.bench --networks`."""
PLAYING = {"Breakout": 1.0, "Freeway": 7.0, "Seaquest": 2.0, "Asterix": 1.5}
"""Seconds per 50 episodes."""
REFITTING = {"Breakout": 0.2, "Freeway": 5.0, "Seaquest": 5.0, "Asterix": 4.0}
"""Seconds to compute the learned features of 200,000 transitions after a refit."""


def heuristic_cells(seeds: int, scale: str, strategies: Iterable[str], games: Iterable[str] = GAMES) -> list[Cell]:
    """Return the cells of strategies in games, the budgets `FEW` first."""
    rest = tuple(share for share in SHARES if share not in FEW)
    cells = []
    for shares in (FEW, rest):
        for seed in range(seeds):
            for game in games:
                for strategy in strategies:
                    if strategy in OPEN:
                        cells += [network_cell(game, strategy, seed, scale, share=share) for share in shares]
                    elif shares is FEW:
                        cells.append(network_cell(game, strategy, seed, scale, **CLOSED[scale]))
    return cells


def network_cell(game: str, strategy: str, seed: int, scale: str, **settings: Any) -> Cell:
    """Return a cell of the pool."""
    learner = LEARNER.get(strategy, "iql")
    options = {"scale": scale, "learner": learner, "learner_seed": seed}
    return Cell(
        POOL, game, strategy, seed, {"variant": scale, "expert": expert_mark(game), "problem": options, **settings}
    )


def run_network_cell(cell: Cell) -> list[Record]:
    """Choose labels, train and evaluate; checkpoints are kept until the cell is finished."""
    folder = TRAINING / cell.key
    shared = game_problem(cell)
    learner: Any = shared.learner  # a neural one, see `network_cell`
    task = SelectionProblem(shared.dataset, replace(learner, checkpoints=folder), shared.evaluator)
    if cell.strategy in REFERENCES:
        records = _run_reference(task, folder)
    elif cell.strategy == "best-of":
        records = _run_best_of(cell, task)
    elif "share" in cell.settings:
        records = _run_open_loop(cell, task)
    else:
        records = _run_closed_loop(cell, task)
    shutil.rmtree(folder, ignore_errors=True)
    return records


def _run_reference(task: SelectionProblem, folder: Path) -> list[Record]:
    """Evaluate full labels, and record the learning curve."""
    curve = _Curve(task, folder / "curve.json")
    return [_record(task, np.flatnonzero(task.dataset.labelable), ""), *curve.points]


def _run_open_loop(cell: Cell, task: SelectionProblem) -> list[Record]:
    """Play a strategy whose labels do not depend on the network, with one budget."""
    share = cell.settings["share"]
    labels = number_of_labels(share, task.n_states)
    chooser: SelectionProblem = task
    refit: float = labels + 1  # never refit: the labels do not depend on the network
    if "chooser" in cell.settings:
        chooser, refit = game_problem(replace(cell, settings={"problem": cell.settings["chooser"]})), 0.02
    agent = agents.make(cell.strategy, **OPTIONS.get(cell.strategy, {}), **cell.settings.get("search", {}))
    env = RewardSelectionEnv(chooser, labels, labels_per_refit=refit)
    agent.train(env, cell.seed)
    episode = agents.play(env, agent, cell.seed)
    return [{**_record(task, episode.labels, percent(share)), "cost": episode.cost}]


def _run_closed_loop(cell: Cell, task: SelectionProblem) -> list[Record]:
    """Play a strategy that uses the learned values of the network, and evaluate it at every budget."""
    unit = number_of_labels(cell.settings["refit"], task.n_states)
    shares = [share for share in SHARES if share <= cell.settings["reach"]]
    budgets = {share: round(share / cell.settings["refit"]) * unit for share in shares}
    env = RewardSelectionEnv(task, budgets[shares[-1]], labels_per_refit=unit)
    agent = agents.make(cell.strategy, **OPTIONS.get(cell.strategy, {}))
    agent.train(env, cell.seed)
    chosen = agents.play(env, agent, cell.seed).labels
    return [_record(task, chosen[:labels], percent(share)) for share, labels in budgets.items()]


def _run_best_of(cell: Cell, task: SelectionProblem) -> list[Record]:
    """Evaluate sets sampled by visitation; record the best of the first 2, 4, ... and its return on fresh episodes."""
    share = cell.settings["share"]
    env = RewardSelectionEnv(task, number_of_labels(share, task.n_states), labels_per_refit=task.n_states)
    search = agents.SearchTask(env, cell.seed)
    sets = BestOf(**cell.settings["search"]).draw(search)
    returns = search.evaluate(sets)
    fresh = game_problem(cell, evaluation_seed=FRESH_SEED, rollouts=FRESH_EPISODES).evaluator
    records = []
    for calls in (2**k for k in range(1, len(sets).bit_length()) if 2**k <= len(sets)):
        best = int(returns[:calls].argmax())
        lasting = float(np.mean(fresh.returns(task.learn(sets[best]).batch)))
        records.append({**_record(task, sets[best], percent(share)), "cost": calls, "fresh": lasting})
    return records


class _Curve:
    """Learning curve of a network; points recorded before an interruption are kept on disk."""

    def __init__(self, task: SelectionProblem, path: Path) -> None:
        """Evaluate the learner of ``task`` during training."""
        self._path, self._task = path, task
        learner: Any = task.learner
        self._updates = learner.settings.updates
        self._every = max(1, self._updates // CURVE // STRETCH) * STRETCH
        self.points: list[Record] = json.loads(path.read_text()) if path.exists() else []
        task.learner = replace(learner, watch=self._evaluate)

    def _evaluate(self, done: int, run: Run) -> None:
        due = done % self._every == 0 or done == self._updates
        if not due or any(point["updates"] == done for point in self.points):
            return
        value = float(self._task.evaluator.returns(PolicyList([run.policy]))[0])
        self.points.append({"updates": done, "curve": value})
        with whole_file(self._path) as file:
            file.write(json.dumps(self.points).encode())


def _record(task: SelectionProblem, chosen: IntArray, labels: str) -> Record:
    data = task.dataset
    rewards = data.all_rewards
    seen = np.isin(data.state, chosen)
    exact = {}
    if (data.spec.get("world"), task.learner.rule) == (WITH_TABLE, "uds"):
        table = SelectionProblem(data, make_learner(), Evaluator(task.evaluator.engine))
        exact = {"exact": table.score(chosen)}
    return {
        **exact,
        "labels": labels,
        "share": len(chosen) / task.n_states,
        "return": task.score(chosen),
        "size": len(chosen),
        "states": task.n_states,
        "rewarding": int(rewarding_states(data).sum()),
        "revealed": float(rewards[seen].sum()) / (float(rewards.sum()) or 1.0),
        "first": task.states[chosen[:FIRST]].tolist(),
    }


def training_runs(cell: Cell) -> int:
    """Return the number of training runs of a cell."""
    if "search" in cell.settings:
        return math.prod(cell.settings["search"].values())
    return round(cell.settings["reach"] / cell.settings["refit"]) if "refit" in cell.settings else 1


def cpu_hours(cells: Iterable[Cell]) -> float:
    """Return the estimated duration of cells on one core, in hours."""
    total = 0.0
    for cell in cells:
        paper = cell.settings["problem"]["scale"] == "paper"
        updates = WORLDS[cell.world].defaults.learning.settings(cell.settings["problem"]["scale"], None).updates
        share = 0.2 if cell.strategy in LEARNER else 1.0
        runs = training_runs(cell)
        total += runs * updates * share * SECONDS[cell.world]
        total += (runs + (CURVE if cell.strategy in REFERENCES else 0)) * PLAYING[cell.world]
        if "refit" in cell.settings:
            total += runs * REFITTING[cell.world] * (5 if paper else 1)
    return total / 3600


def of_game(results: list[Result], game: str) -> list[Result]:
    """Return the results of one game."""
    return [result for result in results if result.cell.world == game]


def network_study(
    name: str, question: str | None, cells: Any, rows: Any, figures: Any, place: int, findings: Any
) -> Study:
    """Return a study over cells of the pool; it runs at the fast scale by default and states its cost first."""
    return game_study(
        name,
        question,
        cells,
        run_network_cell,
        rows,
        SEEDS,
        figures=figures,
        place=place,
        findings=findings,
        scales=("fast",),
        cpu_hours=cpu_hours,
    )
