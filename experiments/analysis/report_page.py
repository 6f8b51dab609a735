"""The HTML page of the report: Jinja2 templates filled with tables and inline SVG figures."""

import datetime
import importlib
import platform
from collections.abc import Iterator, Sequence
from importlib import metadata
from itertools import count
from typing import Any, NamedTuple

import jinja2
import numpy as np
from markupsafe import Markup

import selectenv
from experiments.analysis.coverage import coverage_sentence
from experiments.analysis.figures import new_figure
from experiments.analysis.gathering import StudyResults
from experiments.analysis.headlines import verdict_sentence, with_verdict
from experiments.analysis.inline_svg import inline_svg
from experiments.analysis.published_figures import published_figures
from experiments.analysis.report_summary import FEWEST, HARDLY, OVERALL, summary_lines
from experiments.analysis.row_text import REPORT_COLUMNS, WRAPPED, ReportTable, report_table
from experiments.cli.listings import STRATEGIES
from experiments.engine.problems import problem
from experiments.protocol.budgets import BUDGETS, WORLDS
from selectenv.rendering.selection import draw, key

DRAWN = ("uniform", "visitation", "guided", "terminal", "terminal-guided")
"""Strategies whose labels are drawn, world by world."""


class Figure(NamedTuple):
    """A figure of the page."""

    title: str
    svg: Markup


class StudySection(NamedTuple):
    """The section of a study."""

    name: str
    question: str
    verdicts: str
    coverage: str
    seconds: float
    figures: list[Figure]
    table: ReportTable


class WorldSection(NamedTuple):
    """The section of a world."""

    name: str
    dynamics: str
    figures: list[Figure]


def render(found: Sequence[StudyResults], findings: Sequence[str], commands: Sequence[str] = ()) -> str:
    """Return the page.

    Args:
        found: the studies with their results and rows.
        findings: sentences for the top of the page.
        commands: what makes this report again.
    """
    played = {result.cell.world for _, results, _ in found for result in results}
    compared = {row.strategy for _, _, rows in found for row in with_verdict(rows)}
    numbers = count(1)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("experiments.analysis"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    packages = [(name, metadata.version(name)) for name in ("gymnasium", "numpy", "numba", "scipy")]
    return environment.get_template("report.html.j2").render(
        summary=summary_lines(found),
        least={words: f"{100 * share:.0f} %" for share, words in OVERALL},
        hardly=HARDLY,
        fewest=f"{100 * FEWEST:.0f} %",
        strategies={name: does for name, does in STRATEGIES.items() if name in compared},
        findings=[_finding(text, [study.name for study, _, _ in found]) for text in findings],
        commands=commands,
        studies=[_study_section(one, numbers) for one in found],
        worlds=[_world_section(world, found, numbers) for world in WORLDS if world in played],
        wrapped=WRAPPED,
        columns=len(REPORT_COLUMNS),
        versions=[("selectenv", selectenv.__version__), ("Python", platform.python_version()), *packages],
        today=datetime.datetime.now(tz=datetime.UTC).date(),
        cells=sum(len(results) for _, results, _ in found),
        minutes=sum(result.seconds for _, results, _ in found for result in results) / 60,
    )


def _finding(text: str, studies: Sequence[str]) -> tuple[str, str]:
    """Return the study of a finding, "" for findings about all studies, and the rest of the sentence."""
    study, colon, rest = text.partition(": ")
    return (study, rest) if colon and study in studies else ("", text)


def _study_section(one: StudyResults, numbers: Iterator[int]) -> StudySection:
    study, results, rows = one
    return StudySection(
        study.name,
        study.question.strip(),
        verdict_sentence(rows),
        coverage_sentence(one),
        sum(result.seconds for result in results),
        [
            Figure(title, inline_svg(title, figure, numbers))
            for title, figure in (published_figures(rows) | study.figures(results)).items()
        ],
        report_table(rows),
    )


def _world_section(world: str, found: Sequence[StudyResults], numbers: Iterator[int]) -> WorldSection:
    """Return a world's dynamics, and drawings of the labels of each strategy at each budget."""
    module = importlib.import_module(selectenv.TABULAR[world].make.__module__)
    orders = {
        result.cell.strategy: result.records[-1]["ids"]
        for study, results, _ in found
        if study.name == "heuristics-uds"
        for result in results
        if result.records and (result.cell.world, result.cell.seed) == (world, 0) and result.cell.strategy in DRAWN
    }
    figures = []
    if orders:
        title = f"What strategies label in {world} as the budget grows"
        figures.append(Figure(title, inline_svg(title, _selections(world, orders), numbers)))
    return WorldSection(world, (module.__doc__ or "").strip(), figures)


def _selections(world: str, orders: dict[str, list[int]]) -> Any:
    """Draw the first labels of each strategy, one row per strategy and one column per budget."""
    task, budgets = problem(world), BUDGETS[world]
    figure = new_figure(3.0 * len(budgets), 2.2 * len(orders))
    for i, (strategy, ids) in enumerate(orders.items()):
        for j, labels in enumerate(budgets):
            labelled_at = np.zeros(task.n_states, np.int64)
            labelled_at[task.actions(ids[:labels])] = np.arange(1, labels + 1)
            axes = figure.add_subplot(len(orders), len(budgets), i * len(budgets) + j + 1)
            draw(axes, task, labelled_at, f"{strategy}, {labels} labels")
    figure.supxlabel(key(task), fontsize=9)
    return figure
