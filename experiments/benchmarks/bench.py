"""The benchmark: label sets, steps, searches, large worlds, games, control worlds, networks, selectors, logs, studies.

All numbers come from one run, so that their ratios hold however busy the machine is.
"""

import argparse
import importlib
import sys
from collections.abc import Callable

from experiments.cli.commands import AddCommand
from selectenv.errors import MissingExtraError


def add_to(add: AddCommand) -> None:
    """Add the command to the command line."""
    command = add(
        "bench",
        run,
        "measure the speed of every part on this machine",
        {
            "bench --quick": "label sets per second and the time of one step, within minutes",
            "bench --networks": "only the training of networks",
        },
    )
    command.add_argument(
        "--quick", action="store_true", help="leave out searches, large worlds, games, networks and studies"
    )
    for name, meaning in PARTS.items():
        command.add_argument(f"--{name}", action="store_true", help=f"only {meaning}")
    command.add_argument("--all-studies", action="store_true", help="time all short studies too (about 40 minutes)")


def run(options: argparse.Namespace) -> None:
    """Run the chosen benchmarks, or all of them."""
    chosen = [name for name in PARTS if getattr(options, name.replace("-", "_"))]
    for name in chosen:
        _part(name)()
    if chosen:
        return
    from experiments.benchmarks.bench_label_sets import bench_label_sets, bench_reference
    from experiments.benchmarks.bench_steps import bench_parts, bench_steps
    from experiments.benchmarks.bench_vector import bench_vector

    speeds = bench_label_sets()
    bench_vector(speeds)
    bench_reference(speeds)
    bench_steps()
    bench_parts()
    if options.quick:
        return
    from experiments.benchmarks.bench_searches import bench_searches
    from experiments.benchmarks.bench_studies import bench_studies

    bench_searches()
    for name in PARTS:
        try:
            _part(name)()
        except MissingExtraError as error:
            print(f"\nNOT timed, {name}: {error}")
    bench_studies(options.all_studies)


PARTS = {
    "scaling": "worlds of up to 100,000 states",
    "minatar": "the MinAtar worlds",
    "control": "the control worlds",
    "networks": "the training of networks",
    "selectors": "learned selectors and their training",
    "logs": "the loading of logs of ten million rows",
    "cold-start": "the first use on a machine without compiled kernels",
}
"""Benchmarks that can be run alone, and what they time."""


def _part(name: str) -> Callable[[], None]:
    """Return a benchmark by name; its module is imported here because PyTorch takes seconds to import."""
    function = f"bench_{name.replace('-', '_')}"
    module = "cold_start" if name == "cold-start" else function
    found: Callable[[], None] = getattr(importlib.import_module(f"experiments.benchmarks.{module}"), function)
    return found


if __name__ == "__main__":
    from experiments.cli.main import main

    sys.exit(main(["bench", *sys.argv[1:]]))
