"""Shared by the breakout-behaviour studies: guided on data with five expert shares, from no labels to all labels."""

from experiments.analysis.comparison import GameTable, compare_game
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent
from experiments.protocol.published import PublishedMean, behaviour
from experiments.studies.game_episodes import game_cells, game_problem, run_game
from selectenv.typing import BoolArray

WORLD = "Breakout"
EXPERT_SHARES = (0.0, 0.3, 0.5, 0.7, 1.0)
PAPER_SEEDS = 3
SWAPPED = "agrees with the row printed for {:g}: the printed share looks like that of random actions"


def variant(share: float) -> str:
    """Return the name of the variant with this expert share."""
    return f"expert {share:g}"


def behaviour_cells(study: str, learner: str, seeds: int) -> list[Cell]:
    """Return one cell per mixture and seed; the paper's scale has at most `PAPER_SEEDS` seeds."""
    fast = {variant(p): {"problem": {"learner": learner, "expert_share": p}} for p in EXPERT_SHARES}
    paper = {f"{name}, paper": {"problem": {**options["problem"], "scale": "paper"}} for name, options in fast.items()}
    return [
        cell
        for variants, count in ((fast, seeds), (paper, min(seeds, PAPER_SEEDS)))
        for cell in game_cells(study, WORLD, count, variants, ["guided"])
    ]


def run_behaviour(cell: Cell) -> list[Record]:
    """Play guided, and evaluate no labels (under the adapted rule: behaviour cloning) and all labels."""
    task = game_problem(cell)
    none: BoolArray = ~task.dataset.labelable
    extremes = {0.0: none, 1.0: ~none}
    return run_game(cell) + [
        {"labels": percent(share), "share": share, "return": task.score(labels), "states": task.n_states}
        for share, labels in extremes.items()
    ]


def behaviour_rows(results: list[Result], learner: str) -> list[Row]:
    """Compare the paper's scale with the published row of the same share; note where the opposite share agrees."""
    printed: dict[float, GameTable] = {p: {} for p in EXPERT_SHARES}
    for row in behaviour(learner):
        printed[row.expert_ratio]["guided", percent(row.feedback)] = row.score
    theirs = {f"{variant(p)}, paper": printed[p] for p in EXPERT_SHARES}
    swapped: dict[str, tuple[GameTable, str]] = {
        f"{variant(p)}, paper": (printed[round(1 - p, 1)], SWAPPED.format(round(1 - p, 1))) for p in EXPERT_SHARES
    }

    def others(name: str, strategy: str, labels: str) -> list[PublishedMean]:
        """Return the metrics printed for the other shares, since the table has one strategy only."""
        return [table[strategy, labels] for other, table in theirs.items() if other != name]

    return compare_game(
        results,
        theirs,
        otherwise=swapped,
        others=others,
        reason="another expert, and the published learner is a network",
    )
