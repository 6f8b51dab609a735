"""brute-force and reduced-brute-force: try every set of B states."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from agents.base import Taxonomy
from agents.errors import SearchLimitError
from agents.search.search_agent import Found, TrainedAgent, Training
from selectenv.checks import check_int, check_name
from selectenv.datasets import OfflineDataset
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import OptionError
from selectenv.io.progress import progress, seconds, show
from selectenv.kernels.tabular.subsets import combination, fill_masks
from selectenv.typing import BoolArray, IntArray

BLOCK = 1 << 16
MANY = 10**30
"""Beyond this, sets are no longer counted."""
TIMED_SECONDS = 0.1
REACHED = 1e-9


@dataclass
class BruteForce(TrainedAgent):
    """Streams all C(m, B) sets of the m candidates in bounded memory and keeps the first of the best.

    It says how many sets there are and how long they will take before it starts.
    """

    limit: int = 10_000_000
    """Refuse to try more sets than this."""
    stop_at_best_possible: bool = False
    """Stop as soon as the world's best possible return is reached: knowledge that the evaluator does not give."""

    instead = "swap-search or exact"
    name = "brute-force"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Refuse a limit that allows nothing."""
        super().__post_init__()
        self.limit = check_int("limit", self.limit)
        if not isinstance(self.stop_at_best_possible, bool):
            raise OptionError(f"stop_at_best_possible must be True or False, not {self.stop_at_best_possible!r}")

    def search(self, training: Training) -> Found:
        """Try them all."""
        return self.best_of(training, training.candidates, [training.budget])

    def best_of(self, training: Training, items: IntArray, sizes: Sequence[int]) -> Found:
        """Return the best set of so many of the states ``items``; the most visited others fill the budget."""
        sets = 0
        for size in reversed(sizes):  # counting ends where there are too many anyway
            sets += comb(len(items), size)
            if sets > MANY:
                break
        labels = " or ".join(map(str, sizes)) if len(sizes) < 3 else f"{sizes[0]} to {sizes[-1]}"
        what = f"{self.name}: {_count(sets)} sets of {labels} out of {len(items)} states"
        if sets > self.limit:
            raise SearchLimitError(
                f"{what}, for {_duration(sets, training)}; the limit is {self.limit:,}: "
                f"raise it with limit=..., or try {self.instead}"
            )
        show(f"{what}, for {_duration(sets, training)}")
        enough = best_possible_return(training) - REACHED if self.stop_at_best_possible else np.inf
        best, performance, tried = np.empty(0, np.int64), -np.inf, 0
        fillers = training.by_visitation(items)[len(items) :]
        for masks in progress(_blocks(training, items, sizes, fillers), -(-sets // BLOCK), self.name):
            returns = training.problem.performance_many(masks)
            tried += len(masks)
            i = int(returns.argmax())
            if returns[i] > performance:
                best, performance = np.flatnonzero(masks[i] & ~training.fixed), float(returns[i])
            if performance >= enough:
                break
        return Found(training.by_visitation(best), performance, {"sets": tried, "states": len(items)})


def _blocks(training: Training, items: IntArray, sizes: Sequence[int], fillers: IntArray) -> Iterator[BoolArray]:
    """Yield all sets in blocks of bounded memory."""
    for size in sizes:
        sets, current = comb(len(items), size), combination(0, len(items), size)
        for first in range(0, sets, BLOCK):
            masks = np.repeat(training.fixed[None], min(BLOCK, sets - first), axis=0)
            masks[:, fillers[: training.budget - size]] = True
            fill_masks(current, items, masks)
            yield masks


@dataclass
class ReducedBruteForce(BruteForce):
    """Tries only sets of states with a reward: under UDS with 0 for unknown rewards, no other label changes anything.

    It needs a reward oracle to know them, so it is a yardstick and not a strategy for real data. Labels that are left
    go to the most visited other states. More rewards are not always better, so sets with fewer rewarding states are
    tried too; ``sizes="largest"`` tries only sets with as many as possible, as was published for large worlds.
    """

    sizes: str = "all"
    """"all" numbers of rewarding states, or only the "largest"."""

    instead = 'sizes="largest", swap-search or exact'
    name = "reduced-brute-force"
    taxonomy = Taxonomy("open", "batch", "training", oracle="which states have rewards")

    def __post_init__(self) -> None:
        """Refuse other sizes."""
        super().__post_init__()
        check_name("value of `sizes`", self.sizes, ("all", "largest"))

    def search(self, training: Training) -> Found:
        """Try the sets of rewarding states."""
        learner = training.problem.learner
        if not getattr(learner, "only_rewards_matter", False):
            raise OptionError(
                "that only rewards matter holds for 'uds' with impute=0, solved exactly, and for 'iql' with impute=0; "
                "not for this learner"
            )
        items = training.candidates[rewarding_states(training.problem.dataset)[training.candidates]]
        most = min(training.budget, len(items))
        least = most if self.sizes == "largest" else max(0, training.budget - (len(training.candidates) - len(items)))
        return self.best_of(training, items, range(least, most + 1))


def rewarding_states(data: OfflineDataset) -> BoolArray:
    """Return the states [n] with a reward in the data that is not 0."""
    rewarding = np.zeros(data.n_states, bool)
    if data.hidden_reward is not None:
        rewarding[data.state[data.hidden_reward != 0]] = True
    return rewarding


def best_possible_return(training: Training) -> float:
    """Return the most that any policy can earn in the true world.

    Raises:
        OptionError: the problem's world is not known as a table.
    """
    world = getattr(training.problem.evaluator.engine, "world", None)
    if not isinstance(world, TabularWorld):
        raise OptionError("the best possible return is known only for tabular worlds")
    return world.best_return(training.problem.evaluator.discount)


def _count(sets: int) -> str:
    """Return a number of sets as people can read it."""
    return f"{sets:,}" if sets < 10**15 else f"over 10^{int((sets.bit_length() - 1) * 0.30102)}"


def _duration(sets: int, training: Training) -> str:
    """Return how long so many sets will take: time more and more random ones, on a view whose calls do not count."""
    view, rng = training.problem.view(), np.random.default_rng(0)
    timed, elapsed = 1, 0.0
    view.performance_many(training.fixed[None])  # compile first
    while elapsed < TIMED_SECONDS / 2 and timed <= sets:
        masks = np.repeat(training.fixed[None], timed, axis=0)
        share = training.budget / len(training.candidates)
        masks[:, training.candidates] |= rng.random((timed, len(training.candidates))) < share
        began = time.perf_counter()
        view.performance_many(masks)
        elapsed, timed = time.perf_counter() - began, 2 * timed
    return seconds(min(sets, 10**30) * elapsed / max(timed // 2, 1))
