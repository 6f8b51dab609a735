"""The published tables, one typed reader per layout. Every reader returns rows in the order of the printed table."""

import csv
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple


class PublishedMean(NamedTuple):
    """A published mean and its standard error."""

    mean: float
    stderr: float | None
    """None where the table prints no error."""


@dataclass(frozen=True)
class HeuristicRow:
    """One cell of a table of training-free strategies: mean and standard error over 100 seeds."""

    world: str
    feedback: float
    strategy: str
    score: PublishedMean
    gap: float
    """Distance to brute-force as printed; FrozenLake's gaps under UDS are printed with the wrong sign."""


@dataclass(frozen=True)
class SearchRow:
    """One cell of a table of searches: the score on the training data, and on the five test datasets."""

    world: str
    feedback: float
    strategy: str
    train: PublishedMean
    """Printed without an error."""
    test: PublishedMean | None
    """None where the table prints no test score, as for guided."""


@dataclass(frozen=True)
class InitialSampleRow:
    """One cell of a table of selections that begin with a random share of the labels."""

    initial_ratio: float
    feedback: float
    strategy: str
    score: PublishedMean


@dataclass(frozen=True)
class GameRow:
    """One cell of the table of MinAtar games."""

    world: str
    feedback: float | None
    """None for strategies that label as many states as they need."""
    strategy: str
    score: PublishedMean


@dataclass(frozen=True)
class BehaviourRow:
    """One cell of a table of Breakout datasets of several mixtures, labelled by the guided strategy."""

    expert_ratio: float
    """As printed. The metrics fit when it is read as the share of random actions."""
    feedback: float
    score: PublishedMean


@dataclass(frozen=True)
class RewardSumRow:
    """One cell of the table of the rewards inside selected sets of Breakout's states."""

    feedback: float
    strategy: str
    total: PublishedMean


def heuristics(learner: str) -> list[HeuristicRow]:
    """Return the table of training-free strategies under a learner, "uds" or "adapted"."""
    return [
        HeuristicRow(_world(row), float(row["feedback"]), row["strategy"], _mean(row), float(row["gap"]))
        for row in _records(f"heuristics_{learner}")
    ]


def searches(table: str) -> list[SearchRow]:
    """Return a table of searches.

    Args:
        table: "trained_uds", "trained_adapted", "es_iterations_ablation" or "es_population_ablation".
    """
    return [
        SearchRow(
            _world(row),
            float(row["feedback"]),
            row["strategy"],
            PublishedMean(float(row["train_mean"]), None),
            PublishedMean(float(row["test_mean"]), float(row["test_stderr"])) if row["test_mean"] else None,
        )
        for row in _records(table)
    ]


def initial_samples(world: str) -> list[InitialSampleRow]:
    """Return the table of initial random labels in "Graph" or "TwoRooms"."""
    return [
        InitialSampleRow(float(row["initial_ratio"]), float(row["feedback"]), row["strategy"], _mean(row))
        for row in _records(f"initial_sample_{world.lower()}")
    ]


def games() -> list[GameRow]:
    """Return the table of the MinAtar games under UDS."""
    return [
        GameRow(_world(row), float(row["feedback"]) if row["feedback"] else None, row["strategy"], _mean(row))
        for row in _records("minatar_uds")
    ]


def behaviour(learner: str) -> list[BehaviourRow]:
    """Return the table of Breakout's mixtures under a learner, "uds" or "adapted"."""
    return [
        BehaviourRow(float(row["expert_ratio"]), float(row["feedback"]), _mean(row))
        for row in _records(f"breakout_behaviour_{learner}")
    ]


def reward_sums() -> list[RewardSumRow]:
    """Return the table of the rewards inside sets that visitation and uniform select in Breakout."""
    return [
        RewardSumRow(float(row["feedback"]), row["strategy"], _mean(row)) for row in _records("breakout_reward_sums")
    ]


def unique_states() -> dict[float, int]:
    """Return the numbers of unique states of Breakout's datasets by the printed expert ratio."""
    return {float(row["expert_ratio"]): int(row["unique_states"]) for row in _records("breakout_unique_states")}


def _records(table: str) -> list[dict[str, str]]:
    text = resources.files("experiments.protocol").joinpath("published_tables", f"{table}.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def _world(row: dict[str, str]) -> str:
    """Return the name of a world as it is spelled here: the tables print "TwoRooms-Trap"."""
    return row["domain"].replace("-", "")


def _mean(row: dict[str, str]) -> PublishedMean:
    return PublishedMean(float(row["mean"]), float(row["stderr"]) if row["stderr"] else None)
