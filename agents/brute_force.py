"""brute-force and reduced-brute-force: try every set of B states."""

import time
from dataclasses import dataclass
from math import comb

import numpy as np

from agents.agent import Taxonomy
from agents.errors import SearchLimitError
from agents.progress import progress, seconds, show
from agents.trained import Found, TrainedAgent, Training
from selectenv.checks import check_int
from selectenv.domains.world import TabularWorld
from selectenv.errors import OptionError
from selectenv.kernels.combinations import combination, fill_masks
from selectenv.typing import BoolArray, IntArray

BLOCK = 1 << 16
TIMED_SETS = 4096
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

    name = "brute-force"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Refuse a limit that allows nothing."""
        super().__post_init__()
        check_int("limit", self.limit)

    def search(self, training: Training) -> Found:
        """Try them all."""
        chosen, performance, tried = self.best_of(training, training.candidates, training.budget)
        return Found(training.by_visitation(chosen), performance, {"sets": tried})

    def best_of(self, training: Training, items: IntArray, k: int) -> tuple[IntArray, float, int]:
        """Return the best set of k of the states ``items``, its performance and the number of sets tried."""
        sets = comb(len(items), k)
        expected = sets * _seconds_per_set(training, min(sets, TIMED_SETS))
        if sets > self.limit:
            raise SearchLimitError(
                f"{self.name} would try {sets:,} sets of {k} out of {len(items)} states, for {seconds(expected)}; "
                f"the limit is {self.limit:,}: raise it with limit={sets}"
            )
        show(f"{self.name}: {sets:,} sets of {k} out of {len(items)} states, for {seconds(expected)}")
        enough = np.inf
        if self.stop_at_best_possible:
            enough = best_possible_return(training) - REACHED
        best, performance, tried = np.empty(0, np.int64), -np.inf, 0
        current = combination(0, len(items), k)
        for first in progress(range(0, sets, BLOCK), -(-sets // BLOCK), self.name):
            masks = np.repeat(training.fixed[None], min(BLOCK, sets - first), axis=0)
            fill_masks(current, items, masks)
            returns = training.problem.performance_many(masks)
            tried += len(masks)
            i = int(returns.argmax())
            if returns[i] > performance:
                best, performance = np.flatnonzero(masks[i] & ~training.fixed), float(returns[i])
            if performance >= enough:
                break
        return best, performance, tried


@dataclass
class ReducedBruteForce(BruteForce):
    """Tries only sets of states with a reward: under UDS with 0 for unknown rewards, no other label changes anything.

    It needs a reward oracle to know them, so it is a yardstick and not a strategy for real data. Where there are no
    more such states than labels, labelling them all is the one set to try; the most visited states fill the budget.
    """

    name = "reduced-brute-force"
    taxonomy = Taxonomy("open", "batch", "training", oracle="which states have rewards")

    def search(self, training: Training) -> Found:
        """Try the sets of rewarding states."""
        rewarding = training.candidates[rewarding_states(training)[training.candidates]]
        if len(rewarding) > training.budget:
            chosen, performance, tried = self.best_of(training, rewarding, training.budget)
        else:
            chosen, tried = rewarding, 1
            performance = float(training.evaluate(training.by_visitation(chosen)[None, : training.budget])[0])
        return Found(training.by_visitation(chosen), performance, {"sets": tried, "rewarding_states": len(rewarding)})


def rewarding_states(training: Training) -> BoolArray:
    """Return the states [n] whose label can change what UDS with 0 learns: those with a reward that is not 0.

    Raises:
        OptionError: another learner, for which this does not hold.
    """
    learner = training.problem.learner
    if getattr(learner, "adapted", True) or getattr(learner, "impute", 1.0) != 0:
        raise OptionError("that only rewards matter holds for the learner 'uds' with impute=0, not for this one")
    data = training.problem.dataset
    rewarding = np.zeros(training.n_states, bool)
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


def _seconds_per_set(training: Training, sets: int) -> float:
    """Time some random sets, on a view of the problem whose calls do not count."""
    view = training.problem.view()
    rng = np.random.default_rng(0)
    masks = np.zeros((sets, training.n_states), bool)
    masks[:, training.candidates] = rng.random((sets, len(training.candidates))) < training.budget / len(
        training.candidates
    )
    view.performance_many(masks[:1])  # compile first
    began = time.perf_counter()
    view.performance_many(masks)
    return (time.perf_counter() - began) / sets
