"""The commands around studies: list, run, compare, report, and repair of what they store."""

import argparse
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.analysis import report
from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE
from experiments.analysis.headlines import agreement, by_strategy, count_verdicts, of_games, with_verdict
from experiments.analysis.row import Row
from experiments.analysis.tensorboard_log import TensorBoardLog
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, DIFFERS, IMPOSSIBLE
from experiments.cli.commands import OWN_STRATEGY, OWN_STUDY, OWN_WORLD, AddCommand
from experiments.cli.listings import LISTINGS
from experiments.cli.narration import narration
from experiments.cli.tables import WIDTH, table
from experiments.engine.archive import add_archive, write_archive
from experiments.engine.cell import Cell
from experiments.engine.own_cells import chosen_cells
from experiments.engine.repair import repair
from experiments.engine.runner import run_cells
from experiments.engine.store import DEFAULT_PATH, ResultsStore
from experiments.engine.study import Study
from experiments.studies import find_studies, find_study
from selectenv.checks import check_int, check_name
from selectenv.errors import MissingExtraError, OptionError
from selectenv.options import SCALES


def add_to(add: AddCommand) -> None:
    """Add the commands to the command line."""
    command = add(
        "list",
        _list,
        "list the studies, or the worlds, agents or learners, including those of installed extensions",
        {"list": "the studies and the questions they answer", "list agents": "the strategies by name"},
    )
    command.add_argument("what", nargs="?", default="studies", help=f"{', '.join(LISTINGS)} (default: studies)")
    command = add(
        "run",
        _run,
        "run a study; cells that are already stored are not run again",
        {
            "run heuristics-uds --jobs 2": "run one study in two processes",
            "run all --only Graph/guided": "run one world, or one strategy in it, of all short studies",
            "run heuristics-uds --only Tree/my_module:MyStrategy": "run a strategy of your own, beside the others",
            "run my_module:STUDY": "run a study of your own",
            "run cost --only my_module:my_world": "run all strategies of a study in a world of your own",
            "run minatar-heuristics --jobs 2": "a long study: it first prints an estimate of its CPU hours",
        },
    )
    _add_cell_options(
        command, f"name of a study (see `selectenv list`), or all (without those that take hours); {OWN_STUDY}"
    )
    command.add_argument("--jobs", type=int, default=1, help="number of local processes (default: 1)")
    command.add_argument("--cluster", metavar="ADDRESS", help="address of a Dask scheduler to run on instead")
    command.add_argument("--tensorboard", type=Path, metavar="DIR", help="log every result for TensorBoard here")
    command = add(
        "compare",
        _compare,
        "compare the stored results of a study with the published numbers",
        {
            "compare heuristics-uds": "one line per published number, with its verdict",
            "compare trained-uds --only Tree": "one world only",
        },
    )
    _add_cell_options(command, f"name of a study (see `selectenv list`), or all; {OWN_STUDY}")
    command = add(
        "report",
        _report,
        "write all stored results, with tables and figures, into one HTML file",
        {
            "report": "write out/report.html",
            "report --csv out/results.csv": "also write every row as CSV",
            "report --only Tree/my_module:MyStrategy": "only the results of a strategy of your own",
        },
    )
    command.add_argument("--study", help=f"only this study (default: all that are registered); {OWN_STUDY}")
    _add_only_option(command)
    _add_results_option(command)
    command.add_argument("--seeds", type=int, help="number of seeds that were run, if not the study's default")
    command.add_argument(
        "--out", type=Path, default=Path("out/report.html"), help="file to write (default: out/report.html)"
    )
    command.add_argument("--csv", type=Path, help="also write all rows to this CSV file")
    command = add(
        "repair",
        _repair,
        "repair a damaged file: keep its intact parts",
        {
            "repair out/results.sqlite": "rows that are intact stay; the others are run again by `selectenv run`",
            "repair out/selectors/tuning.log": "trials that are intact stay",
        },
    )
    command.add_argument("path", type=Path, help="a results file, or the journal of a tuning run")
    command = add(
        "archive",
        _archive,
        "write results to a small file that another machine can take up, or take up such a file",
        {
            "archive out/networks.jsonl.xz --study minatar-networks": "write the training runs of networks",
            "archive docs/networks.jsonl.xz --read": "add the committed training runs to out/results.sqlite",
        },
    )
    command.add_argument("path", type=Path, help="the archive; results that it already holds stay in it")
    command.add_argument("--read", action="store_true", help="add the results of the archive to the results file")
    command.add_argument(
        "--study",
        action="append",
        help="only results of this study, or of the pool of cells minatar-networks (can be repeated; default: all)",
    )
    _add_results_option(command)


def _add_cell_options(command: argparse.ArgumentParser, study_help: str) -> None:
    """Add the arguments that choose cells of a study."""
    command.add_argument("study", help=study_help)
    command.add_argument("--seeds", type=int, help="number of seeds of random strategies (default: the study's own)")
    command.add_argument("--solver", default="exact", help="exact (default), or sampled: the published learner")
    command.add_argument(
        "--scale", help="MinAtar: only this scale, fast or paper (minatar-heuristics defaults to fast)"
    )
    _add_only_option(command)
    _add_results_option(command)


def _add_only_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only",
        metavar="WORLD[/STRATEGY]",
        help=f"only this world, or this strategy in it; {OWN_WORLD}, {OWN_STRATEGY}",
    )


def _add_results_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", type=Path, default=DEFAULT_PATH, help=f"results file (default: {DEFAULT_PATH})")


def _chosen(name: str) -> list[Study]:
    return list(find_studies().values()) if name == "all" else [find_study(name)]


def _cells(study: Study, options: argparse.Namespace) -> list[Cell]:
    """Return the cells that the options choose."""
    if check_name("solver", options.solver, ("exact", "sampled")) not in study.solvers:
        raise OptionError(f"{study.name} has no {options.solver} solver, only {', '.join(study.solvers)}")
    seeds = study.seeds if options.seeds is None else check_int("--seeds", options.seeds)
    cells = study.cells(seeds, options.solver)
    if options.only:
        # With "all", a strategy need not be part of every study.
        cells = chosen_cells(cells, options.only, must_have=options.study != "all")
    scales = study.scales if options.scale is None else (check_name("scale", options.scale, SCALES),)
    if scales is not None:
        cells = [cell for cell in cells if cell.settings.get("problem", {}).get("scale", "fast") in scales]
    return cells


def _list(options: argparse.Namespace) -> None:
    print(LISTINGS[check_name("list", options.what, LISTINGS)]())


def _run(options: argparse.Namespace) -> None:
    check_int("--jobs", options.jobs)
    with ResultsStore(options.results) as store:
        for study in _chosen(options.study):
            try:
                cells = _cells(study, options)
                if study.cpu_hours is not None:
                    left = store.missing(cells)
                    if options.study == "all":
                        hours = study.cpu_hours(left)
                        print(f"{study.name}: NOT RUN, it takes about {hours:.1f} CPU hours: run it by its name")
                        continue
                    print(
                        f"{study.name}: {len(left)} of {len(cells)} cells to run, about {study.cpu_hours(left):.1f} "
                        "CPU hours; stop it at any time and repeat the command to resume",
                        flush=True,
                    )
                done = run_cells(
                    cells,
                    study.run_cell,
                    store,
                    jobs=options.jobs,
                    cluster=options.cluster,
                    title=study.name,
                    watch=TensorBoardLog(options.tensorboard, study.problem_of).log if options.tensorboard else None,
                    cells_per_task=study.cells_per_task,
                )
            except (MissingExtraError, OptionError) as error:
                if options.study != "all":
                    raise
                print(f"{study.name}: NOT RUN: {error}", file=sys.stderr)
                continue
            print(f"{study.name}: {done} cells run, {len(cells) - done} already stored in {options.results}")


def _compare(options: argparse.Namespace) -> None:
    for study in _chosen(options.study):
        with ResultsStore(options.results) as store:
            results = store.results(_cells(study, options))
        if not results:
            raise OptionError(
                f"there are no results of {study.name} in {options.results}: run `selectenv run {options.study}`"
            )
        rows = study.rows(results)
        print(f"{study.name}: {study.question.strip()}\n")
        print(comparison_table(rows))
        if counts := verdict_counts(rows):
            print("\n" + counts)


def _report(options: argparse.Namespace) -> None:
    seeds = None if options.seeds is None else check_int("--seeds", options.seeds)
    with ResultsStore(options.results) as store, narration(1) as announce:
        announce("reading the results and writing the report")
        rows = report.build(
            store, options.out, seeds=seeds, csv_path=options.csv, only=options.only, study=options.study
        )
    if not rows:
        of = f" of {options.only}" if options.only else ""
        raise OptionError(f"there are no results{of} in {options.results}: run `selectenv run` first, see its --help")
    for games in (False, True):
        counted = {
            name: found for name, found in rows.items() if with_verdict(found) and bool(of_games(found)) == games
        }
        if counted:
            print(_count_table("study", counted) + "\n")
    if others := [name for name, of_study in rows.items() if not with_verdict(of_study)]:
        print(textwrap.fill(f"without published numbers: {', '.join(others)}", WIDTH, break_on_hyphens=False) + "\n")
    print(f"report: {options.out}")


def _repair(options: argparse.Namespace) -> None:
    print(repair(options.path))


def _archive(options: argparse.Namespace) -> None:
    with ResultsStore(options.results) as store:
        if options.read:
            if options.study:
                raise OptionError("--study chooses what is written; an archive is always read as a whole")
            print(f"{options.results}: {add_archive(store, options.path)} results added from {options.path}")
        else:
            print(f"{options.path}: {write_archive(store, options.path, options.study)} results")


def comparison_table(rows: list[Row]) -> str:
    """Return our results beside the published numbers, one line per row.

    A setting or metric that all rows share stands above the table, others beside the world, so that lines stay short.
    """
    variants = {name: {getattr(row, name) for row in rows} for name in ("setting", "metric")}
    shared = ", ".join(
        f"{name}: {value}" for name, found in variants.items() if len(found) == 1 for value in found if value
    )
    varying = ["world", *(name for name, found in variants.items() if len(found) > 1)]
    header = ("world", "labels", "strategy", "ours", "+-", "gap", "published", "+-", "verdict")
    lines = [(", ".join(filter(None, (getattr(row, name) for name in varying))), *_shown(row)) for row in rows]
    used = [i for i, name in enumerate(header) if i <= header.index("+-") or any(line[i] for line in lines)]
    found = table([header[i] for i in used], [[line[i] for i in used] for line in lines], WIDTH)
    return f"{shared}\n\n{found}" if shared else found


def _shown(row: Row) -> tuple[str, ...]:
    """Return the cells of one line after the world; values that do not exist are empty."""

    def value(number: float | None) -> str:
        return "" if number is None or np.isnan(number) else f"{number:.3f}"

    ours = (value(row.ours.mean), value(row.ours.stderr)) if row.ours else (row.note, "")
    verdict = "" if row.verdict is None else str(row.verdict)
    published = (value(row.published), value(row.published_error))
    return (str(row.labels), row.strategy, *ours, value(row.gap), *published, verdict)


def verdict_counts(rows: list[Row]) -> str:
    """Return how many published numbers agree with ours, one line per strategy; nothing without published numbers."""
    found = by_strategy(rows)
    return _count_table("strategy", found) if found else ""


TABULAR_OUTCOMES = (AGREES, DIFFERS, IMPOSSIBLE, CANNOT_BE_TOLD)
GAME_OUTCOMES = (AGREES, SAME_SHARE, DIFFERS, CANNOT_BE_TOLD, NOT_RUN)


def _count_table(title: str, groups: Mapping[str, list[Row]]) -> str:
    """Return the verdicts of groups of rows, with the agreement by the rule alone and that with strategies swapped."""
    games = any(of_games(rows) for rows in groups.values())
    outcomes = GAME_OUTCOMES if games else TABULAR_OUTCOMES
    lines = []
    for name, rows in groups.items():
        verdicts, found = count_verdicts(rows), agreement(with_verdict(rows))
        by_rule = (f"{found.agree} of {found.cells}", f"{found.swapped_agree} of {found.swapped_cells}")
        lines.append((name, *(verdicts[outcome] for outcome in outcomes), *by_rule[games:]))
    return table((title, *outcomes, *("agrees by the rule", "swapped")[games:]), lines)
