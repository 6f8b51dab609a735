"""Scores on the suite: normalised gaps, their interquartile mean, and the probability of improvement.

The normalised gap of an episode is (best - return) / (best - uniform): 0 for the best return known, 1 for the mean
return of random label sets; it is negative for a strategy that beats the best set known. In worlds with several
datasets the denominator is the mean over the datasets, so that no single dataset dominates.

Following Agarwal et al. (2021, https://arxiv.org/abs/2108.13264), gaps are summarised by their interquartile mean, with
95 % intervals of a stratified bootstrap. The strata are the places; within each, units (datasets, or random worlds) are
drawn with replacement together with all their budgets and rules, which share data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from experiments.benchmarks.suite.suite_references import bounds
from experiments.benchmarks.suite.suite_tasks import ALWAYS, PLACES, RANDOM, RULES, Place
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray, IntArray

RESAMPLES = 1000
SMALLEST_DIFFERENCE = 0.01
"""Cells in which uniform is within this share of the best are left out."""
SAME = 1e-8
"""Relative difference below which two returns count as tied."""
BASELINES = ("uniform", "guided")


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    def overlaps(self, other: "Estimate") -> bool:
        """Return whether the intervals have a point in common."""
        return self.low <= other.high and other.low <= self.high

    def __str__(self) -> str:
        """Return the number and its interval with two decimals."""
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, eq=False)
class Stratum:
    """What a strategy earned in one place."""

    place: Place
    rules: tuple[str, ...]
    """[rows] the rule of each row."""
    returns: FloatArray
    """[rows, units] one row per rule and budget."""
    gaps: FloatArray
    """[rows, units] normalised gaps; NaN where uniform is close to the best."""


def strata(result: dict[str, Any]) -> list[Stratum]:
    """Return the returns and gaps of a result file, place by place."""
    found = []
    for name, rules in result["results"].items():
        place = PLACES[name]
        rows = [(rule, budget) for rule in rules for budget in place.budgets]
        returns = np.array([rules[rule]["returns"][budget] for rule, budget in rows])
        scale, best = _scales(place), _best(place)
        kept = [(rule, budget) in set(rows) for rule in RULES for budget in place.budgets]
        units = returns.shape[1]
        gaps = (best[kept][:, :units] - returns) / scale[kept][:, :units]
        found.append(Stratum(place, tuple(rule for rule, _ in rows), returns, gaps))
    return found


@cache
def _best(place: Place) -> FloatArray:
    """Return the best known returns [rows, units] of a place."""
    return np.array([bounds(place, rule, budget)[0] for rule in RULES for budget in place.budgets])


@cache
def _scales(place: Place) -> FloatArray:
    """Return best minus uniform [rows, units], NaN where it is too small; outside random worlds the mean over units."""
    uniform = np.array([bounds(place, rule, budget)[1] for rule in RULES for budget in place.budgets])
    best = _best(place)
    if place.part != RANDOM:
        best, uniform = (np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape) for x in (best, uniform))
    difference = best - uniform
    large = difference > SMALLEST_DIFFERENCE * np.maximum(np.abs(best), np.abs(uniform))
    return np.where(large, difference, np.nan)


def left_out(place: Place) -> list[str]:
    """Return the cells of a place that are not scored, for example "uds, 45 labels"."""
    rows = [(rule, budget) for rule in RULES for budget in place.budgets]
    found = []
    for (rule, budget), scale in zip(rows, _scales(place), strict=True):
        units = np.flatnonzero(np.isnan(scale))
        if place.part == RANDOM and len(units):
            found.append(f"{rule}, {budget}: worlds {', '.join(map(str, units))}")
        elif len(units):
            found.append(f"{rule}, {budget}")
    return found


def interquartile_mean(gaps: FloatArray) -> float:
    """Return the mean of the middle half of gaps of any shape, NaN ignored; NaN if there are none."""
    known = gaps[~np.isnan(gaps)]
    return float(stats.trim_mean(known, 0.25)) if len(known) else float("nan")


def score(found: Sequence[Stratum], chosen: Callable[[Stratum], BoolArray] | None = None) -> Estimate:
    """Return the interquartile mean of the gaps of several places.

    Args:
        found: the places.
        chosen: returns the rows [rows] of a place that count; all by default.
    """
    parts = [one.gaps if chosen is None else one.gaps[chosen(one)] for one in found]

    def value(draws: Sequence[IntArray | slice]) -> float:
        return interquartile_mean(
            np.concatenate([gaps[:, draw].ravel() for gaps, draw in zip(parts, draws, strict=True)])
        )

    return _bootstrapped(value, parts)


def improvement(found: Sequence[Stratum], baseline: Sequence[Stratum]) -> Estimate:
    """Return the probability that a strategy earns more than a baseline in a cell; ties count one half.

    Within a world, every dataset of one is compared with every dataset of the other; a random world is compared with
    itself. Cells count by their number of units.
    """
    wins, single = [], []
    for mine, theirs in zip(found, baseline, strict=True):
        kept = ~np.isnan(mine.gaps).all(axis=1)
        ours, others = mine.returns[kept][:, :, None], theirs.returns[kept][:, None, :]
        tied = np.abs(ours - others) <= SAME * np.maximum(np.abs(ours), np.abs(others))
        won = np.where(tied, 0.5, (ours > others).astype(float))
        single.append(mine.place.part == RANDOM)
        if single[-1]:
            own = np.einsum("ruu->ru", won)
            won = np.where(np.isnan(mine.gaps[kept]), np.nan, own)
        wins.append(won)

    def value(draws: Sequence[IntArray | slice]) -> float:
        total, count = 0.0, 0
        for won, draw, alone in zip(wins, draws, single, strict=True):
            drawn = won[:, draw] if alone else won[:, draw][:, :, draw]
            units = drawn.shape[1]
            known = ~np.isnan(drawn)
            total += float(drawn[known].sum()) / (1 if alone else units)
            count += int(known.sum()) // (1 if alone else units)
        return total / count if count else float("nan")

    return _bootstrapped(value, [one.returns for one in found])


def _bootstrapped(value: Callable[[Sequence[IntArray | slice]], float], parts: Sequence[FloatArray]) -> Estimate:
    """Return a statistic with its stratified bootstrap interval; ``parts`` are [rows, units]."""
    rng = generator(0, "benchmark", "bootstrap")
    every = [slice(None)] * len(parts)
    units = [np.arange(part.shape[1]) for part in parts]
    drawn = [value([rng.choice(own, len(own)) for own in units]) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(value(every), float(low), float(high))


def groups_of(found: Sequence[Stratum]) -> dict[str, Estimate]:
    """Return the score of the tabular and random worlds together, of each part of the suite, and of each rule.

    Games and control worlds are optional, so they do not count in the score of all and in those of the rules.
    """
    parts, core = dict.fromkeys(one.place.part for one in found), always(found)
    scores = {"all": score(core)}
    scores |= {part: score([one for one in found if one.place.part == part]) for part in parts}
    scores |= {rule: score(core, lambda one, rule=rule: np.array(one.rules) == rule) for rule in RULES}  # type: ignore[misc]
    return scores


def always(found: Sequence[Stratum]) -> list[Stratum]:
    """Return the places that every strategy is scored on."""
    return [one for one in found if one.place.part in ALWAYS]


def cell_gaps(result: dict[str, Any]) -> dict[str, Any]:
    """Return place -> rule -> budget -> mean gap over the units, None where the cell is left out."""
    found: dict[str, Any] = {}
    for one in strata(result):
        rows = [(rule, budget) for rule in dict.fromkeys(one.rules) for budget in one.place.budgets]
        for (rule, budget), gaps in zip(rows, one.gaps, strict=True):
            known = gaps[~np.isnan(gaps)]
            mean = round(float(known.mean()), 4) if len(known) else None
            found.setdefault(one.place.name, {}).setdefault(rule, {})[budget] = mean
    return found


def cost_of(result: dict[str, Any]) -> tuple[float, float]:
    """Return the evaluator calls per episode and the seconds per label."""
    rows = [row for rules in result["results"].values() for row in rules.values()]
    episodes = [len(returns) for row in rows for returns in row["returns"].values()]
    calls = [cost for row in rows for cost in row["cost"].values()]
    seconds, labels = sum(row["seconds"] for row in rows), sum(row["labels"] for row in rows)
    return float(np.average(calls, weights=episodes)), seconds / max(labels, 1)


def ranks(scores: Sequence[Estimate]) -> list[str]:
    """Return the ranks of ascending scores; those whose intervals overlap with that of the first of a rank are ties."""
    found: list[int] = []
    leader = 0
    for i, one in enumerate(scores):
        if i == 0 or not one.overlaps(scores[leader]):
            leader = i
        found.append(leader)
    return [f"{place + 1}=" if found.count(place) > 1 else str(place + 1) for place in found]
