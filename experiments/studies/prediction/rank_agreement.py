"""How well scores in worlds of tables agree with rankings where networks learn: Kendall's tau with bootstrap intervals.

Datasets and random worlds of the suite are drawn with replacement within each place, and seeds within each network
cell; strategies share the draws, because they share the data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from experiments.benchmarks.suite.benchmark_scores import interquartile_mean, strata
from experiments.benchmarks.suite.suite_tasks import ALWAYS, PLACES, RULES
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray, IntArray

RESAMPLES = 1000
SHUFFLES = 100
FEWEST = 3
"""Fewest strategies of a group: two can only agree or disagree."""


class TableCell(NamedTuple):
    """A cell of the suite: a place, a rule and a budget."""

    place: str
    rule: str
    budget: str


@dataclass(frozen=True, eq=False)
class Tables:
    """The normalised gaps of strategies on the suite."""

    strategies: tuple[str, ...]
    cells: tuple[TableCell, ...]
    gaps: tuple[FloatArray, ...]
    """One array [strategies, units] per cell; NaN where the suite leaves a unit out."""

    def scores(self, chosen: BoolArray, draws: dict[str, IntArray] | None = None) -> FloatArray:
        """Return the interquartile mean of the gaps [strategies] over the chosen cells [cells].

        Args:
            chosen: the cells that count.
            draws: place -> [units] the units that are drawn; each unit once by default.
        """
        kept = [self._drawn(i, draws) for i in np.flatnonzero(chosen).tolist()]
        gaps = np.concatenate(kept, axis=1)
        return np.array([interquartile_mean(row) for row in gaps])

    def cell_scores(self, draws: dict[str, IntArray] | None = None) -> FloatArray:
        """Return the mean gaps [cells, strategies] of every cell; NaN if the draw has no unit that counts."""
        found = np.full((len(self.cells), len(self.strategies)), np.nan)
        for i in range(len(self.cells)):
            gaps = self._drawn(i, draws)
            if not np.isnan(gaps).all():
                found[i] = np.nanmean(gaps, axis=1)
        return found

    def _drawn(self, cell: int, draws: dict[str, IntArray] | None) -> FloatArray:
        return self.gaps[cell] if draws is None else self.gaps[cell][:, draws[self.cells[cell].place]]

    def draw(self, rng: np.random.Generator) -> dict[str, IntArray]:
        """Return units drawn with replacement, place by place."""
        units = {cell.place: gaps.shape[1] for cell, gaps in zip(self.cells, self.gaps, strict=True)}
        return {place: rng.integers(count, size=count) for place, count in units.items()}

    def of(self, strategies: Sequence[str]) -> "Tables":
        """Return the same cells with some of the strategies."""
        rows = [self.strategies.index(name) for name in strategies]
        return Tables(tuple(strategies), self.cells, tuple(gaps[rows] for gaps in self.gaps))

    @cached_property
    def parts(self) -> dict[str, BoolArray]:
        """The scores of the leaderboard -> the cells [cells] that make them up."""
        part = np.array([PLACES[cell.place].part for cell in self.cells])
        rule = np.array([cell.rule for cell in self.cells])
        by_part, by_rule = {name: part == name for name in ALWAYS}, {name: rule == name for name in RULES}
        return {"all": np.ones(len(self.cells), bool), **by_part, **by_rule}


@dataclass(frozen=True, eq=False)
class NetworkGroup:
    """What strategies earn where one type of network learns."""

    name: str
    strategies: tuple[str, ...]
    cells: tuple[FloatArray, ...]
    """One array [strategies, seeds] of returns per world and budget."""

    def ranks(self, rng: np.random.Generator | None = None) -> FloatArray:
        """Return the mean rank of each strategy [strategies] over the cells, 1 for the highest return.

        Args:
            rng: draws seeds with replacement; each seed counts once if None.
        """
        found = []
        for returns in self.cells:
            seeds = returns.shape[1]
            drawn = returns if rng is None else returns[:, rng.integers(seeds, size=seeds)]
            found.append(stats.rankdata(-drawn.mean(axis=1)))
        return np.asarray(np.mean(found, axis=0))


class Agreement(NamedTuple):
    """Kendall's tau with its 95 % interval, and its range with one strategy left out."""

    tau: float
    low: float
    high: float
    least: float
    most: float


def tau(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Kendall's tau of scores [..., strategies] and [..., strategies]: pairs in the same order minus opposite.

    Ties, and scores that are NaN, count 0.
    """
    return np.asarray((_orders(first) * _orders(second)).mean(axis=-1))


def _orders(scores: FloatArray) -> FloatArray:
    """Return the order of every pair of strategies [..., pairs]: -1, 0 or 1."""
    left, right = np.array(list(combinations(range(scores.shape[-1]), 2))).T
    return np.nan_to_num(np.sign(scores[..., left] - scores[..., right]))


def read_tables(results: dict[str, dict[str, Any]], strategies: Iterable[str]) -> Tables:
    """Return the gaps of those strategies that have a result file of the benchmark.

    Args:
        results: the result files by strategy.
        strategies: the strategies to read, in this order.
    """
    names = tuple(name for name in strategies if name in results)
    found: dict[TableCell, list[FloatArray]] = {}
    for name in names:
        for one in strata(results[name]):
            if one.place.part not in ALWAYS:
                continue
            rows = [(rule, budget) for rule in dict.fromkeys(one.rules) for budget in one.place.budgets]
            for (rule, budget), gaps in zip(rows, one.gaps, strict=True):
                if not np.isnan(gaps).all():
                    found.setdefault(TableCell(one.place.name, rule, budget), []).append(gaps)
    return Tables(names, tuple(found), tuple(np.stack(gaps) for gaps in found.values()))


def group_of(name: str, returns: dict[Any, dict[str, dict[int, float]]], strategies: Iterable[str]) -> NetworkGroup:
    """Return a group from cell -> strategy -> seed -> return.

    Only what is complete counts: of the strategies that occur at all, the cells that all of them have, and the seeds
    that all of them have there.
    """
    names = tuple(one for one in strategies if any(one in cell for cell in returns.values()))
    cells = []
    for cell in returns.values():
        if all(one in cell for one in names):
            seeds = sorted(set.intersection(*(set(cell[one]) for one in names)))
            if seeds:
                cells.append(np.array([[cell[one][seed] for seed in seeds] for one in names]))
    return NetworkGroup(name, names, tuple(cells))


def agreement(tables: Tables, group: NetworkGroup, chosen: BoolArray, resamples: int = RESAMPLES) -> Agreement:
    """Return the agreement of a score of the suite with the ranking of a group.

    Args:
        tables: the gaps of at least `FEWEST` strategies of the group.
        group: the group.
        chosen: the cells [cells] of the score.
        resamples: number of bootstrap resamples.
    """
    shared = shared_strategies(tables, group)
    mine, theirs = tables.of(shared), _of(group, shared)
    rng = generator(0, "prediction", group.name, "bootstrap")
    drawn = [tau(mine.scores(chosen, mine.draw(rng)), theirs.ranks(rng)) for _ in range(resamples)]
    scores, ranks, keep = mine.scores(chosen), theirs.ranks(), np.arange(len(shared))
    without = [float(tau(scores[keep != i], ranks[keep != i])) for i in keep]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Agreement(float(tau(scores, ranks)), float(low), float(high), min(without), max(without))


def shared_strategies(tables: Tables, group: NetworkGroup) -> list[str]:
    """Return the strategies that a group and the suite have in common."""
    return [name for name in group.strategies if name in tables.strategies]


def _of(group: NetworkGroup, strategies: Sequence[str]) -> NetworkGroup:
    rows = [group.strategies.index(name) for name in strategies]
    return NetworkGroup(group.name, tuple(strategies), tuple(cell[rows] for cell in group.cells))


class CellAgreement(NamedTuple):
    """The agreement of every single cell of the suite with the groups."""

    cells: tuple[TableCell, ...]
    groups: tuple[str, ...]
    tau: FloatArray
    """[groups, cells]"""
    drawn: FloatArray
    """[resamples, groups, cells]"""
    shuffled: FloatArray
    """[shuffles] how many cells predict with the names of the strategies shuffled."""

    def intervals(self, which: Sequence[int] | None = None) -> FloatArray:
        """Return the ends [2, cells] of the intervals of the mean tau over the groups ``which``, all by default."""
        return np.quantile(_mean_over(self.drawn, which), (0.025, 0.975), axis=0)

    def predicting(self, which: Sequence[int] | None = None) -> BoolArray:
        """Return the cells [cells] whose mean tau over groups is above 0 with its whole interval."""
        found: BoolArray = self.intervals(which)[0] > 0
        return found


def _mean_over(drawn: FloatArray, which: Sequence[int] | None) -> FloatArray:
    kept = drawn if which is None else drawn[:, list(which)]
    return np.asarray(kept.mean(axis=1))


def cell_agreement(
    tables: Tables, groups: Sequence[NetworkGroup], resamples: int = RESAMPLES, shuffles: int = SHUFFLES
) -> CellAgreement:
    """Return how well every single cell of the suite agrees with the rankings of groups."""
    rng = generator(0, "prediction", "cells")
    places = [np.array([tables.strategies.index(name) for name in shared_strategies(tables, one)]) for one in groups]
    own = [_of(one, shared_strategies(tables, one)) for one in groups]
    mean_gaps = np.stack([tables.cell_scores(tables.draw(rng)) for _ in range(resamples)])
    ranks = [np.stack([one.ranks(rng) for _ in range(resamples)]) for one in own]

    def taus(orders: Sequence[IntArray]) -> FloatArray:
        parts = [
            tau(mean_gaps[:, :, place], rank[:, None, order])
            for place, rank, order in zip(places, ranks, orders, strict=True)
        ]
        return np.stack(parts, axis=1)

    scores = tables.cell_scores()
    found = np.stack([tau(scores[:, place], one.ranks()[None]) for place, one in zip(places, own, strict=True)])
    drawn = taus([np.arange(len(place)) for place in places])
    counts = []
    for _ in range(shuffles):
        wrong = taus([rng.permutation(len(place)) for place in places])
        counts.append(float((np.quantile(_mean_over(wrong, None), 0.025, axis=0) > 0).sum()))
    return CellAgreement(tables.cells, tuple(one.name for one in groups), found, drawn, np.array(counts))
