"""Playing a strategy on the suite, in this process, in local processes or on a cluster; finished cells are stored."""

import atexit
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import agents
import selectenv
from experiments.benchmarks.suite.remote_agent import RemoteAgent, StrategyProcess
from experiments.benchmarks.suite.suite_references import check_data, rounded, suite_hash
from experiments.benchmarks.suite.suite_tasks import PLACES, RULES, VERSION, Place, places_of, task_of
from experiments.engine.cell import Cell, Record
from experiments.engine.runner import run_cells
from experiments.engine.store import ResultsStore
from experiments.errors import BenchmarkError
from selectenv.env import RewardSelectionEnv

STUDY = f"benchmark-{VERSION}"
CELLS_PER_TASK = 8
QUICK_UNITS = 2
"""Units of each place of a quick run."""
FORMAT = "selectenv-benchmark"
_processes: dict[str, StrategyProcess] = {}
"""The process of the strategy that this process scores; at most one."""


def describe(strategy: str) -> dict[str, Any]:
    """Return the taxonomy of a strategy and a hash of its source, as its own process reports them.

    Raises:
        StrategyFailedError: the strategy cannot be made.
    """
    said = process_of(strategy).hello
    return {name: said[name] for name in ("taxonomy", "code")}


def process_of(strategy: str) -> StrategyProcess:
    """Return the process of a strategy; that of another one is ended."""
    if strategy not in _processes:
        end_processes()
        _processes[strategy] = StrategyProcess(strategy)
    return _processes[strategy]


def end_processes() -> None:
    """End the processes of strategies."""
    while _processes:
        _processes.popitem()[1].close()


atexit.register(end_processes)


def suite_cells(strategy: str, parts: tuple[str, ...], code: str, units: int | None = None) -> list[Cell]:
    """Return one cell per unit and rule.

    Args:
        strategy: name of the strategy.
        parts: parts of the suite.
        code: hash of the source of the strategy, so that another version of it is run again.
        units: units of each place; all by default.
    """
    return [
        Cell(STUDY, place.name, strategy, unit, {"rule": rule, "code": code, "suite": suite_hash((place.part,))})
        for place in places_of(parts)
        for unit in range(place.units if units is None else min(units, place.units))
        for rule in RULES
    ]


def run_cell(cell: Cell) -> list[Record]:
    """Play one episode per budget.

    Raises:
        StrategyFailedError: the strategy raised an exception.
        BenchmarkError: the strategy did what it must not do, or the data are not those of the suite.
    """
    place, rule = PLACES[cell.world], cell.settings["rule"]
    task = task_of(place, cell.seed, rule)
    check_data(place, cell.seed, rule, task)
    try:
        process = process_of(cell.strategy)
        return [_episode(process, place, task, name, labels, cell.seed) for name, labels in place.labels(task).items()]
    except BaseException:
        end_processes()  # what is left in its channel belongs to the episode that failed
        raise


def _episode(process: StrategyProcess, place: Place, task: Any, budget: str, labels: int, seed: int) -> Record:
    options = {} if place.refit_share is None else {"labels_per_refit": place.refit_share}
    env, agent = RewardSelectionEnv(task.with_calls(), labels, **options), RemoteAgent(process)
    agent.train(env, seed)
    episode = agents.play(env, agent, seed)
    agent.end()
    assert episode.performance is not None
    return {
        "budget": budget,
        "labels": labels,
        "return": episode.performance,
        "cost": episode.cost,
        "seconds": agent.seconds,
    }


def run_suite(
    strategy: str,
    parts: tuple[str, ...],
    store: ResultsStore,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    quick: bool = False,
) -> dict[str, Any]:
    """Play a strategy on parts of the suite, and return what the result file holds.

    Args:
        strategy: a registered name, or "module:Class".
        parts: parts of the suite.
        store: keeps the results of finished cells.
        jobs: local processes.
        cluster: address of a Dask scheduler to run on instead.
        quick: play only the first units of each place; such results are not comparable with others.
    """
    described = describe(strategy)
    end_processes()
    cells = suite_cells(strategy, parts, described["code"], QUICK_UNITS if quick else None)
    run_cells(
        cells, run_cell, store, jobs=jobs, cluster=cluster, title=f"benchmark {strategy}", cells_per_task=CELLS_PER_TASK
    )
    end_processes()
    results = store.results(cells)
    if len(results) < len(cells):
        raise BenchmarkError(f"{len(cells) - len(results)} of {len(cells)} cells have no result: repeat the command")
    return {
        "format": FORMAT,
        "suite": VERSION,
        "suite_hash": {part: suite_hash((part,)) for part in parts},
        "version": selectenv.__version__,
        "strategy": strategy,
        **described,
        "quick": quick,
        "seeds": "dataset, world and episode seeds are the numbers of the units, 0, 1, 2, ... in every place",
        "results": collected((result.cell, result.records) for result in results),
    }


def collected(results: Iterable[tuple[Cell, list[Record]]]) -> dict[str, Any]:
    """Return results as place -> rule -> returns [units] and mean cost by budget, and seconds and labels in total."""
    found: dict[str, Any] = defaultdict(dict)
    for cell, records in sorted(results, key=lambda pair: pair[0].seed):
        row = found[cell.world].setdefault(
            cell.settings["rule"],
            {"returns": defaultdict(list), "cost": defaultdict(list), "seconds": 0.0, "labels": 0},
        )
        for one in records:
            row["returns"][one["budget"]].append(rounded(one["return"]))
            row["cost"][one["budget"]].append(one["cost"])
            row["seconds"] += one["seconds"]
            row["labels"] += one["labels"]
    for rules in found.values():
        for row in rules.values():
            row["cost"] = {budget: rounded(sum(costs) / len(costs)) for budget, costs in row["cost"].items()}
            row["returns"], row["seconds"] = dict(row["returns"]), round(row["seconds"], 4)
    return {place: found[place] for place in PLACES if place in found}
