"""Shared by the studies of Breakout's data at five shares of random actions, from no labels to all labels."""

from typing import Any

from experiments.analysis.game_comparison import GameTable, compare_game
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Record, Result
from experiments.protocol.budgets import percent
from experiments.protocol.published import PublishedMean, behaviour
from experiments.studies.game_episodes import TABLE, TABLE_REASON, game_cells, game_problem, run_game
from selectenv.typing import BoolArray

WORLD = "Breakout"
RANDOM_SHARES = (0.0, 0.3, 0.5, 0.7, 1.0)
"""Shares of random actions in the data: the "expert ratio" that the published tables print."""
FULL = ("guided", "100 %")


def variant(random_share: float) -> str:
    """Return the name of the variant with this share of random actions."""
    return f"random share {random_share:g}"


def expert_share(random_share: float) -> float:
    """Return the probability of an expert action that leaves this share of random ones."""
    return round(1 - random_share, 10)


def behaviour_cells(study: str, learner: str, seeds: int) -> list[Cell]:
    """Return one cell per mixture and seed."""
    variants: dict[str, dict[str, Any]] = {
        variant(p): {"problem": {**TABLE, "learner": learner, "expert_share": expert_share(p)}} for p in RANDOM_SHARES
    }
    return game_cells(study, WORLD, seeds, variants, ["guided"])


def run_behaviour(cell: Cell) -> list[Record]:
    """Play guided, and evaluate no labels (under the adapted rule: behaviour cloning) and all labels."""
    task = game_problem(cell)
    none: BoolArray = ~task.dataset.labelable
    extremes = {0.0: none, 1.0: ~none}
    return run_game(cell) + [
        {"labels": percent(share), "share": share, "return": task.score(labels), "states": task.n_states}
        for share, labels in extremes.items()
    ]


def behaviour_rows(results: list[Result], learner: str, reason: str = TABLE_REASON, **more: Any) -> list[Row]:
    """Compare results with the published row of the same share of random actions.

    Args:
        results: those of guided; see `variant` for the names of their variants.
        learner: the published table, "uds" or "adapted".
        reason: why they may differ.
        **more: options of `compare_game`.
    """
    printed: dict[str, GameTable] = {variant(p): {} for p in RANDOM_SHARES}
    for row in behaviour(learner):
        printed[variant(row.expert_ratio)]["guided", percent(row.feedback)] = row.score

    def others(name: str, strategy: str, labels: str) -> list[PublishedMean]:
        """Return the figures printed for the other shares, since the table has one strategy only."""
        return [table[strategy, labels] for other, table in printed.items() if other != name]

    return compare_game(results, printed, full=(FULL, FULL), others=others, reason=reason, **more)
