"""Shared by the studies with neural learners: one pool of cells, each of one or a few training runs in a MinAtar game.

A cell belongs to the pool rather than to a study, so that studies share training runs. Every record has two readings of
the same training run: "return", the mean of several evaluations over the last part of the run, and "last weights", the
published protocol.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.search.best_of import BestOf
from agents.search.brute_force import rewarding_states
from experiments.analysis.game_comparison import LAST_WEIGHTS
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import percent
from experiments.studies.game_episodes import (
    FIRST,
    FRESH_SEED,
    OPTIONS,
    SHARES,
    TABLE,
    expert_mark,
    game_problem,
    game_study,
)
from experiments.studies.minatar.early_curve import EarlyCurve
from experiments.studies.minatar.network_cost import cpu_hours
from experiments.studies.training_checkpoints import checkpoints
from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.evaluation import Evaluator
from selectenv.learners import make_learner
from selectenv.problem import SelectionProblem
from selectenv.typing import IntArray
from selectenv.worlds import WORLDS

POOL = "minatar-networks"
SEEDS = 3
GAMES = ("Breakout", "Asterix", "Seaquest", "Freeway")
"""The games, the most telling ones first."""
SCALES = ("fast", "paper")
OPEN = ("uniform", "visitation", "terminal")
"""Open-loop strategies, which choose labels before anything is learned: one training run per budget."""
LEARNER = {"behaviour cloning": "bc", "greedy cloning": "bc-greedy"}
REFERENCES = ("full labels", *LEARNER)
NO_LABELS = "no labels"
EVALUATIONS = 10
"""Evaluations of a training run whose mean is its return, over the last 40 % of its updates."""
WITH_TABLE = "Breakout"
"""The game that is also learned by an exact table, for comparison."""
CLOSED: dict[str, Any] = {"refit": 0.025, "reach": 0.90, "warm": True, "growth": 2.0}
"""Closed-loop strategies: labels between two refits ("refit") and in total ("reach"), as shares of the states.

Refits start from the networks of the refit before ("warm"), except when the number of labels has grown by a factor
("growth") since the last training from scratch.
"""
PRESET = ("transitions", "updates", "rate", "target_step")
"""Fields of a preset that identify a cell; another list would give all stored results other keys."""
CLOSED_FEATURES = ("labelled", "visitation", "predecessors", "budget")
"""What guided looks at; what is not asked for is not computed."""


def network_cell(
    game: str,
    strategy: str,
    seed: int,
    scale: str,
    *,
    learner: str | None = None,
    expert: str = "published",
    random_share: float = 0.5,
    options: Mapping[str, Any] | None = None,
    rate: float | None = None,
    **settings: Any,
) -> Cell:
    """Return a cell of the pool; another expert, or another preset of the scale, gives another cell.

    Args:
        game: the world.
        strategy: an agent, or one of `REFERENCES` and `NO_LABELS`.
        seed: seed of the data, of the selection and of the learner.
        scale: "fast" or "paper".
        learner: by default that of the strategy: cloning, or IQL with UDS.
        expert: the name of the expert that collects the data.
        random_share: share of random actions in the data.
        options: more options of the problem; ``dataset_size`` takes the place of the scale's.
        rate: the learning rate; by default that of the scale.
        **settings: more settings of the cell.
    """
    chosen: dict[str, Any] = {
        "scale": scale,
        "learner": learner or LEARNER.get(strategy, "iql"),
        "learner_seed": seed,
        "evaluations": EVALUATIONS,
        **(options or {}),
    }
    if "dataset_size" in chosen:
        del chosen["scale"]  # only one of them can be given
    if expert != "published":
        chosen["expert"] = expert
    if random_share != 0.5:
        chosen["expert_share"] = round(1 - random_share, 10)
    preset = WORLDS[game].defaults.learning.preset(scale)
    preset = replace(
        preset,
        transitions=chosen.get("dataset_size", preset.transitions),
        updates=chosen.get("updates", preset.updates),
        rate=preset.rate if rate is None else rate,
    )
    shared = {
        "variant": scale,
        "expert": expert_mark(game, {"problem": chosen}),
        "preset": {name: getattr(preset, name) for name in PRESET},
        "problem": chosen,
    }
    return Cell(POOL, game, strategy, seed, {**shared, **settings})


def open_loop_cells(
    seeds: Iterable[int],
    scale: str,
    strategies: Iterable[str],
    games: Iterable[str] = GAMES,
    shares: Iterable[float] = SHARES,
) -> list[Cell]:
    """Return one cell per seed, share, game and strategy, in this order."""
    plan = [(share, game, strategy) for share in shares for game in games for strategy in strategies]
    return [network_cell(game, strategy, seed, scale, share=share) for seed in seeds for share, game, strategy in plan]


def run_network_cell(cell: Cell) -> list[Record]:
    """Choose labels, train and evaluate; checkpoints are kept until the cell is finished."""
    with checkpoints(cell) as folder:
        shared = game_problem(cell, **warm_options(cell))
        learner: Any = shared.learner  # a neural one, see `network_cell`
        settings = replace(learner.settings, rate=cell.settings["preset"]["rate"])
        learner = replace(learner, settings=settings, checkpoints=folder)
        task = SelectionProblem(shared.dataset, learner, shared.evaluator)
        if cell.strategy in REFERENCES:
            return _run_reference(task, folder)
        if cell.strategy == NO_LABELS:
            return [_record(task, np.zeros(0, np.int64), percent(0))]
        if cell.strategy == "best-of":
            return _run_best_of(cell, task)
        return _run_open_loop(cell, task) if "share" in cell.settings else _run_closed_loop(cell, task)


def warm_options(cell: Cell) -> dict[str, Any]:
    """Return the options of a problem that say how a cell's refits start; without "growth", all of them start warm."""
    if not cell.settings.get("warm"):
        return {}
    return {"warm_start": True, "warm_growth": cell.settings.get("growth", math.inf)}


def _run_reference(task: SelectionProblem, folder: Path) -> list[Record]:
    """Evaluate full labels, and record the learning curve; the adapted rule has no early part of it."""
    early = EarlyCurve(task, folder / "curve.json").points if task.learner.rule != "adapted" else []
    chosen = np.flatnonzero(task.dataset.labelable)
    record = _record(task, chosen, "")
    curve = task.learning_curve(chosen)
    late = zip(curve.updates.tolist(), record["evaluations"], strict=True)
    return [record, *early, *({"updates": updates, "curve": value} for updates, value in late)]


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
    """Play a strategy that uses the learned values of the network, and evaluate it from scratch at every budget."""
    unit = number_of_labels(cell.settings["refit"], task.n_states)
    shares = [share for share in SHARES if share <= cell.settings["reach"]]
    budgets = {share: round(share / cell.settings["refit"]) * unit for share in shares}
    env = RewardSelectionEnv(task, budgets[shares[-1]], labels_per_refit=unit, features=CLOSED_FEATURES)
    agent = agents.make(cell.strategy, **OPTIONS.get(cell.strategy, {}))
    agent.train(env, cell.seed)
    chosen = agents.play(env, agent, cell.seed).labels
    return [_record(task, chosen[:labels], percent(share)) for share, labels in budgets.items()]


def _run_best_of(cell: Cell, task: SelectionProblem) -> list[Record]:
    """Evaluate sets sampled by visitation; record the best of the first 2, 4, ... and its return on fresh episodes."""
    share = cell.settings["share"]
    env = RewardSelectionEnv(task, number_of_labels(share, task.n_states), labels_per_refit=task.n_states)
    sets = BestOf(**cell.settings["search"]).draw(agents.SearchTask(env, cell.seed))
    fresh = game_problem(cell, evaluation_seed=FRESH_SEED).evaluator
    found = [
        {
            **_record(task, chosen, percent(share)),
            "fresh": float(np.mean(fresh.returns(task.learn(chosen).batch))),
        }
        for chosen in sets
    ]
    return [
        {**max(found[:calls], key=lambda record: float(record["return"])), "cost": calls}
        for calls in (2**k for k in range(1, len(sets).bit_length()))
    ]


def _record(task: SelectionProblem, chosen: IntArray, labels: str) -> Record:
    """Train from scratch, and return the readings with a description of the label set."""
    data = task.dataset
    rewards = data.all_rewards
    seen = np.isin(data.state, chosen)
    exact = {}
    if (data.spec.get("world"), task.learner.rule) == (WITH_TABLE, "uds"):
        table = SelectionProblem(data, make_learner(expectile=TABLE["expectile"]), Evaluator(task.evaluator.engine))
        exact = {"exact": table.score(chosen)}
    evaluations = task.learning_curve(chosen).returns[0].tolist()
    return {
        **exact,
        "labels": labels,
        "share": len(chosen) / task.n_states,
        "return": float(np.mean(evaluations)),
        LAST_WEIGHTS: evaluations[-1],
        "evaluations": evaluations,
        "size": len(chosen),
        "states": task.n_states,
        "rewarding": int(rewarding_states(data).sum()),
        "revealed": float(rewards[seen].sum()) / (float(rewards.sum()) or 1.0),
        "first": task.states[chosen[:FIRST]].tolist(),
    }


def of_game(results: list[Result], game: str) -> list[Result]:
    """Return the results of one game."""
    return [result for result in results if result.cell.world == game]


def network_study(
    name: str,
    question: str | None,
    cells: Any,
    rows: Any,
    figures: Any,
    place: int,
    findings: Any,
    scales: tuple[str, ...] | None = None,
) -> Study:
    """Return a study over cells of the pool, which states its cost first.

    Args:
        name: see `Study`, also for the other arguments.
        question: what the study answers.
        cells: seeds and solver -> cells.
        rows: results -> rows.
        figures: results -> figures.
        place: position in the list of studies.
        findings: rows -> sentences.
        scales: scales that are run by default; None means all.
    """
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
        scales=scales,
        cpu_hours=cpu_hours,
    )
