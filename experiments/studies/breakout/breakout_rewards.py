"""How much reward do the label sets of visitation and uniform contain in Breakout?"""

import numpy as np

import agents
from experiments.analysis.comparison import GAME_RETURNS
from experiments.analysis.row import Row, mean_of
from experiments.analysis.rules import MeanOverSeeds
from experiments.analysis.statistics import summarise
from experiments.analysis.verdicts import judge
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent
from experiments.protocol.published import reward_sums
from experiments.studies.game_episodes import SCALES, expert_mark, game_problem, game_study
from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.streams import generator

NAME, WORLD = "breakout-rewards", "Breakout"
STRATEGIES = ("visitation", "uniform")
SHARES = tuple(dict.fromkeys(row.feedback for row in reward_sums()))
SETS = 100


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return one cell per scale and strategy; each draws ``seeds`` label sets on one dataset."""
    return [
        Cell(
            NAME,
            WORLD,
            strategy,
            0,
            {"variant": scale, "sets": seeds, "shares": SHARES, "expert": expert_mark(WORLD), **options},
        )
        for scale, options in SCALES.items()
        for strategy in STRATEGIES
    ]


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
    """Return the sums; those at the paper's scale have published numbers."""
    known = {("paper", row.strategy, row.feedback): row.total for row in reward_sums()}
    found = []
    for result in results:
        variant, strategy = result.cell.settings["variant"], result.cell.strategy
        for record in result.records:
            ours = np.array(record["rewards"])
            theirs = known.get((variant, strategy, record["share"]))
            verdict = None
            if theirs is not None:
                others = [known[variant, other, record["share"]] for other in STRATEGIES if other != strategy]
                rule = MeanOverSeeds(summarise(ours), SETS, GAME_RETURNS)
                verdict = judge(rule, theirs, others, "another expert earns another sum")
            mean, error = theirs or (None, None)
            metric = f"reward inside, of {record['total']:,.0f}"
            found.append(
                Row(WORLD, record["labels"], strategy, metric, summarise(ours), None, mean, error, verdict, "", variant)
            )
    return found


def findings(rows: list[Row]) -> list[str]:
    """Summarise how much reward visitation and uniform find."""
    sentences = []
    for scale in dict.fromkeys(row.setting for row in rows):
        found = [mean_of(rows, setting=scale, strategy=name, labels="15 %") for name in STRATEGIES]
        sentences.append(f"{scale}, 15 % labelled: visitation finds {found[0]:,.0f} of reward, uniform {found[1]:,.0f}")
    return sentences


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
