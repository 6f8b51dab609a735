"""How much does a random first share of the labels cost guided and the evolution strategies?"""

import agents
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.problems import problem
from experiments.engine.study import Row, Study
from experiments.protocol.budgets import BUDGETS, FEEDBACK
from experiments.protocol.published import number, published
from experiments.studies.tabular.budget_sweep import play_rows, run_play
from selectenv.env import RewardSelectionEnv

NAME = "initial-sample"
TABLES = {"Graph": "initial_sample_graph", "TwoRooms": "initial_sample_tworooms"}
RATIOS = (0.0, 0.1, 0.3, 0.5)
SEARCHES = ("es-50", "es-200")


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return the cells: guided gives all budgets from one episode, a search is made for each."""
    found = []
    for world in TABLES:
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
    """Return ours beside the published tables."""

    def lookup(world: str, variant: str, strategy: str, labels: int) -> tuple[float, float | None] | None:
        ratio, feedback = float(variant.split()[1]), FEEDBACK[BUDGETS[world].index(labels)]
        for row in published(TABLES[world]):
            wanted = (float(row["initial_ratio"]), float(row["feedback"]), row["strategy"])
            if wanted == (ratio, feedback, strategy):
                return float(row["mean"]), number(row["stderr"])
        return None

    return play_rows(results, lookup)


STUDY = Study(NAME, __doc__, cells, run_cell, rows, place=7)
