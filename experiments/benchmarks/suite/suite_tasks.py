"""Suite v1: which worlds, data, rules and budgets a strategy is scored on.

A *place* is a world, or a class of random worlds. A *unit* of a place is one dataset of the world, or one random world
with its dataset. Every unit is played under both rules and with every budget of its place.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from experiments.engine.problems import problem
from experiments.protocol.budgets import BUDGETS, percent
from selectenv.checks import check_name
from selectenv.domains.tabular.random_worlds import KINDS
from selectenv.learners import make_learner
from selectenv.problem import SelectionProblem
from selectenv.random_problems import RandomProblems
from selectenv.streams import generator

VERSION = "v1"
RULES = ("uds", "adapted")
TABULAR, RANDOM, GAMES, CONTROL = "tabular", "random", "games", "control"
PARTS = (TABULAR, RANDOM, GAMES, CONTROL)
ALWAYS = (TABULAR, RANDOM)
"""Parts that every strategy is scored on; the others are asked for."""
DATASETS = 20
RANDOM_WORLDS = 100
SIZES = ((8, 20), (21, 50), (51, 100))
"""Smallest and largest number of states of the three classes of random worlds."""
RANDOM_SHARES = (0.1, 0.3, 0.5)
"""Budgets of random worlds, as shares of the states that can be labelled."""


@dataclass(frozen=True)
class Place:
    """A world with several datasets, or a class of random worlds."""

    name: str
    part: str
    units: int
    shares: tuple[float, ...] = ()
    """Budgets as shares of the states that can be labelled; the published numbers of labels if there are none."""
    sizes: tuple[int, int] = (0, 0)
    """Random worlds: smallest and largest number of states."""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    """Options of the problem."""
    refit_share: float | None = None
    """Share of the states that is labelled between two refits; one label if None."""
    search: str = "swap-search"
    """Strategy that searches for the best known label set."""
    max_evaluations: int = 20_000
    """Evaluations of that search."""
    uniform_sets: int = 200
    """Random label sets whose mean return stands for `uniform`."""

    @property
    def budgets(self) -> tuple[str, ...]:
        """The names of the budgets: "3" for three labels, "10 %" for a share."""
        return tuple(percent(share) for share in self.shares) or tuple(map(str, BUDGETS[self.name]))

    def labels(self, task: SelectionProblem) -> dict[str, int]:
        """Return the number of labels of each budget, by its name."""
        most = int(task.dataset.labelable.sum())
        if self.shares:
            return {percent(share): max(1, round(share * most)) for share in self.shares}
        return {str(budget): min(budget, most) for budget in BUDGETS[self.name]}


def _random_places() -> list[Place]:
    counts = [len(range(first, RANDOM_WORLDS, len(SIZES))) for first in range(len(SIZES))]
    return [
        Place(f"random, {small} to {large} states", RANDOM, count, RANDOM_SHARES, (small, large))
        for (small, large), count in zip(SIZES, counts, strict=True)
    ]


NETWORK_WORLDS: dict[str, Any] = {
    "shares": (0.1, 0.3),
    "units": 2,
    "search": "best-of",
    "max_evaluations": 20,
    "uniform_sets": 20,
}
PLACES: dict[str, Place] = {
    place.name: place
    for place in (
        *(Place(world, TABULAR, DATASETS) for world in BUDGETS),
        *_random_places(),
        Place("Breakout", GAMES, options={"dataset_size": 100_000}, refit_share=0.02, **NETWORK_WORLDS),
        *(
            Place(world, CONTROL, options={"dataset_size": 20_000, "groups": 100}, **NETWORK_WORLDS)
            for world in ("CartPole", "Acrobot", "MountainCar")
        ),
    )
}


def places_of(parts: tuple[str, ...]) -> list[Place]:
    """Return the places of parts of the suite."""
    for part in parts:
        check_name("part of the suite", part, PARTS)
    return [place for place in PLACES.values() if place.part in parts]


def task_of(place: Place, unit: int, rule: str) -> SelectionProblem:
    """Return the problem of a unit; nothing is read from or written to the dataset cache."""
    if place.part == RANDOM:
        return _random_problem(place, unit, rule)
    seed = int(generator(unit, "benchmark", VERSION, place.name).integers(2**62))
    return problem(place.name, {**place.options, "dataset_seed": seed, "learner": rule})


def _random_problem(place: Place, unit: int, rule: str) -> SelectionProblem:
    drawn = _drawn(place, unit)
    if rule == drawn.learner.rule:
        return drawn.with_calls()
    return SelectionProblem(
        drawn.dataset, make_learner(rule), drawn.evaluator, drawn.layout, budget_states=drawn.budget_states
    ).with_calls()


@lru_cache(maxsize=4)
def _drawn(place: Place, unit: int) -> SelectionProblem:
    """Return a random world in which labels matter under UDS; both rules are played in the same one."""
    smallest, largest = place.sizes
    kind = list(KINDS)[unit % len(KINDS)]
    draw = RandomProblems(padding=largest, smallest=smallest, largest=largest, kinds=(kind,), learner=RULES[0])
    return draw(generator(unit, "benchmark", VERSION, place.name))
