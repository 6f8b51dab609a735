"""The best label sets known for every world, learner and budget, proved optimal or within a distance of the optimum."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import agents
from agents.errors import SearchLimitError
from experiments.engine.problems import problem
from experiments.protocol.budgets import WORLDS, all_budgets
from selectenv.env import RewardSelectionEnv
from selectenv.io.atomic import whole_file
from selectenv.io.progress import progress

PATH = Path(__file__).parent / "best_known.json"
LEARNERS = ("uds", "adapted")
TOLERANCE = 1e-9
"""Returns that are closer than this are equal."""
SEARCHES: dict[str, dict[str, Any]] = {
    "exact": {"max_evaluations": 2_000_000, "seconds": 1e9},
    "brute-force": {"max_evaluations": 200_000_000},
    "swap-search": {"max_evaluations": 200_000},
    "beam": {"width": 64},
}


@cache
def best_known() -> dict[str, dict[str, Any]]:
    """Return the entries by "world/learner/labels"."""
    entries: dict[str, dict[str, Any]] = json.loads(PATH.read_text())
    return entries


def best_return(world: str, learner: str, labels: int) -> float:
    """Return the best return known, NaN where none is."""
    entry = best_known().get(f"{world}/{learner}/{labels}")
    return float(entry["return"]) if entry else float("nan")


def best_named(world: str, learner: str, labels: int) -> str:
    """Return a phrase that names the best return known and the search that found it."""
    entry = best_known().get(f"{world}/{learner}/{labels}")
    return f"best known {entry['return']:.3f} by {entry['found_by']}" if entry else "no best set known"


def find_best(world: str, learner: str, labels: int) -> dict[str, Any]:
    """Search again and return an entry; of several equally good searches the first is named.

    A set is proved by branch and bound or, where there are few enough sets, by enumeration.
    """
    entry: dict[str, Any] = {}
    for name in SEARCHES:
        try:
            memory = run_search(name, world, learner, labels)
        except SearchLimitError:  # too many sets to enumerate
            continue
        if name == "exact":
            entry["upper_bound"] = memory["notes"]["upper_bound"]
        elif name == "brute-force":
            entry["upper_bound"] = max(memory["performance"], entry["return"])
        if "return" not in entry or memory["performance"] > entry["return"] + TOLERANCE:
            entry |= {"return": memory["performance"], "ids": memory["ranking"][:labels], "found_by": name}
        if entry["upper_bound"] <= entry["return"] + TOLERANCE:
            break
    within = entry.pop("upper_bound") - entry["return"]
    certified = within <= TOLERANCE
    return entry | {
        "certified": certified,
        "distance_to_bound": 0.0 if certified else within,
        "command": f"selectenv best {world} --learner {learner} --labels {labels} --update",
    }


def run_search(name: str, world: str, learner: str, labels: int) -> dict[str, Any]:
    """Run one of ``SEARCHES`` and return what it found."""
    agent = agents.make(name, **SEARCHES[name])
    agent.train(RewardSelectionEnv(problem(world, {"learner": learner}), labels))
    assert isinstance(agent, agents.SearchAgent)
    return agent.memory


def update(worlds: tuple[str, ...] = WORLDS, learners: tuple[str, ...] = LEARNERS, labels: int | None = None) -> int:
    """Search again, keep what is better or newly proved, and write the file; return how many entries improved."""
    entries = json.loads(PATH.read_text()) if PATH.exists() else {}
    work = [(w, lr, b) for w in worlds for lr in learners for b in ([labels] if labels else all_budgets(w))]
    improved = 0
    for world, learner, budget in progress(work, len(work), "best known"):
        key = f"{world}/{learner}/{budget}"
        old, new = entries.get(key), find_best(world, learner, budget)
        if (
            old is None
            or new["return"] > old["return"] + TOLERANCE
            or new["distance_to_bound"] < old["distance_to_bound"] - TOLERANCE
        ):
            entries[key] = new
            improved += 1
            text = json.dumps({k: entries[k] for k in sorted(entries)}, indent=1)
            with whole_file(PATH) as file:
                file.write(f"{text}\n".encode())
    best_known.cache_clear()
    return improved
