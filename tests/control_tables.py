"""Checks of the tables of the control worlds against the committed results."""

import json
from functools import cache

import numpy as np

from experiments.analysis.row import Row, mean_of
from experiments.engine.archive import read_archive
from experiments.engine.cell import Cell, Result
from experiments.studies import find_studies
from experiments.studies.control.control_cells import FULL, NETWORK, TABLE
from tests.markdown_pages import ROOT, Table

WORLDS = ("CartPole", "Acrobot", "MountainCar", "LunarLander")
"""The worlds, in the order of the columns."""


@cache
def stored_results(study: str) -> list[Result]:
    """Return the committed results of a study that belong to its cells of today."""
    keys = {cell.key for cell in find_studies()[study].cells(find_studies()[study].seeds, "exact")}
    return [
        Result(Cell(name, world, strategy, seed, json.loads(settings)), json.loads(records), seconds)
        for key, name, world, strategy, seed, settings, _, records, seconds, _ in read_archive(
            ROOT / "docs/archives/control.jsonl.xz"
        )
        if key in keys
    ]


@cache
def normalised(study: str) -> list[Row]:
    """Return the rows of a study with returns on a scale from random actions (0) to the expert (1)."""
    return [row for row in find_studies()[study].rows(stored_results(study)) if row.metric == "normalised"]


def shown_as(value: float) -> str:
    """Return a number with two decimals and without a negative zero."""
    return f"{round(float(value), 2) + 0.0:.2f}"


def check_every_group_labelled(table: Table) -> None:
    """Mean, smallest and largest return over the datasets, for networks and tables."""
    for world, *shown in table.rows:
        for variant, cell in zip((NETWORK, TABLE), shown, strict=True):
            values = [
                result.records[0]["normalised"]
                for result in stored_results("control-heuristics")
                if (result.cell.world, result.cell.strategy, result.cell.settings["variant"]) == (world, FULL, variant)
            ]
            assert len(values) == {NETWORK: 3, TABLE: 10}[variant]
            assert cell == f"{shown_as(np.mean(values))} ({shown_as(min(values))} to {shown_as(max(values))})", (
                world,
                variant,
            )


def check_strategies(table: Table) -> None:
    """Mean over the budgets, with tables and with networks."""
    rows = normalised("control-heuristics")
    places = [*((world, TABLE) for world in WORLDS), ("CartPole", NETWORK), ("Acrobot", NETWORK)]
    assert {name for name, *_ in table.rows} == {row.strategy for row in rows if row.strategy != "no labels"}
    for name, *shown in table.rows:
        for (world, variant), cell in zip(places, shown, strict=True):
            mean = mean_of(rows, world=world, setting=variant, strategy=name)
            assert cell == ("" if np.isnan(mean) else shown_as(mean)), (name, world, variant)


def check_groups(table: Table) -> None:
    """Every group labelled, and in brackets the mean over the four shares of the transitions."""
    rows = normalised("control-groups")
    assert {name for name, *_ in table.rows} == {row.strategy for row in rows}
    for name, *shown in table.rows:
        for world, cell in zip(WORLDS, shown, strict=True):
            mine = [row for row in rows if (row.world, row.strategy) == (world, name)]
            few = mean_of([row for row in mine if row.labels != "100 %"])
            assert cell == f"{shown_as(mean_of(mine, labels='100 %'))} ({shown_as(few)})", (name, world)
