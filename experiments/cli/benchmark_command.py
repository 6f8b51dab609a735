"""The command `benchmark`: score strategies on the suite."""

import argparse
from pathlib import Path
from typing import Any

import agents
from experiments.cli.commands import OWN_STRATEGY, AddCommand
from experiments.cli.tables import table
from selectenv.checks import check_int, check_name
from selectenv.errors import MissingExtraError, OptionError
from selectenv.references import is_reference

OUT = Path("out/benchmark")


def add_to(add: AddCommand) -> None:
    """Add the command to the command line."""
    command = add(
        "benchmark",
        _benchmark,
        "score strategies on a fixed suite of tabular and random worlds",
        {
            "benchmark guided": "score a strategy of this package",
            "benchmark my_module:MyStrategy --jobs 2": "score a strategy of your own in two processes",
            "benchmark --all --jobs 2": "reproduce the leaderboard",
            "benchmark guided --quick": "play a small part of the suite, to try it out",
        },
    )
    command.add_argument("strategies", nargs="*", metavar="STRATEGY", help=f"names of strategies; {OWN_STRATEGY}")
    command.add_argument("--all", action="store_true", help="all strategies of the leaderboard")
    command.add_argument("--games", action="store_true", help="also play MinAtar Breakout, with tables")
    command.add_argument("--control", action="store_true", help="also play three control worlds, with tables")
    command.add_argument("--quick", action="store_true", help="only two datasets or worlds of each place")
    command.add_argument("--jobs", type=int, default=1, help="number of local processes (default: 1)")
    command.add_argument("--cluster", metavar="ADDRESS", help="address of a Dask scheduler to run on instead")
    command.add_argument("--out", type=Path, default=OUT, help=f"directory of JSON files and figure (default: {OUT})")
    command.add_argument(
        "--results", type=Path, help="results file, which a repeated command resumes (default: results.sqlite in --out)"
    )


def _benchmark(options: argparse.Namespace) -> None:
    from experiments.benchmarks.suite.benchmark_run import run_suite
    from experiments.benchmarks.suite.benchmark_scores import cell_gaps
    from experiments.benchmarks.suite.leaderboard_page import draw
    from experiments.benchmarks.suite.result_files import committed, file_name, summary, write_result
    from experiments.benchmarks.suite.suite_tasks import ALWAYS, CONTROL, GAMES
    from experiments.engine.store import ResultsStore

    check_int("--jobs", options.jobs)
    names = list(dict.fromkeys([*options.strategies, *(committed() if options.all else ())]))
    if not names:
        raise OptionError("name at least one strategy, such as guided or my_module:MyStrategy, or give --all")
    for name in names:
        if not is_reference(name) and not name.endswith((".zip", ".json")):
            check_name("agent", name, agents.AGENTS)
    parts = (*ALWAYS, *((GAMES,) if options.games else ()), *((CONTROL,) if options.control else ()))
    summaries: dict[str, dict[str, Any]] = {}
    with ResultsStore(options.results or options.out / "results.sqlite") as store:
        for name in names:
            result = run_suite(name, parts, store, jobs=options.jobs, cluster=options.cluster, quick=options.quick)
            path = options.out / file_name(name)
            results = result.pop("results")
            result |= {"gaps": cell_gaps({"results": results}), "results": results}
            write_result(result, path)
            summaries[name] = summary(result)
            print(f"{name}: {path}")
    print("\n" + result_table(summaries))
    if not options.quick:
        print("\n" + left_out_note(parts))
    figure = options.out / "benchmark.png"
    known = {} if options.quick else {name: summary(result) for name, result in committed().items()}
    try:
        draw({**known, **summaries}, figure)
    except MissingExtraError as error:
        print(f"No figure was drawn: {error}")
        return
    print(f"figure: {figure}")


def result_table(summaries: dict[str, dict[str, Any]]) -> str:
    """Return the scores of strategies as two tables: gaps by group of cells, and comparisons and cost."""
    from experiments.benchmarks.suite.benchmark_scores import BASELINES
    from experiments.benchmarks.suite.leaderboard_page import ranked

    order = ranked(summaries)
    groups = list(next(iter(summaries.values()))["gaps"])
    gaps = table(
        ("rank", "strategy", *(f"gap, {group}" for group in groups)),
        [(f"{rank}", name, *(str(summaries[name]["gaps"][group]) for group in groups)) for rank, name in order],
    )
    rows = []
    for _, name in order:
        one = summaries[name]
        better = (str(one["improvement"].get(base, "")) for base in BASELINES)
        rows.append((name, *better, f"{one['calls']:,.0f}", f"{1000 * one['seconds']:.2f}"))
    header = ("strategy", *(f"P(better than {base})" for base in BASELINES), "calls per episode", "ms per label")
    note = "0 is the best return known, 1 that of random label sets; [95 % interval]; = marks a tie of intervals"
    return f"{note}\n\n{gaps}\n\n{table(header, rows)}"


def left_out_note(parts: tuple[str, ...]) -> str:
    """Return which cells are not scored."""
    from experiments.benchmarks.suite.benchmark_scores import left_out
    from experiments.benchmarks.suite.suite_tasks import places_of

    lines = [f"  {place.name}: {'; '.join(cells)}" for place in places_of(parts) if (cells := left_out(place))]
    return "\n".join(["left out, because uniform is within 1 % of the best:", *lines])
