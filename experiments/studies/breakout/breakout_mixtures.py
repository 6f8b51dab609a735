"""How does the share of random actions in Breakout's data affect guided with a network, under both rules?

No labels mean a policy that acts at random under UDS, and behaviour cloning under the adapted rule.
"""

from dataclasses import replace
from typing import Any

from experiments.analysis.figures import new_figure
from experiments.analysis.game_comparison import LAST_WEIGHTS
from experiments.analysis.row import Row
from experiments.engine.cell import Cell, Result
from experiments.protocol.budgets import percentage
from experiments.studies.breakout.behaviour_mixtures import (
    FULL,
    RANDOM_SHARES,
    WORLD,
    behaviour_findings,
    behaviour_rows,
    random_share,
    variant,
)
from experiments.studies.minatar.network_cells import CLOSED, NO_LABELS, network_cell, network_study

NAME, SCALE = "breakout-mixtures", "fast"
LEARNERS = {"uds": "iql", "adapted": "iql-adapted"}
"""The neural learner of each rule."""
WITHOUT = {"uds": NO_LABELS, "adapted": "behaviour cloning"}
"""The reference without labels of each rule."""
REASON = "less data and fewer updates at the fast scale, and another expert"


def cells(seeds: int, solver: str) -> list[Cell]:
    """Return, seed by seed and rule by rule, the cells without labels, with full labels, and of guided."""
    found = []
    for seed in range(seeds):
        for rule, learner in LEARNERS.items():
            for share in RANDOM_SHARES:
                found.append(network_cell(WORLD, WITHOUT[rule], seed, SCALE, random_share=share))
                found.append(network_cell(WORLD, "full labels", seed, SCALE, learner=learner, random_share=share))
            found += [
                network_cell(WORLD, "guided", seed, SCALE, learner=learner, random_share=share, **CLOSED)
                for share in RANDOM_SHARES
            ]
    return found


def of_rule(results: list[Result], rule: str) -> list[Result]:
    """Return the results of one rule as the published tables show them: guided, from no labels to all of them."""
    percentages = {WITHOUT[rule]: "0 %", "full labels": FULL[1]}
    found = []
    for result in results:
        cell = result.cell
        if cell.strategy != WITHOUT[rule] and cell.settings["problem"]["learner"] != LEARNERS[rule]:
            continue
        records = [
            record | {"labels": percentages.get(cell.strategy, record["labels"])}
            for record in result.records
            if "return" in record
        ]
        shown = replace(cell, strategy=FULL[0], settings={**cell.settings, "variant": variant(random_share(cell))})
        found.append(Result(shown, records, 0.0))
    return found


def rows(results: list[Result]) -> list[Row]:
    """Return both readings of our results, rule by rule, with the published numbers."""
    found = []
    for rule in LEARNERS:
        mine = of_rule(results, rule)
        counted = {variant(share): FULL[:1] for share in RANDOM_SHARES}
        for metric, where in (("return", counted), (LAST_WEIGHTS, {})):
            of_metric = behaviour_rows(mine, rule, REASON, metric=metric, counted=where)
            found += [replace(row, setting=f"{rule}, {row.setting}") for row in of_metric]
    return found


def findings(rows: list[Row]) -> list[str]:
    """Say, rule by rule, whether the data matter more than the labels, and where few labels earn more than none."""
    sentences = []
    for rule in LEARNERS:
        mine = [
            replace(row, setting=row.setting.removeprefix(f"{rule}, "))
            for row in rows
            if row.setting.startswith(f"{rule}, ")
        ]
        sentences += [f"{rule}: {sentence}" for sentence in behaviour_findings(mine)]
    return sentences


def figures(results: list[Result]) -> dict[str, Any]:
    """Draw return against the percentage of labels, one panel per rule and mixture."""
    figure = new_figure(12, 5)
    for i, rule in enumerate(LEARNERS):
        found = [row for row in rows(results) if row.setting.startswith(f"{rule}, ") and row.metric == "return"]
        for j, share in enumerate(RANDOM_SHARES):
            axes = figure.add_subplot(2, len(RANDOM_SHARES), len(RANDOM_SHARES) * i + j + 1)
            mine = {str(row.labels): row for row in found if row.setting == f"{rule}, {variant(share)}"}
            points = [(percentage(labels), row) for labels, row in mine.items()]
            ours = sorted((x, row.ours.mean, row.ours.stderr) for x, row in points if row.ours)
            theirs = sorted(
                (x, row.published, row.published_error or 0.0) for x, row in points if row.published is not None
            )
            for series, label, colour in ((ours, "ours", "C0"), (theirs, "published", "k")):
                if series:
                    axes.errorbar(*zip(*series, strict=True), label=label, color=colour, marker="o", markersize=3)
            axes.set_title(f"{rule}, {variant(share)}", fontsize=8)
            axes.grid(alpha=0.3)
            if i == j == 0 and axes.has_data():
                axes.legend(fontsize=7)
    figure.supxlabel("percentage of states labelled", fontsize=8)
    figure.supylabel("return", fontsize=8)
    return {"Return against labels for five shares of random actions in the data, networks": figure}


STUDY = network_study(NAME, __doc__, cells, rows, figures, 30, findings)
