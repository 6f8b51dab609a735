"""How much do guided and the evolution strategies lose if the first labels are chosen at random?"""

import agents
from experiments.analysis.comparison import compare_budgets, published_initial_samples
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import problem
from experiments.engine.study import Study
from experiments.protocol.budgets import BUDGETS
from experiments.studies.tabular.budget_sweep import run_play
from selectenv.env import RewardSelectionEnv

NAME = "initial-sample"
WORLDS = ("Graph", "TwoRooms")
RATIOS = (0.0, 0.1, 0.3, 0.5)
SEARCHES = ("es-50", "es-200")


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells: one per episode of guided, which covers all budgets, and one per search and budget."""
    found = []
    for world in WORLDS:
        n = BUDGETS[world][-1] if world == "Graph" else 50
        for ratio in RATIOS:
            settings = {"variant": f"initial {ratio:g}", "solver": solver, "env": {"initial_ratio": ratio}}
            guided = {**settings, "budgets": BUDGETS[world]}
            found += [Cell(NAME, world, "guided", seed, guided) for seed in range(seeds)]
            found += [
                Cell(NAME, world, strategy, seed, {**settings, "budget": budget})
                for budget in BUDGETS[world]
                if budget > int(ratio * n + 1e-9)
                for strategy in SEARCHES
                for seed in range(seeds)
            ]
    return found


def run_cell(cell: Cell) -> list[Record]:
    """Play guided, or search for one budget given the initial labels."""
    if "budget" not in cell.settings:
        return run_play(cell)
    task = problem(cell.world, {"solver": cell.settings["solver"]})
    env = RewardSelectionEnv(task, cell.settings["budget"], **cell.settings["env"])
    agent = agents.make(cell.strategy)
    agent.train(env, cell.seed)
    episode = agents.play(env, agent, cell.seed)
    return [{"labels": env.budget, "return": episode.performance, "ids": episode.ids.tolist()}]


def rows(results: list[Result]) -> list[Row]:
    """Return our results with the published ones."""
    return compare_budgets(results, published_initial_samples("Graph") | published_initial_samples("TwoRooms"))


STUDY = Study(NAME, __doc__, cells, run_cell, rows, place=7)
