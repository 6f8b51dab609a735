"""brute-force and reduced-brute-force: evaluate every set of B states."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from agents.base import Taxonomy
from agents.errors import SearchLimitError
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from selectenv.checks import check_flag, check_int, check_name
from selectenv.datasets import OfflineDataset
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import OptionError
from selectenv.io.progress import progress, seconds, show
from selectenv.kernels.tabular.subsets import combination, fill_masks
from selectenv.typing import BoolArray, IntArray

BLOCK = 1 << 16
MANY = 10**30
"""Sets are not counted beyond this number."""
TIMED_SECONDS = 0.1
REACHED = 1e-9


@register("brute-force")
@dataclass
class BruteForce(SearchAgent):
    """Streams all C(m, B) sets of the m candidates in bounded memory and keeps the first of the best.

    Before it starts, it prints the number of sets and the estimated duration.
    """

    max_evaluations: int = 10_000_000
    """Raise an error if there are more sets than this."""
    stop_at_best_possible: bool = False
    """Stop as soon as the best possible return of the world is reached; this uses knowledge of the true world."""

    instead = "swap-search or exact"
    name = "brute-force"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Reject a limit that is not positive."""
        super().__post_init__()
        self.max_evaluations = check_int("max_evaluations", self.max_evaluations)
        check_flag("stop_at_best_possible", self.stop_at_best_possible)

    def search(self, task: SearchTask) -> SearchResult:
        """Evaluate all sets."""
        return self.best_of(task, task.candidates, [task.budget])

    def best_of(self, task: SearchTask, items: IntArray, sizes: Sequence[int]) -> SearchResult:
        """Return the best set of ``sizes`` of the states ``items``; the most visited other states fill the budget."""
        sets = 0
        for size in reversed(sizes):  # stop counting once there are too many in any case
            sets += comb(len(items), size)
            if sets > MANY:
                break
        labels = " or ".join(map(str, sizes)) if len(sizes) < 3 else f"{sizes[0]} to {sizes[-1]}"
        what = f"{self.name}: {_count(sets)} sets of {labels} out of {len(items)} states"
        if sets > self.max_evaluations:
            raise SearchLimitError(
                f"{what}, for {_duration(sets, task)}; the maximum is {self.max_evaluations:,}: "
                f"raise it with max_evaluations=..., or try {self.instead}"
            )
        show(f"{what}, for {_duration(sets, task)}")
        enough = best_possible_return(task) - REACHED if self.stop_at_best_possible else np.inf
        best, performance, tried = np.empty(0, np.int64), -np.inf, 0
        fillers = task.by_visitation(items)[len(items) :]
        for masks in progress(_blocks(task, items, sizes, fillers), -(-sets // BLOCK), self.name):
            returns = task.problem.performance_many(masks)
            tried += len(masks)
            i = int(returns.argmax())
            if returns[i] > performance:
                best, performance = np.flatnonzero(masks[i] & ~task.fixed), float(returns[i])
            if performance >= enough:
                break
        return SearchResult(task.by_visitation(best), performance, {"sets": tried, "states": len(items)})


def _blocks(task: SearchTask, items: IntArray, sizes: Sequence[int], fillers: IntArray) -> Iterator[BoolArray]:
    """Yield all sets in blocks [block, n] of bounded memory."""
    for size in sizes:
        sets, current = comb(len(items), size), combination(0, len(items), size)
        for first in range(0, sets, BLOCK):
            masks = np.repeat(task.fixed[None], min(BLOCK, sets - first), axis=0)
            masks[:, fillers[: task.budget - size]] = True
            fill_masks(current, items, masks)
            yield masks


@register("reduced-brute-force")
@dataclass
class ReducedBruteForce(BruteForce):
    """Evaluates only sets of rewarding states: under UDS with imputed reward 0, no other label changes anything.

    It needs a reward oracle to know these states, so it is a reference and not a strategy for real data. Remaining
    labels go to the most visited other states. More rewards are not always better, so sets with fewer rewarding
    states are evaluated too; ``sizes="largest"`` evaluates only sets with as many as possible, as published for large
    worlds.
    """

    sizes: str = "all"
    """Numbers of rewarding states to try: "all", or only the "largest"."""

    instead = 'sizes="largest", swap-search or exact'
    name = "reduced-brute-force"
    taxonomy = Taxonomy("open", "batch", "training", oracle="which states have rewards")

    def __post_init__(self) -> None:
        """Reject other values of ``sizes``."""
        super().__post_init__()
        check_name("value of `sizes`", self.sizes, ("all", "largest"))

    def search(self, task: SearchTask) -> SearchResult:
        """Evaluate the sets of rewarding states.

        Raises:
            OptionError: labels of other states matter to the learner.
        """
        if not getattr(task.problem.learner, "only_rewards_matter", False):
            raise OptionError(
                "reduced-brute-force needs a learner for which only rewarding states matter: 'uds' with impute=0, "
                "solved exactly, or 'iql' with impute=0"
            )
        items = task.candidates[rewarding_states(task.problem.dataset)[task.candidates]]
        most = min(task.budget, len(items))
        least = most if self.sizes == "largest" else max(0, task.budget - (len(task.candidates) - len(items)))
        return self.best_of(task, items, range(least, most + 1))


def rewarding_states(data: OfflineDataset) -> BoolArray:
    """Return the mask [n] of states with a non-zero reward in the data."""
    rewarding = np.zeros(data.n_states, bool)
    if data.hidden_reward is not None:
        rewarding[data.state[data.hidden_reward != 0]] = True
    return rewarding


def best_possible_return(task: SearchTask) -> float:
    """Return the largest expected return of any policy in the true world.

    Raises:
        OptionError: the world of the problem is not tabular.
    """
    world = getattr(task.problem.evaluator.engine, "world", None)
    if not isinstance(world, TabularWorld):
        raise OptionError("the best possible return is known only for tabular worlds")
    return world.best_return(task.problem.evaluator.discount)


def _count(sets: int) -> str:
    """Return a readable number of sets."""
    return f"{sets:,}" if sets < 10**15 else f"over 10^{int((sets.bit_length() - 1) * 0.30102)}"


def _duration(sets: int, task: SearchTask) -> str:
    """Return the estimated duration, extrapolated from random sets that are not counted as evaluator calls."""
    uncounted, rng = task.problem.with_calls(), np.random.default_rng(0)
    timed, elapsed = 1, 0.0
    uncounted.performance_many(task.fixed[None])  # compile first
    while elapsed < TIMED_SECONDS / 2 and timed <= sets:
        masks = np.repeat(task.fixed[None], timed, axis=0)
        share = task.budget / len(task.candidates)
        masks[:, task.candidates] |= rng.random((timed, len(task.candidates))) < share
        began = time.perf_counter()
        uncounted.performance_many(masks)
        elapsed, timed = time.perf_counter() - began, 2 * timed
    return seconds(min(sets, 10**30) * elapsed / max(timed // 2, 1))
