"""How much reward do the label sets of visitation and uniform contain in Breakout?"""

import numpy as np

import agents
from experiments.analysis.game_comparison import GAME_RETURNS
from experiments.analysis.game_verdicts import FullLabels, judge_game
from experiments.analysis.row import Row, mean_of
from experiments.analysis.rules import MeanOverSeeds
from experiments.analysis.statistics import summarise
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent
from experiments.protocol.published import reward_sums
from experiments.studies.game_episodes import expert_mark, game_problem, game_study
from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.streams import generator

NAME, WORLD = "breakout-rewards", "Breakout"
STRATEGIES = ("visitation", "uniform")
SHARES = tuple(dict.fromkeys(row.feedback for row in reward_sums()))
SETS = 100
PUBLISHED_TOTAL = 69_700.0
"""All reward in the published data, approximately."""


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per strategy; each draws ``seeds`` label sets on one dataset."""
    settings = {"variant": "paper", "sets": seeds, "shares": SHARES, "expert": expert_mark(WORLD)}
    return [Cell(NAME, WORLD, strategy, 0, {**settings, "problem": {"scale": "paper"}}) for strategy in STRATEGIES]


def run_cell(cell: Cell) -> list[Record]:
    """Draw label sets and sum the rewards of their states; smaller sets are prefixes of larger ones."""
    task, agent = game_problem(cell), agents.make(cell.strategy)
    data = task.dataset
    earned = np.bincount(data.state, data.hidden_reward, data.n_states)
    budgets = [number_of_labels(share, data.n_states) for share in cell.settings["shares"]]
    obs, info = RewardSelectionEnv(task, budgets[-1]).reset(seed=0)
    sums = np.empty((cell.settings["sets"], len(budgets)))
    for i, row in enumerate(sums):
        order = agent.select_many(obs, info, budgets[-1], generator(i, "selection", cell.strategy))
        row[:] = np.cumsum(earned[order])[np.array(budgets) - 1]
    return [
        {"labels": percent(share), "share": share, "rewards": column.tolist(), "total": float(earned.sum())}
        for share, column in zip(cell.settings["shares"], sums.T, strict=True)
    ]


def rows(results: list[Result]) -> list[Row]:
    """Return the sums with the published ones; shares are those of all reward in the data."""
    known = {(row.strategy, row.feedback): row.total for row in reward_sums()}
    found = []
    for result in results:
        strategy = result.cell.strategy
        for record in result.records:
            ours, theirs = summarise(np.array(record["rewards"])), known[strategy, record["share"]]
            others = [known[other, record["share"]] for other in STRATEGIES if other != strategy]
            rule = MeanOverSeeds(ours, SETS, GAME_RETURNS)
            full = FullLabels(record["total"], PUBLISHED_TOTAL)
            verdict = judge_game(rule, theirs, others, "another expert earns another sum", full, counted=True)
            metric = f"reward inside, of {record['total']:,.0f}"
            found.append(Row(WORLD, record["labels"], strategy, metric, ours, None, *theirs, verdict, setting="paper"))
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise how much reward visitation and uniform find."""
    found = [mean_of(rows, strategy=name, labels="15 %") for name in STRATEGIES]
    return [f"15 % labelled: visitation finds {found[0]:,.0f} of reward, uniform {found[1]:,.0f}"]


STUDY = game_study(
    NAME,
    __doc__,
    cells,
    run_cell,
    rows,
    SETS,
    place=22,
    findings=findings,
)
