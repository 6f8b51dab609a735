"""What do searches with an evaluator find in Breakout, and does it generalise to episodes that were not searched on?"""

from typing import Any

import agents
from agents.search.brute_force import rewarding_states
from experiments.analysis.claims import by_budget, is_not_better
from experiments.analysis.game_comparison import compare_game, published_game
from experiments.analysis.row import Row, mean_of
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent
from experiments.studies.game_episodes import (
    DATA,
    FIRST,
    FRESH_EPISODES,
    FRESH_SEED,
    OPTIONS,
    SHARES,
    TABLE_REASON,
    curves_figure,
    expert_mark,
    frames_figure,
    game_problem,
    game_study,
    played,
)
from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.worlds import GAME_DEFAULTS

NAME, WORLD = "breakout-trained", "Breakout"
SEARCHES = ("es-1000", "guided")
REFERENCES = ("reduced-brute-force", "full labels")
SEEDS = 3


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per variant of the data, strategy, share and seed; references have no share."""
    plan = [(name, share) for name in SEARCHES for share in SHARES] + [(name, None) for name in REFERENCES]
    return [
        Cell(NAME, WORLD, strategy, seed, {"variant": name, "share": share, "expert": expert_mark(WORLD, data), **data})
        for name, data in DATA.items()
        for strategy, share in plan
        for seed in range(seeds)
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Search on the data of the cell's seed; evaluate on the episodes of the search and on fresh episodes."""
    task = game_problem(cell)
    fresh = game_problem(cell, evaluation_seed=FRESH_SEED, rollouts=FRESH_EPISODES)
    share = cell.settings["share"]
    labels = number_of_labels(share, task.n_states) if share else int(rewarding_states(task.dataset).sum())
    if cell.strategy == "full labels":
        chosen, cost = task.dataset.labelable.nonzero()[0], 0
    else:
        env = RewardSelectionEnv(task, labels, labels_per_refit=GAME_DEFAULTS.labels_per_refit)
        agent = agents.make(cell.strategy, **OPTIONS.get(cell.strategy, {}))
        agent.train(env, cell.seed)
        episode = agents.play(env, agent, cell.seed)
        chosen, cost = episode.labels, episode.cost
    return [
        {
            "labels": percent(share) if share else "",
            "share": share or len(chosen) / task.n_states,
            "return": task.score(chosen),
            "fresh": fresh.score(chosen),
            "cost": cost,
            "size": len(chosen),
            "states": task.n_states,
            "first": task.states[chosen[:FIRST]].tolist(),
        }
    ]


def rows(results: list[Result]) -> list[Row]:
    """Return our results on the episodes of the search, as published, and on fresh episodes."""
    own = compare_game(results, {"paper": published_game(WORLD)}, reason=TABLE_REASON)
    return own + compare_game(results, {}, metric="fresh")


def findings(rows: list[Row]) -> list[str]:
    """Summarise the returns on fresh episodes, and say whether the evolution strategy is no better than guided."""
    sentences = []
    for data in dict.fromkeys(row.setting for row in rows):
        mine = [row for row in rows if row.setting == data]
        fresh = [row for row in mine if row.metric == "fresh"]
        full = mean_of(fresh, strategy="full labels")
        sentences.append(
            f"{data}, fresh episodes, 15 % labelled: es-1000 {mean_of(fresh, strategy='es-1000', labels='15 %'):.2f} "
            f"(on its own episodes {mean_of(mine, metric='return', strategy='es-1000', labels='15 %'):.2f}), guided "
            f"{mean_of(fresh, strategy='guided', labels='15 %'):.2f}, all states labelled {full:.2f}"
        )
        found = by_budget(fresh, "es-1000", "guided")
        if found is not None:
            sentences.append(
                f"{data}: guided without an evaluator earns as much as es-1000 (table, fresh episodes): "
                f"{is_not_better(found, full)}; {found.over} es-1000 {found.first:.2f}, guided "
                f"{found.second:.2f} (difference {found})"
            )
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw returns on fresh episodes against labels."""
    return {
        **{
            f"Searches in Breakout, fresh episodes: {data}": curves_figure(results, data, "fresh")
            for data in played(results)
        },
        **frames_figure(results, "paper", ("es-1000", "guided", "reduced-brute-force")),
    }


STUDY = game_study(
    NAME,
    __doc__,
    cells,
    run_cell,
    rows,
    SEEDS,
    figures=figures,
    place=21,
    findings=findings,
)
