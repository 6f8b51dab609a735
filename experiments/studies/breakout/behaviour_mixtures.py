"""Shared by the studies of Breakout's data at five shares of random actions, from no labels to all labels."""

import math
from functools import partial
from typing import Any

from experiments.analysis.claims import DOES_NOT_HOLD, ERRORS, HOLDS, Difference, difference, is_better
from experiments.analysis.game_comparison import GameTable, compare_game
from experiments.analysis.row import Row
from experiments.analysis.statistics import Summary
from experiments.analysis.verdicts import CANNOT_BE_TOLD
from experiments.engine.cell import Cell, Record, Result
from experiments.engine.study import Study
from experiments.protocol.budgets import percent
from experiments.protocol.published import PublishedMean, behaviour
from experiments.studies.game_episodes import TABLE, TABLE_REASON, game_cells, game_problem, game_study, run_game
from selectenv.typing import BoolArray

WORLD = "Breakout"
RANDOM_SHARES = (0.0, 0.3, 0.5, 0.7, 1.0)
"""Shares of random actions in the data: the "expert ratio" that the published tables print."""
FULL = ("guided", "100 %")
"""Strategy and percentage of the results with full labels, ours and published."""
FEW = "15 %"


def variant(random_share: float) -> str:
    """Return the name of the variant with this share of random actions."""
    return f"random share {random_share:g}"


def expert_share(random_share: float) -> float:
    """Return the probability of an expert action that leaves this share of random ones."""
    return round(1 - random_share, 10)


def random_share(cell: Cell) -> float:
    """Return the share of random actions in the data of a cell; half of them by default."""
    return round(1 - float(cell.settings["problem"].get("expert_share", 0.5)), 10)


def behaviour_study(name: str, question: str | None, learner: str, place: int) -> Study:
    """Return the study of guided with a table that learns by one rule, "uds" or "adapted"."""
    return game_study(
        name,
        question,
        partial(behaviour_cells, name, learner),
        run_behaviour,
        partial(behaviour_rows, learner=learner),
        3,
        findings=behaviour_findings,
        place=place,
    )


def behaviour_cells(study: str, learner: str, seeds: int, solver: str) -> list[Cell]:
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
        """Return the numbers printed for the other shares, since the table has one strategy only."""
        return [table[strategy, labels] for other, table in printed.items() if other != name]

    return compare_game(results, printed, full=(FULL, FULL), others=others, reason=reason, **more)


def behaviour_findings(rows: list[Row]) -> list[str]:
    """Say whether the data matter more than the labels, and where few labels earn more than none."""
    full, few, none = (_by_share(rows, labels) for labels in (FULL[1], FEW, "0 %"))
    sentences = []
    if len(full) == len(few) == len(RANDOM_SHARES):
        best, worst = (choose(full.values(), key=lambda ours: ours.mean) for choose in (max, min))
        by_data, by_labels = difference([(best, worst)]), difference([(full[p], few[p]) for p in full])
        assert by_data is not None
        assert by_labels is not None
        listed = ", ".join(f"{ours.mean:.2f} ({variant(share)})" for share, ours in full.items())
        sentences.append(
            f"the data matter more than the labels: {dominates(by_data, by_labels)}; full labels earn {listed}, a "
            f"difference of {by_data} between the best and the worst data, and of {by_labels} between full labels and "
            f"{FEW} of them"
        )
    said = [
        f"{variant(share)} {is_better(found, full[share].mean)} ({found})"
        for share in full
        if share in few and share in none and (found := difference([(few[share], none[share])]))
    ]
    if said:
        sentences.append(f"guided with {FEW} of the labels earns more than without labels: {', '.join(said)}")
    return sentences


def dominates(first: Difference, second: Difference) -> str:
    """Return whether the first of two differences is larger than the second, beyond their errors."""
    if first.error is None or second.error is None:
        return CANNOT_BE_TOLD
    beyond, error = first.mean - second.mean, math.hypot(first.error, second.error)
    if abs(beyond) <= ERRORS * error:
        return CANNOT_BE_TOLD
    return HOLDS if beyond > 0 else DOES_NOT_HOLD


def _by_share(rows: list[Row], labels: str) -> dict[float, Summary]:
    """Return the results at one percentage of labels by the share of random actions."""
    wanted = {variant(share): share for share in RANDOM_SHARES}
    return {
        wanted[row.setting]: row.ours
        for row in rows
        if row.setting in wanted and (row.labels, row.metric) == (labels, "return") and row.ours
    }
