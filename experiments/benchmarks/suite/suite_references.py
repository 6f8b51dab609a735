"""What the returns of a strategy are measured against: the best label set known, and label sets drawn at random.

``python -m experiments.benchmarks.suite.suite_references PART ...`` computes the references of parts of the suite and
writes them to `PATH`; it resumes where it stopped.
"""

import contextlib
import hashlib
import io
import json
import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import agents
from experiments.benchmarks.suite.suite_tasks import (
    ALWAYS,
    GAMES,
    PARTS,
    PLACES,
    RULES,
    VERSION,
    Place,
    places_of,
    task_of,
)
from experiments.errors import BenchmarkError
from selectenv.env import RewardSelectionEnv
from selectenv.io.atomic import whole_file
from selectenv.io.progress import progress_bar
from selectenv.problem import SelectionProblem
from selectenv.streams import generator
from selectenv.typing import FloatArray

PATH = Path(__file__).with_name("references_v1.json")
ENUMERATED = 100_000
"""Tabular and random worlds with at most this many label sets are searched completely."""
DIGITS = 9
"""Significant digits of stored returns."""


def rounded(value: float) -> float:
    """Return a number as it is stored."""
    return float(f"{value:.{DIGITS}g}")


def references_of(place: Place, unit: int, rule: str) -> dict[str, Any]:
    """Return the best known return and the mean return of random label sets for every budget of a unit."""
    task = task_of(place, unit, rule)
    found: dict[str, Any] = {"data": task.dataset.fingerprint[:16], "best": [], "uniform": []}
    for labels in place.labels(task).values():
        sets = _random_sets(task, labels, place.uniform_sets, unit)
        returns = task.with_calls().performance_many(sets)
        found["uniform"].append(rounded(float(returns.mean())))
        found["best"].append(rounded(max(_searched(place, task, labels, unit), float(returns.max()))))
    return found


def _searched(place: Place, task: SelectionProblem, labels: int, unit: int) -> float:
    """Return the best return that the search of the place finds; the best of all where there are few label sets."""
    env, limit = RewardSelectionEnv(task.with_calls(), labels), ENUMERATED if place.part in ALWAYS else 0
    few = math.comb(int(task.dataset.labelable.sum()), labels) <= limit
    agent = agents.make("brute-force" if few else place.search, max_evaluations=limit if few else place.max_evaluations)
    with contextlib.redirect_stderr(io.StringIO()):  # messages of the search would break the progress bar
        agent.train(env, unit)
    found = agents.play(env, agent, unit).performance
    assert found is not None
    return found


def _random_sets(task: SelectionProblem, labels: int, count: int, unit: int) -> Any:
    rng, states = generator(unit, "benchmark", VERSION, "uniform sets", labels), np.flatnonzero(task.dataset.labelable)
    masks = np.zeros((count, task.n_states), bool)
    for mask in masks:
        mask[rng.choice(states, labels, replace=False)] = True
    return masks


def compute(parts: tuple[str, ...]) -> None:
    """Compute the missing references of parts of the suite, and write them after every place."""
    found = json.loads(PATH.read_text()) if PATH.exists() else {}
    todo = [place for place in places_of(parts) if place.name not in found]
    for place in todo:
        with progress_bar(place.units * len(RULES), place.name) as bar:
            rows: dict[str, Any] = {}
            for rule in RULES:
                units = []
                for unit in range(place.units):
                    units.append(references_of(place, unit, rule))
                    bar.update()
                rows[rule] = {
                    "data": [one["data"] for one in units],
                    **{
                        name: {budget: [one[name][i] for one in units] for i, budget in enumerate(place.budgets)}
                        for name in ("best", "uniform")
                    },
                }
        found[place.name] = rows
        ordered = {name: found[name] for name in PLACES if name in found}
        with whole_file(PATH) as file:
            file.write(text_of(ordered).encode())


def text_of(references: dict[str, Any]) -> str:
    """Return references as text: one line per place and rule."""
    places = (
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(rule)}: {json.dumps(row)}" for rule, row in rules.items())
        + "\n}"
        for name, rules in references.items()
    )
    return "{\n" + ",\n".join(places) + "\n}\n"


@cache
def references() -> dict[str, Any]:
    """Return the committed references: place -> rule -> "data", "best" and "uniform"."""
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def suite_hash(parts: tuple[str, ...]) -> str:
    """Return a hash of parts of the suite: their definition, data and references."""
    content = [
        [VERSION, place.name, place.units, place.budgets, references().get(place.name)] for place in places_of(parts)
    ]
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()


def check_data(place: Place, unit: int, rule: str, task: SelectionProblem) -> None:
    """Raise unless the data of a unit are those that the references were computed for.

    Raises:
        BenchmarkError: they are not, so that no score would be comparable.
    """
    if task.dataset.fingerprint[:16] != references()[place.name][rule]["data"][unit]:
        raise BenchmarkError(
            f"the data of {place.name} (unit {unit}) are not those of suite {VERSION}: this version of selectenv, or "
            "of a package that it uses, makes other data; install the versions that the suite was made with"
        )


def bounds(place: Place, rule: str, budget: str) -> tuple[FloatArray, FloatArray]:
    """Return the best known returns [units] and the mean returns [units] of random label sets."""
    row = references()[place.name][rule]
    return np.array(row["best"][budget]), np.array(row["uniform"][budget])


if __name__ == "__main__":
    compute(tuple(sys.argv[1:]) or tuple(part for part in PARTS if part != GAMES))
