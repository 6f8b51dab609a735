"""RewardSelectionEnv: a SelectionProblem as a Gymnasium environment."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from selectenv.checks import as_array, check_instance, is_int, shown
from selectenv.datasets.reward_summary import RewardSummary
from selectenv.episode_batch import EpisodeBatch
from selectenv.episode_terms import RESET_OPTIONS, EpisodeTerms, ProblemSource
from selectenv.errors import ActionError, EpisodeError
from selectenv.evaluation.evaluator import Calls
from selectenv.kernels.tabular.episode_steps import MEASURE, MEASURED, OVER, PAID, WASTED, StepResult
from selectenv.kernels.tabular.packed_tables import BUDGET, JUDGED, SINCE_REFIT, SPENT
from selectenv.observation import Observation, observation_space
from selectenv.options import RENDER_MODES, own_options
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, IntArray
from selectenv.view import SelectionView

Action = int | np.integer[Any] | NDArray[np.integer[Any]]
"""A state number, or an array of state numbers."""
FIRST = np.zeros(1, np.int64)


class RewardSelectionEnv(gym.Env[Observation, Action]):
    """Each step labels one state; the return is the performance of the policy learned from the labels.

    Args:
        problem: a problem, or a function of a random generator that makes one: it is called at every reset.
        budget: number of labels (int) or share of the states (float); for a (low, high) pair of shares, every reset
            draws a share uniformly between them.
        **options: the other fields of `EnvironmentOptions`.
    """

    metadata = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
    }

    def __init__(self, problem: SelectionProblem | ProblemSource, budget: Any = 0.3, **options: Any) -> None:
        """See the class."""
        self._terms = terms = EpisodeTerms(problem, budget, options)
        self.options, self.marginal = terms.options, terms.marginal
        self.source = terms.source
        """The function that makes the problem of every episode, if there is one."""
        self.render_mode = self.options.render_mode
        self.calls = Calls()
        self.problem = self._own(terms.first)
        self._batch = EpisodeBatch(terms, self.problem, 1)
        self._batch.episodes.counts[0, [BUDGET, SPENT]] = terms.usual_budget  # nothing may be labelled before reset
        self.observation_space = observation_space(terms.n_states, self._batch.names)  # type: ignore[assignment]
        self.action_space = gym.spaces.Discrete(terms.n_states)
        self._initial_labels = np.empty(0, np.int64)
        self._view: SelectionView | None = None
        self._begun = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode without labels other than the initial ones.

        Args:
            seed: seed of the environment's random generator.
            options: "budget" replaces the budget in this episode; "initial" lists the numbers of the states that are
                labelled at reset, out of the budget, instead of random ones.

        Returns:
            The observation, and an info with `states` (the ids), `action_mask`, `budget`, `initial` (the numbers of
            the states labelled at reset) and `initial_revealed` (number -> action -> mean reward of these states).

        Raises:
            UnknownNameError: there is no such option.
            BudgetError: the budget is out of range, or the initial labels leave none to choose.
            LabelError: the initial labels are not numbers of different states that occur in the data.
        """
        chosen = {} if options is None else check_instance("options", options, dict)
        own_options(chosen, (), RESET_OPTIONS)
        super().reset(seed=seed)
        if self.source is not None:
            problem = self.source(self.np_random)
            self._terms.check_problem(problem)
            self.problem = self._own(problem)
            self._batch.adopt(0, self.problem)
        budget, initial = self._terms.begin(self.problem, chosen, self.np_random)
        self.problem.evaluator.locked = self._terms.test
        self._batch.begin(FIRST, np.array([budget]), initial[None], np.array([len(initial)]))
        self._initial_labels, self._begun, self._view = initial, True, None
        info = {
            "states": self.problem.states.copy(),
            "action_mask": self._open.copy(),
            "budget": self.budget,
            "initial": initial.copy(),
            "initial_revealed": {number: self._revealed_by(number) for number in initial.tolist()},
        }
        return self._observation(), info

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label the state with number ``action``; an array of numbers labels them all, see `label_many`.

        Returns:
            Observation, reward, terminated, truncated (never), and an info with `state` (the id), `wasted` (whether the
            state was labelled before or is not in the data), `revealed` (action -> mean reward of the state, empty
            if wasted), `action_mask`, `initial` and, at the end, `performance`.
        """
        if isinstance(action, np.ndarray) and action.ndim > 0:
            return self.label_many(action)
        number = self._check_action(action)
        self._check_running()
        result = self._batch.step(None, np.array([number]), self._problem_of)
        wasted = bool(result.marks[WASTED, 0])
        if not wasted and self._view is not None:
            self._reveal(np.array([number]))
        observation, reward, over, info = self._after_labelling(result)
        info["state"] = self.problem.states[number]
        info["wasted"] = wasted
        info["revealed"] = {} if wasted else self._revealed_by(number)
        return observation, reward, over, False, info

    def label_many(self, actions: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label several states at once, as single steps would, with one refit and one observation at the end.

        Labels beyond the budget are ignored. The result is that of `step`, but ``info["state"]`` is an array of ids,
        ``info["wasted"]`` the number of wasted labels, and ``info["revealed"]`` maps the number of each newly labelled
        state to what its label reveals.
        """
        numbers = as_array("a batch of labels", actions, ActionError)
        n = len(self.labelled_at)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1 or len(numbers) == 0:
            raise ActionError(f"a batch of labels must be a non-empty list of state numbers, not {shown(actions)}")
        if numbers.min() < 0 or numbers.max() >= n:
            raise ActionError(f"state numbers must lie in 0..{n - 1}; got {numbers.min()}..{numbers.max()}")
        self._check_running()
        numbers = numbers[: self.budget - self.labels_spent].astype(np.int64)
        fresh, result = self._batch.label_many(numbers, self._problem_of)
        self._reveal(numbers[fresh])
        observation, reward, over, info = self._after_labelling(result)
        info["state"] = self.problem.states[numbers]
        info["wasted"] = int((~fresh).sum())
        info["revealed"] = {number: self._revealed_by(number) for number in numbers[fresh].tolist()}
        return observation, reward, over, False, info

    def action_masks(self) -> BoolArray:
        """Return the mask [n] of states that can still be labelled."""
        return self._open.astype(np.bool_)

    def judge(self) -> None:
        """Count the final return of the running episode as its score, not as a cost; `agents.play` calls it."""
        self._counts[JUDGED] = 1

    def twin(self) -> "RewardSelectionEnv":
        """Return another environment of the same problem and options, with call counts of its own."""
        return RewardSelectionEnv(self.source or self.problem, **vars(self.options))

    def view(self) -> SelectionView:
        """Return what a strategy may know in the running episode; it is updated as states are labelled.

        Raises:
            EpisodeError: no episode has begun.
        """
        if not self._begun:
            raise EpisodeError("no episode has begun: call reset() first")
        if self._view is None:
            labelled = np.flatnonzero(self.labelled_at)
            self._view = self._terms.view(self.problem, self.budget, self._initial_labels, labelled)
        return self._view

    @property
    def labelled_at(self) -> IntArray:
        """[n] when each state was labelled in the episode, counted from 1; 0 if it is not labelled."""
        mine: IntArray = self._batch.episodes.labelled_at[0]
        return mine

    @property
    def labels(self) -> IntArray:
        """The numbers of the labelled states, in the order they were labelled."""
        return in_order(self.labelled_at)

    def render(self) -> Any:
        """Return a drawing of the labels, numbered in order, on the world's layout: text or an RGB image."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode: give one to gym.make, e.g. render_mode='ansi'")
            return None
        return drawing(self.problem, self.labelled_at, self.budget, self.render_mode)

    @property
    def labels_to_refit(self) -> int:
        """Number of labels until the next refit, which changes the learned features."""
        return self._terms.refit_every - int(self._counts[SINCE_REFIT])

    @property
    def budget(self) -> int:
        """Number of labels of the episode."""
        return int(self._counts[BUDGET])

    @property
    def labels_spent(self) -> int:
        """Number of labels spent so far, initial and wasted ones included."""
        return int(self._counts[SPENT])

    @property
    def _open(self) -> NDArray[np.int8]:
        """[n] 1 for the states that can still be labelled, else 0."""
        mine: NDArray[np.int8] = self._batch.episodes.open[0]
        return mine

    @property
    def _counts(self) -> IntArray:
        """The counts of the episode, see `Episodes.counts`."""
        mine: IntArray = self._batch.episodes.counts[0]
        return mine

    @property
    def _summary(self) -> RewardSummary:
        """What labels reveal; cached by the dataset."""
        dataset = self.problem.dataset
        return dataset.reward_summary(dataset.all_rewards)

    def _revealed_by(self, number: int) -> dict[int, float]:
        """Return what the label on a state reveals: action -> mean reward."""
        means = self._summary.by_action[number].tolist()
        return {action: mean for action, mean in enumerate(means) if not math.isnan(mean)}

    def _reveal(self, states: IntArray) -> None:
        """Add the rewards of newly labelled states to the view, if `view` was called in this episode."""
        if self._view is not None:
            self._view.add(*self.problem.dataset.revealed_by(states))

    def _own(self, problem: SelectionProblem) -> SelectionProblem:
        """Return ``problem`` with the call counts and the lock of this environment."""
        mine = problem.with_calls(self.calls)
        mine.evaluator.locked = self._terms.test
        return mine

    def _check_action(self, action: Any) -> int:
        n = len(self.labelled_at)
        if isinstance(action, np.ndarray) and action.shape == () and action.dtype.kind in "iu":
            action = action.item()
        if not is_int(action):
            raise ActionError(f"an action is the number of a state, an int from 0 to {n - 1}, not {shown(action)}")
        if not 0 <= action < n:
            raise ActionError(
                f"there is no state number {shown(action)}: they lie in 0..{n - 1}; for ids use `problem.actions(ids)`"
            )
        return int(action)

    def _check_running(self) -> None:
        if self.labels_spent >= self.budget:
            raise EpisodeError("no episode is running: call reset() before the first step and after the last label")

    def _problem_of(self, _: int) -> SelectionProblem:
        return self.problem

    def _after_labelling(self, result: StepResult) -> tuple[Observation, float, bool, dict[str, Any]]:
        """Return observation, reward, whether the episode is over, and info."""
        over = bool(result.marks[OVER, 0])
        info: dict[str, Any] = {"action_mask": self._open.copy(), "initial": self._initial_labels.copy()}
        if over:
            self.problem.evaluator.locked = False
        if result.marks[MEASURE, 0]:
            value = result.numbers[MEASURED, 0].item()
            if self._batch.measures:
                self.problem.record(self.labelled_at > 0, value, scored=over and bool(self._counts[JUDGED]))
            if over:
                info["performance"] = value
        return self._observation(), result.numbers[PAID, 0].item(), over, info

    def _observation(self) -> Observation:
        """Return fresh arrays: Gymnasium's checkers reject observations that share memory."""
        return {name: array[0].copy() for name, array in self._batch.rows.items()}


def in_order(labelled_at: IntArray) -> IntArray:
    """Return the numbers of the labelled states in the order they were labelled; see `RewardSelectionEnv.labels`."""
    chosen = np.flatnonzero(labelled_at)
    return chosen[np.argsort(labelled_at[chosen])]


def drawing(problem: SelectionProblem, labelled_at: IntArray, budget: int, mode: str | None) -> Any:
    """Return a drawing of the labels, numbered in order, on the world's layout: text or an RGB image."""
    from selectenv.rendering import selection

    draw = selection.text if mode == "ansi" else selection.pixels
    return draw(problem, labelled_at, budget)
