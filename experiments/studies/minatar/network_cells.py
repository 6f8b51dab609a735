"""What the studies of networks share: one pool of cells, each a training run or a few, played in the four games.

A cell belongs to the pool and not to a study, so that no study trains again what another one has.
"""

import json
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
from experiments.studies.game_episodes import (
    FIRST,
    FRESH_EPISODES,
    FRESH_SEED,
    OPTIONS,
    SHARES,
    expert_mark,
    game_problem,
    percent,
)
from selectenv.datasets.storage import cache_folder
from selectenv.domains.minatar.games import GAMES
from selectenv.env import RewardSelectionEnv, number_of_labels
from selectenv.evaluation.evaluator import Evaluator, GameReturns
from selectenv.io.atomic import whole_file
from selectenv.learners import PictureLearner, make_learner
from selectenv.learners.training_run import STRETCH, CloningRun, IqlRun, Run
from selectenv.policies import CloningPlayer, GreedyPlayer
from selectenv.problem import SelectionProblem
from selectenv.registration import WORLDS

POOL = "minatar-networks"
SEEDS = 3
OPEN = ("uniform", "visitation", "terminal")
"""Strategies that choose before anything is learned: a training run a budget."""
LEARNER = {"behaviour cloning": "bc", "greedy cloning": "bc-greedy"}
YARDSTICKS = ("full labels", *LEARNER)
CURVE = 10
"""Points of a learning curve."""
REASON = "another expert; at the laptop's scale a fifth of the data and fewer, larger updates"
"""Why published figures may differ."""
FEW = (0.15, 0.30, 0.60)
"""Budgets that are run first."""
CLOSED = {"laptop": {"refit": 0.15, "reach": 0.60}, "paper": {"refit": 0.025, "reach": 0.90}}
"""Shares of the states between two refits of a closed-loop strategy, and labelled at the end."""
TRAINING = cache_folder() / "training"
"""Where training runs of unfinished cells are kept."""
SECONDS = {"Breakout": 0.0042, "Freeway": 0.0170, "Seaquest": 0.0090, "Asterix": 0.0072}
"""Of one update on one core; measured by `python -m experiments.benchmarks.bench --networks`."""
PLAYING = {"Breakout": 1.0, "Freeway": 7.0, "Seaquest": 2.0, "Asterix": 1.5}
"""Seconds of 50 episodes."""
REFITTING = {"Breakout": 0.2, "Freeway": 5.0, "Seaquest": 5.0, "Asterix": 4.0}
"""Seconds to look at all states of 200,000 transitions after a refit."""


def heuristic_cells(seeds: int, scale: str, strategies: Iterable[str], games: Iterable[str] = GAMES) -> list[Cell]:
    """Return the cells of strategies in games, the most telling budgets first."""
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
    """Choose labels, train and play; training runs are kept until the cell is done."""
    folder = TRAINING / cell.key
    shared = game_problem(cell)
    assert isinstance(shared.learner, PictureLearner)
    folder.mkdir(parents=True, exist_ok=True)
    task = SelectionProblem(shared.dataset, replace(shared.learner, checkpoints=folder), shared.evaluator)
    if cell.strategy in YARDSTICKS:
        curve = _Curve(task, folder / "curve.json")
        records = [_record(task, np.flatnonzero(task.dataset.labelable), ""), *curve.points]
    elif cell.strategy == "best-of":
        records = _best_of(cell, task)
    elif "share" in cell.settings:
        share = cell.settings["share"]
        labels = number_of_labels(share, task.n_states)
        chooser: SelectionProblem = task
        refit: float = labels + 1  # what such a strategy chooses does not depend on what is learned
        if "chooser" in cell.settings:
            chooser, refit = game_problem(replace(cell, settings={"problem": cell.settings["chooser"]})), 0.02
        agent = agents.make(cell.strategy, **OPTIONS.get(cell.strategy, {}), **cell.settings.get("search", {}))
        env = RewardSelectionEnv(chooser, labels, labels_per_refit=refit)
        agent.train(env, cell.seed)
        episode = agents.play(env, agent, cell.seed)
        records = [{**_record(task, episode.labels, percent(share)), "asked": episode.asked}]
    else:
        unit = number_of_labels(cell.settings["refit"], task.n_states)
        shares = [share for share in SHARES if share <= cell.settings["reach"]]
        budgets = {share: round(share / cell.settings["refit"]) * unit for share in shares}
        env = RewardSelectionEnv(task, budgets[shares[-1]], labels_per_refit=unit)
        agent = agents.make(cell.strategy, **OPTIONS.get(cell.strategy, {}))
        chosen = agents.play(env, agent, cell.seed).labels
        records = [_record(task, chosen[:labels], percent(share)) for share, labels in budgets.items()]
    shutil.rmtree(folder, ignore_errors=True)
    return records


def _best_of(cell: Cell, task: SelectionProblem) -> list[Record]:
    """Try sets drawn by visitation; record the best of the first 2, 4, ... also on episodes that chose nothing."""
    share = cell.settings["share"]
    env = RewardSelectionEnv(task, number_of_labels(share, task.n_states), labels_per_refit=task.n_states)
    training = agents.Training(env, cell.seed)
    sets = BestOf(m=cell.settings["search"]["m"]).draw(training)
    returns = training.evaluate(sets)
    engine = task.evaluator.engine
    assert isinstance(engine, GameReturns)
    fresh = Evaluator(GameReturns(engine.world, task.dataset, FRESH_EPISODES, FRESH_SEED))
    assert isinstance(task.learner, PictureLearner)
    records = []
    for calls in (2**k for k in range(1, len(sets).bit_length()) if 2**k <= len(sets)):
        best = int(returns[:calls].argmax())
        lasting = fresh.player_return(task.learner.players(task.mask(sets[best])))
        records.append({**_record(task, sets[best], percent(share)), "asked": calls, "fresh": lasting})
    return records


class _Curve:
    """Plays networks as they are trained; what was noted before an interruption is kept beside the checkpoint."""

    def __init__(self, task: SelectionProblem, path: Path) -> None:
        """Watch the learner of ``task``."""
        assert isinstance(task.learner, PictureLearner)
        self._path, self._task = path, task
        self._every = max(1, task.learner.settings.updates // CURVE // STRETCH) * STRETCH
        self.points: list[Record] = json.loads(path.read_text()) if path.exists() else []
        task.learner = replace(task.learner, watch=self._look)

    def _look(self, done: int, run: Run) -> None:
        learner = self._task.learner
        assert isinstance(learner, PictureLearner)
        due = done % self._every == 0 or done == learner.settings.updates
        if not due or any(point["updates"] == done for point in self.points):
            return
        assert isinstance(run, IqlRun | CloningRun)
        player = (
            GreedyPlayer(run.action_values) if isinstance(run, IqlRun) else CloningPlayer(run.logits, learner.likeliest)
        )
        self.points.append({"updates": done, "curve": self._task.evaluator.player_return([player])})
        with whole_file(self._path) as file:
            file.write(json.dumps(self.points).encode())


def _record(task: SelectionProblem, chosen: Any, labels: str) -> Record:
    data = task.dataset
    assert data.hidden_reward is not None
    seen = np.isin(data.state, chosen)
    exact = {}
    if cell_has_table(task):
        table = SelectionProblem(data, make_learner(data), Evaluator(task.evaluator.engine))
        exact = {"exact": table.score(chosen)}
    return {
        **exact,
        "labels": labels,
        "share": len(chosen) / task.n_states,
        "return": task.score(chosen),
        "size": len(chosen),
        "states": task.n_states,
        "rewarding": int(rewarding_states(data).sum()),
        "revealed": float(data.hidden_reward[seen].sum()) / (float(data.hidden_reward.sum()) or 1.0),
        "first": task.states[chosen[:FIRST]].tolist(),
    }


def cell_has_table(task: SelectionProblem) -> bool:
    """Return whether a table serves as well, so that both can be asked: in Breakout, with labels to learn from."""
    learner = task.learner
    return (
        isinstance(learner, PictureLearner) and learner.rule == "uds" and task.dataset.spec.get("world") == "Breakout"
    )


def training_runs(cell: Cell) -> int:
    """Return how many training runs a cell takes."""
    if "search" in cell.settings:
        return int(cell.settings["search"].get("k", 1)) * int(cell.settings["search"]["m"])
    return round(cell.settings["reach"] / cell.settings["refit"]) if "refit" in cell.settings else 1


def cpu_hours(cells: Iterable[Cell]) -> float:
    """Return about how long cells take on one core."""
    total = 0.0
    for cell in cells:
        paper = cell.settings["problem"]["scale"] == "paper"
        published = WORLDS[cell.world].published
        updates = published.updates if paper else published.laptop_updates
        share = 0.2 if cell.strategy in LEARNER else 1.0
        runs = training_runs(cell)
        total += runs * updates * share * SECONDS[cell.world]
        total += (runs + (CURVE if cell.strategy in YARDSTICKS else 0)) * PLAYING[cell.world]
        if "refit" in cell.settings:
            total += runs * REFITTING[cell.world] * (5 if paper else 1)
    return total / 3600


def of_game(results: list[Result], game: str) -> list[Result]:
    """Return the results of one game."""
    return [result for result in results if result.cell.world == game]


def network_study(
    name: str, question: str | None, cells: Any, rows: Any, figures: Any, place: int, findings: Any
) -> Study:
    """Return a study over cells of the pool: at the laptop's scale unless another is asked for, its cost said first."""
    return Study(
        name, question or "", cells, run_network_cell, rows, SEEDS, figures, place=place, solvers=("exact",),
        findings=findings, scales=("laptop",), cpu_hours=cpu_hours,
    )  # fmt: skip
