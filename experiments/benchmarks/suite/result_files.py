"""Result files of the benchmark: reading, checking and writing; those of shipped strategies are part of the package."""

import json
from pathlib import Path
from typing import Any

from experiments.benchmarks.suite.benchmark_run import FORMAT
from experiments.benchmarks.suite.benchmark_scores import (
    BASELINES,
    Stratum,
    always,
    cost_of,
    groups_of,
    improvement,
    strata,
)
from experiments.benchmarks.suite.suite_references import suite_hash
from experiments.benchmarks.suite.suite_tasks import VERSION
from experiments.errors import BenchmarkError
from selectenv.io.atomic import whole_file

FOLDER = Path(__file__).with_name("leaderboard")


def file_name(strategy: str) -> str:
    """Return the name of the result file of a strategy: "my_module:MyStrategy" -> "my_module.MyStrategy.json"."""
    return f"{strategy.replace(':', '.').replace('/', '.')}.json"


def write_result(result: dict[str, Any], path: Path) -> None:
    """Write a result file: one line per place and rule."""
    *head, (last, places) = result.items()
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head]
    rows = ",\n".join(
        f" {json.dumps(place)}: {{\n"
        + ",\n".join(f"  {json.dumps(rule)}: {json.dumps(row)}" for rule, row in rules.items())
        + "\n }"
        for place, rules in places.items()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(("{\n" + ",\n".join([*lines, f"{json.dumps(last)}: {{\n{rows}\n}}"]) + "\n}\n").encode())


def read_result(path: Path) -> dict[str, Any]:
    """Read a result file.

    Raises:
        BenchmarkError: it is missing, damaged, or of another suite.
    """
    try:
        result: dict[str, Any] = json.loads(path.read_text("utf-8"))
        hashes, is_ours = result["suite_hash"], result["format"] == FORMAT
        complete = is_ours and isinstance(result["results"], dict)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{path} is not a result file of the benchmark ({error})") from None
    if (
        not complete
        or result["suite"] != VERSION
        or any(value != suite_hash((part,)) for part, value in hashes.items())
    ):
        raise BenchmarkError(f"{path} holds results of another suite than {VERSION} of this version of selectenv")
    return result


def committed() -> dict[str, dict[str, Any]]:
    """Return the committed results by strategy."""
    return {result["strategy"]: result for result in map(read_result, sorted(FOLDER.glob("*.json")))}


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """Return scores, probabilities of improvement and cost of a result file, by name."""
    found = strata(result)
    core = always(found)
    calls, seconds = cost_of(result)
    known = committed()
    better = {
        name: improvement(core, alike)
        for name in BASELINES
        if name in known and (alike := _same_cells(core, known[name])) is not None
    }
    return {"gaps": groups_of(found), "improvement": better, "calls": calls, "seconds": seconds}


def _same_cells(found: list[Stratum], baseline: dict[str, Any]) -> list[Stratum] | None:
    """Return the results of a baseline in the same places and units; None if it lacks a place."""
    places = [one.place.name for one in found]
    if not set(places) <= set(baseline["results"]):
        return None
    theirs = {one.place.name: one for one in strata(baseline)}
    cut = []
    for mine in found:
        one, units = theirs[mine.place.name], mine.returns.shape[1]
        cut.append(Stratum(one.place, one.rules, one.returns[:, :units], one.gaps[:, :units]))
    return cut
