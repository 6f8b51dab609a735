"""EpisodeBatch: episodes side by side, whose steps are one compiled pass wherever the learner is a table."""

from collections.abc import Callable
from typing import Any

import numpy as np

from selectenv.episode_terms import EpisodeTerms
from selectenv.kernels.tabular.episode_steps import (
    MEASURE,
    MEASURED,
    REFIT,
    StepResult,
    begin_episodes,
    label_batch,
    label_states,
    pay_rewards,
    step_each,
    step_in_lanes,
)
from selectenv.kernels.tabular.packed_tables import (
    BUDGET,
    DISCLOSED,
    IMPUTES_MINIMUM,
    JUDGED,
    LABELLED,
    ON_POLICY_VISITATION,
    PREDECESSORS,
    REWARD,
    SPENT,
    UNCOUNTED,
    VALUE,
    VALUE_SCALE,
    Tables,
    Terms,
    new_episodes,
)
from selectenv.kernels.tabular.refits import refit_each, refit_in_lanes
from selectenv.kernels.tabular.visits_in_lanes import visit_pattern
from selectenv.kernels.threads import in_blocks, thread_count
from selectenv.learners.base import FitResult
from selectenv.observation import LEARNED, Observation, data_features, learned_features
from selectenv.options import FEATURES
from selectenv.problem import SelectionProblem
from selectenv.problem_tables import has_compiled_returns, is_compiled, put_row, repeated, tables_of
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray

ROWS = {
    "labelled": LABELLED,
    "on_policy_visitation": ON_POLICY_VISITATION,
    "value": VALUE,
    "predecessors": PREDECESSORS,
    "reward": REWARD,
}
"""Features that change during an episode -> their rows in `Episodes.features`."""
WORTH_A_THREAD = 100_000
"""Least work per thread in nanoseconds; waking up a thread takes about half of this time."""
IN_LANES, ONE_BY_ONE = {True: 3, False: 8}, 45
"""Approximate nanoseconds of a refit per action and outcome of the model: in lanes (acyclic or not), and one by one."""
ProblemOf = Callable[[int], SelectionProblem]
"""Number of an episode -> its problem, with the call counts and the lock of its environment."""
NOTHING = np.empty(0)


class EpisodeBatch:
    """Episodes of one problem, or each of its own, and the arrays that their observations are copied from."""

    measures: bool
    """Whether performances are computed in the compiled pass."""

    def __init__(self, terms: EpisodeTerms, problem: SelectionProblem, count: int) -> None:
        """Prepare ``count`` episodes of ``problem``; with a problem source, `adopt` replaces the problem of each."""
        options, n = terms.options, terms.n_states
        self.names = FEATURES if options.features is None else tuple(options.features)
        self.count, self._occupancy, self._exploit = count, options.occupancy, terms.exploit(problem)
        self.episodes = new_episodes(count, n)
        self.episodes.open[:] = problem.dataset.labelable
        self.problems = [problem]
        """The problems: one that all episodes share, or one per episode."""
        self.tables: Tables = tables_of(problem)
        shared = terms.source is None
        if not shared:
            self.problems *= count
            self.tables = repeated(self.tables, count)
        lanes = shared and count > 1 and self._is_refitted_inside(problem)
        self._in_lanes = lanes and not self.tables.places[0, IMPUTES_MINIMUM]
        self._pattern = (visit_pattern(problem.dataset.empirical_model()),) if self._in_lanes else ()
        self._terms = Terms(
            terms.refit_every,
            terms.marginal,
            options.occupancy == "published",
            *(name in self.names for name in LEARNED),
        )
        self._learns = any(name in self.names for name in LEARNED)
        self._all, self._none = np.ones(count, bool), np.zeros(count, bool)
        self._blank: tuple[Float32Array, float] | None = None
        self._fits: list[FitResult | None] = [None] * count
        """The last result of a learner that is not compiled, in each episode: warm starts continue from it."""
        self._data: dict[str, Float32Array] = {
            name: np.empty((count, n), np.float32) for name in data_features(problem) if name in self.names
        }
        self._find_rows()
        self._compiled = [self._is_refitted_inside(problem)] * len(self.problems)
        self._measured = [self._is_measured_inside(problem)] * len(self.problems)
        self._is_compiled, self.measures = self._compiled[0], self._measured[0]
        self._actions = problem.dataset.n_actions
        self._fewest = self._episodes_per_thread(problem)
        for number in range(len(self.problems)):
            self._show(number)

    def _is_refitted_inside(self, problem: SelectionProblem) -> bool:
        """Return whether the compiled pass computes the learned features of a problem."""
        return is_compiled(problem) and self._exploit == "best"

    def _is_measured_inside(self, problem: SelectionProblem) -> bool:
        """Return whether the compiled pass computes all performances that the steps of a problem need."""
        return (self._is_refitted_inside(problem) and has_compiled_returns(problem)) or not problem.has_performance

    def _find_rows(self) -> None:
        """Find the arrays that observations are copied from, and how many threads this process may use."""
        self._threads = thread_count()
        changing = {name: self.episodes.features[row] for name, row in ROWS.items()}
        totals = {"budget": self.episodes.totals[0], "reward_scale": self.episodes.totals[1]}
        every = {**self._data, **changing, **totals}
        self.rows: dict[str, Float32Array] = {name: every[name] for name in self.names}
        """Feature -> its current values, [episodes, n] or [episodes, 1]."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out `rows`: copies of these views would no longer share memory with their arrays."""
        return {name: value for name, value in vars(self).items() if name != "rows"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state and rebuild `rows`."""
        vars(self).update(state)
        self._find_rows()

    def _show(self, number: int) -> None:
        """Write the features that depend on the data of an episode's problem alone."""
        which = slice(None) if len(self.problems) == 1 else number
        for name, feature in data_features(self.problems[number]).items():
            if name in self._data:
                self._data[name][which] = feature

    def adopt(self, number: int, problem: SelectionProblem) -> None:
        """Give an episode a problem of its own."""
        self.problems[number], self._fits[number] = problem, None
        self.tables = put_row(self.tables, number, tables_of(problem))
        self._compiled[number] = self._is_refitted_inside(problem)
        self._measured[number] = self._is_measured_inside(problem)
        self._is_compiled, self.measures = all(self._compiled), all(self._measured)
        self._actions = max(one.dataset.n_actions for one in self.problems)
        self._blank = None
        self._show(number)

    def begin(self, which: IntArray, budgets: IntArray, initial: IntArray, counts: IntArray) -> None:
        """Begin the episodes ``which`` [k]: see `begin_episodes`. What depends on the data alone is learned once."""
        begin_episodes(self.tables, self.episodes, which, budgets, initial, counts)
        for number in which.tolist() if not self._is_compiled else ():
            self._fits[number] = None
        if not self._learns:
            return
        if len(self.problems) > 1 or counts.any():
            refit = np.zeros(self.count, bool)
            refit[which] = True
            self._refit(refit)
            return
        if self._blank is None:
            first = np.zeros(self.count, bool)
            first[which[0]] = True
            self._refit(first)
            scale = float(self.episodes.scales[which[0], VALUE_SCALE])
            self._blank = self.episodes.features[:, which[0]].copy(), scale
        features, scale = self._blank
        where = slice(None) if len(which) == self.count else which
        for row in (ON_POLICY_VISITATION, VALUE, PREDECESSORS):
            self.episodes.features[row, where] = features[row]
        self.episodes.scales[where, VALUE_SCALE] = scale

    def step(self, steps: BoolArray | None, actions: IntArray, problem_of: ProblemOf) -> StepResult:
        """Label one state in every episode, or in those marked in ``steps`` [episodes].

        Args:
            steps: which episodes take a step; None stands for all.
            actions: [episodes] the states to label.
            problem_of: returns the problem of an episode, which computes and counts performances unless `measures`.
        """
        result = self._new_result()
        rest = self.tables, self.episodes, self._terms, self._all if steps is None else steps, actions, result
        if self._is_compiled and self.measures:
            if self._in_lanes:
                self._in_blocks(lambda first, last: step_in_lanes(first, last, *rest, *self._pattern))
            else:
                self._in_blocks(lambda first, last: step_each(first, last, *rest))
            return result
        label_states(0, self.count, *rest)
        self._finish(result, problem_of)
        return result

    def label_many(self, states: IntArray, problem_of: ProblemOf) -> tuple[BoolArray, StepResult]:
        """Label several states of the only episode, with one refit at the end; see `step`.

        Returns:
            Which labels [k] were not wasted, and the result of the step.
        """
        fresh, result = np.empty(len(states), bool), self._new_result()
        label_batch(self.tables, self.episodes, self._terms, states, fresh, result)
        self._finish(result, problem_of)
        return fresh, result

    def _new_result(self) -> StepResult:
        count, actions = self.count, self._actions
        return StepResult(
            np.empty((2, count)),
            np.empty((4, count), bool),
            np.empty((actions, count)),
            np.zeros((actions, count + 1), bool),
        )

    def _finish(self, result: StepResult, problem_of: ProblemOf) -> None:
        """Refit, evaluate and pay after states were labelled."""
        marks, numbers = result.marks, result.numbers
        if self._is_compiled and self.measures:
            self._refit(marks[REFIT], marks[MEASURE], numbers[MEASURED])
        else:
            if self._is_compiled:
                self._refit(marks[REFIT])
            for number in np.flatnonzero(marks[REFIT] | marks[MEASURE]).tolist():
                if marks[REFIT, number] and not self._is_compiled:
                    self._learn(number)
                if marks[MEASURE, number]:
                    numbers[MEASURED, number] = self._measure(number, problem_of(number))  # it knows the last fit
        pay_rewards(0, self.count, self.episodes, result)
        if not self.measures:
            self.episodes.counts[:, [DISCLOSED, UNCOUNTED]] = 0  # the problems have counted

    def _measure(self, number: int, problem: SelectionProblem) -> float:
        """Return the performance of the labels of an episode, and count it as a score or as disclosed."""
        counts = self.episodes.counts[number]
        over = counts[SPENT] == counts[BUDGET]
        if over:
            problem.evaluator.locked = False
        measure = problem.score if over and counts[JUDGED] else problem.disclose
        return measure(self.episodes.labelled_at[number] > 0)

    def _refit(self, refit: BoolArray, measure: BoolArray | None = None, measured: FloatArray = NOTHING) -> None:
        """Learn from the labels of the episodes marked in ``refit`` [episodes], and update their features.

        The compiled pass also writes the performances of those marked in ``measure`` into ``measured``.
        """
        if not self._is_compiled:
            for number in np.flatnonzero(refit).tolist():
                self._learn(number)
            return
        rest = self.tables, self.episodes, self._terms, refit, self._none if measure is None else measure, measured
        if self._in_lanes:
            self._in_blocks(lambda first, last: refit_in_lanes(first, last, *rest, *self._pattern))
        else:
            self._in_blocks(lambda first, last: refit_each(first, last, *rest))

    def _learn(self, number: int) -> None:
        """Learn from the labels of one episode with a learner of any kind, and update its features."""
        labels, scale = self.episodes.labelled_at[number] > 0, float(self.episodes.scales[number, VALUE_SCALE])
        wanted = [name for name in LEARNED if name in self.names]
        problem = self.problems[number if len(self.problems) > 1 else 0]
        result = problem.learn(labels & problem.revealable, self._fits[number])
        self._fits[number] = result
        features, scale = learned_features(problem, result, labels, scale, self._occupancy, self._exploit, wanted)
        for name, feature in features.items():
            self.rows[name][number] = feature
        self.episodes.scales[number, VALUE_SCALE] = scale

    def observation(self) -> Observation:
        """Return the observations of all episodes, in arrays of their own."""
        return {name: array.copy() for name, array in self.rows.items()}

    def _episodes_per_thread(self, problem: SelectionProblem) -> int:
        """Return the smallest number of episodes that is worth a thread of its own."""
        if not is_compiled(problem):
            return self.count
        model = problem.dataset.empirical_model()
        cost = (IN_LANES[model.acyclic] if self._in_lanes else ONE_BY_ONE) * (len(model.action) + len(model.next_state))
        return 1 + WORTH_A_THREAD // cost

    def _in_blocks(self, work: Callable[[int, int], None]) -> None:
        """Call ``work`` on blocks of episodes, one per thread."""
        in_blocks(work, self.count, self._fewest, self._threads)
