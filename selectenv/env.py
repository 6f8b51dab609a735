"""RewardSelectionEnv: a SelectionProblem as a Gymnasium environment."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from selectenv.budget import cap_to_labelable, episode_labels, number_of_labels
from selectenv.checks import as_array, as_ints, check_callable, check_instance, is_int, shown
from selectenv.datasets.reward_summary import RewardSummary
from selectenv.errors import (
    ActionError,
    BudgetError,
    EpisodeError,
    LabelError,
    NoEvaluatorError,
    OptionError,
    OptionTypeError,
    PhaseError,
)
from selectenv.evaluation.evaluator import Calls
from selectenv.learners.base import FitResult
from selectenv.observation import (
    Observation,
    data_features,
    learned_features,
    observation_space,
    reward_features,
)
from selectenv.options import RENDER_MODES, EnvironmentOptions, names, own_options
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, IntArray
from selectenv.view import SelectionView

RESET_OPTIONS = ("budget", "initial")
ProblemSource = Callable[[np.random.Generator], SelectionProblem]
Action = int | np.integer[Any] | NDArray[np.integer[Any]]
"""A state number, or an array of state numbers."""


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
        self.options = _environment_options(budget, options)
        self.render_mode = self.options.render_mode
        self.marginal, self._test = self.options.reward_mode == "marginal", self.options.phase == "test"
        self._source: ProblemSource | None = None
        self.calls = Calls()
        if isinstance(problem, SelectionProblem):
            first = problem
        elif callable(problem):
            self._source = check_callable("a problem source", problem, "rng")
            first = self._source(np.random.default_rng(0))
        else:
            raise OptionTypeError(
                f"problem must be a SelectionProblem or a function that makes one, not {shown(problem)}"
            )
        self._adopt(first)
        n = first.n_states
        self._usual_budget = self.budget = self._labels(self.options.budget, None)
        refit = 1 if self.options.labels_per_refit is None else self.options.labels_per_refit
        self._refit_every = number_of_labels(refit, n, "labels_per_refit", OptionError, math.inf)
        self._initial_count(self.budget)  # raises now, rather than at the first reset, if no label is left to choose
        self.observation_space = observation_space(n)  # type: ignore[assignment]  # Gymnasium's Dict holds Any
        self.action_space = gym.spaces.Discrete(n)
        self.labelled_at = np.zeros(n, np.int64)
        """[n] when each state was labelled in the episode, counted from 1; 0 if it is not labelled."""
        self._revealed_means = np.zeros(n)
        self._reward_scale = 0.0
        """Largest magnitude of a reward revealed in the episode."""
        self.labels_spent, self._since_refit = self.budget, 0  # nothing may be labelled before reset
        self._initial_labels = np.empty(0, np.int64)
        self._view: SelectionView | None = None
        self._begun = self._judged = False

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
        if self._source is not None:
            self._adopt(self._source(self.np_random))
        budget = self._usual_budget
        if "budget" in chosen or self._source is not None or isinstance(self.options.budget, tuple):
            budget = self._labels(chosen.get("budget", self.options.budget), self.np_random)
        initial = self._initial_states(chosen.get("initial"), budget)
        self.budget = budget  # nothing changes before all options are checked
        self.problem.evaluator.locked = self._test
        self.labelled_at[:] = 0
        self.labelled_at[initial] = np.arange(1, len(initial) + 1)
        self._initial_labels, self._begun, self._judged = initial, True, False
        self.labels_spent, self._since_refit = len(initial), 0
        self._scale = 0.0
        self._revealed_means[:] = 0.0
        self._reward_scale = 0.0
        self._add_rewards(initial)
        self._value: float | None = None
        self._view = None
        self._result: FitResult | None = None
        self._refit()
        info = {
            "states": self.problem.states.copy(),
            "action_mask": self._open.astype(np.int8),
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
        wasted = not self._open[number]
        self.labels_spent += 1
        if not wasted:
            self.labelled_at[number] = self.labels_spent
            self._add_rewards(number)
            if self._view is not None:
                self._reveal(np.array([number]))
        observation, reward, over, info = self._after_labelling(1, wasted)
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
        numbers = numbers[: self.budget - self.labels_spent]
        first_time = np.zeros(len(numbers), bool)
        first_time[np.unique(numbers, return_index=True)[1]] = True
        fresh = first_time & self._open[numbers]
        self.labelled_at[numbers[fresh]] = self.labels_spent + 1 + np.flatnonzero(fresh)
        self._add_rewards(numbers[fresh])
        self._reveal(numbers[fresh])
        self.labels_spent += len(numbers)
        observation, reward, over, info = self._after_labelling(len(numbers), not fresh.any())
        info["state"] = self.problem.states[numbers]
        info["wasted"] = int((~fresh).sum())
        info["revealed"] = {number: self._revealed_by(number) for number in numbers[fresh].tolist()}
        return observation, reward, over, False, info

    def action_masks(self) -> BoolArray:
        """Return the mask [n] of states that can still be labelled."""
        return self._open

    def judge(self) -> None:
        """Count the final return of the running episode as its score, not as a cost; `agents.play` calls it."""
        self._judged = True

    def twin(self) -> "RewardSelectionEnv":
        """Return another environment of the same problem and options, with call counts of its own."""
        return RewardSelectionEnv(self._source or self.problem, **vars(self.options))

    def view(self) -> SelectionView:
        """Return what a strategy may know in the running episode; it is updated as states are labelled.

        Raises:
            EpisodeError: no episode has begun.
        """
        if not self._begun:
            raise EpisodeError("no episode has begun: call reset() first")
        if self._view is None:
            self._view = SelectionView(
                self.problem.dataset,
                rule=self.problem.learner.rule,
                gamma=self.problem.learner.gamma,
                budget=self.budget,
                initial=self._initial_labels.copy(),
                oracle=self.problem.oracle,
                exploit=self._exploit,
                labels_per_refit=self._refit_every,
            )
            self._reveal(np.flatnonzero(self.labelled_at))
        return self._view

    @property
    def labels(self) -> IntArray:
        """The numbers of the labelled states, in the order they were labelled."""
        chosen = np.flatnonzero(self.labelled_at)
        return chosen[np.argsort(self.labelled_at[chosen])]

    def render(self) -> Any:
        """Return a drawing of the labels, numbered in order, on the world's layout: text or an RGB image."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode: give one to gym.make, e.g. render_mode='ansi'")
            return None
        from selectenv.rendering import selection

        draw = selection.text if self.render_mode == "ansi" else selection.pixels
        return draw(self.problem, self.labelled_at, self.budget)

    @property
    def labels_to_refit(self) -> int:
        """Number of labels until the next refit, which changes the learned features."""
        return self._refit_every - self._since_refit

    @property
    def _open(self) -> BoolArray:
        open_states: BoolArray = (self.labelled_at == 0) & self.problem.dataset.labelable
        return open_states

    def _labels(self, budget: Any, rng: np.random.Generator | None) -> int:
        """Return the number of labels of an episode, drawn from ``rng`` where the budget is a range.

        It is at most the number of states that can be labelled; with a problem source, which may make smaller problems
        than the budget suits, this needs no warning.
        """
        basis, open_states = self.problem.budget_states, self._n_labelable
        if self._source is None:
            return cap_to_labelable(episode_labels(budget, basis, rng), open_states)
        if is_int(budget):
            return min(number_of_labels(budget, self.problem.n_states), open_states)
        return min(episode_labels(budget, basis, rng), open_states)

    def _initial_states(self, given: Any, budget: int) -> IntArray:
        """Return the states to label at reset: the given ones, or random ones."""
        open_states = self.problem.dataset.labelable
        if given is None:
            return self.np_random.permutation(np.flatnonzero(open_states))[: self._initial_count(budget)]
        states = as_ints("initial", given, LabelError)
        n = len(open_states)
        if states.ndim != 1 or (states.size and (states.min() < 0 or states.max() >= n)):
            raise LabelError(f"initial must be a list of state numbers in 0..{n - 1}, not {shown(given)}")
        if len(np.unique(states)) < len(states) or not open_states[states].all():
            raise LabelError("initial must list different states that occur in the data")
        if len(states) >= budget:
            raise BudgetError(
                f"initial lists {len(states)} states; the budget is {budget} labels, and at least one must be "
                "left to choose"
            )
        return states

    @property
    def _n_labelable(self) -> int:
        return int(self.problem.dataset.labelable.sum())

    @property
    def _summary(self) -> RewardSummary:
        """What labels reveal; cached by the dataset."""
        dataset = self.problem.dataset
        return dataset.reward_summary(dataset.all_rewards)

    def _revealed_by(self, number: int) -> dict[int, float]:
        """Return what the label on a state reveals: action -> mean reward."""
        means = self._summary.by_action[number].tolist()
        return {action: mean for action, mean in enumerate(means) if not math.isnan(mean)}

    def _add_rewards(self, numbers: int | IntArray) -> None:
        """Add what new labels reveal to what the observation shows."""
        summary = self._summary
        self._revealed_means[numbers] = summary.mean[numbers]
        largest = summary.largest_magnitude[numbers]
        largest = largest.max(initial=0.0) if largest.ndim else largest  # the maximum of one number is slow
        self._reward_scale = max(self._reward_scale, float(largest))

    def _reveal(self, states: IntArray) -> None:
        """Add the rewards of newly labelled states to the view, if `view` was called in this episode."""
        if self._view is not None:
            self._view.add(*self.problem.dataset.revealed_by(states))

    def _initial_count(self, budget: int) -> int:
        """Return how many states are labelled at random at reset."""
        initial = math.floor(float(self.options.initial_ratio) * self.problem.budget_states + 1e-9)
        if self._source is not None:
            return min(initial, budget - 1)
        if initial >= budget:
            raise BudgetError(
                f"initial_ratio={self.options.initial_ratio} spends {initial} labels at reset; the budget is "
                f"{budget}, and at least one must be left to choose"
            )
        return initial

    def _adopt(self, problem: SelectionProblem) -> None:
        """Switch to ``problem``, with the call counts and the lock of this environment."""
        check_instance("the problem that a problem source returns", problem, SelectionProblem)
        if hasattr(self, "labelled_at") and problem.n_states != len(self.labelled_at):
            raise OptionError(
                f"a problem source must keep the number of states, {len(self.labelled_at)}: it made {problem.n_states}"
            )
        if self._test and problem.oracle:
            raise PhaseError(f"the test phase refuses a learner that knows {problem.oracle}")
        if self.marginal and not problem.has_performance:
            raise NoEvaluatorError("marginal rewards need an evaluator and rewards: this problem lacks one of them")
        self.problem = problem.with_calls(self.calls)
        self.problem.evaluator.locked = self._test
        self._features = data_features(self.problem)
        self._exploit = self.options.exploit or ("best" if problem.dataset.images is None else "pooled")

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

    def _after_labelling(self, labels: int, wasted: bool) -> tuple[Observation, float, bool, dict[str, Any]]:
        """Refit if it is due, and return observation, reward, whether the episode is over, and info."""
        over = self.labels_spent == self.budget
        self._stale |= not wasted
        self._since_refit += labels
        if self._since_refit >= self._refit_every:
            self._since_refit %= self._refit_every
            if self._stale:
                self._refit()
        info: dict[str, Any] = {"action_mask": self._open.astype(np.int8), "initial": self._initial_labels.copy()}
        reward = 0.0
        if over:
            self.problem.evaluator.locked = False
        if self.marginal or (over and self.problem.has_performance):
            before = 0.0 if self._value is None else self._value
            measure = self.problem.score if over and self._judged else self.problem.disclose
            self._value = measure(self.labelled_at > 0)
            reward = self._value - before
            if over:
                info["performance"] = self._value
        return self._observation(), reward, over, info

    def _refit(self) -> None:
        """Learn from the labels so far and update the features that depend on them."""
        labels = self.labelled_at > 0
        self._result = self.problem.learn(labels & self.problem.dataset.revealable, self._result)
        learned, self._scale = learned_features(
            self.problem, self._result, labels, self._scale, self.options.occupancy, self._exploit
        )
        self._features.update(learned)
        self._stale = False

    def _observation(self) -> Observation:
        """Return fresh arrays: Gymnasium's checkers reject observations that share memory."""
        features = {name: feature.copy() for name, feature in self._features.items()}
        features["labelled"] = (self.labelled_at / self.budget).astype(np.float32)
        features |= reward_features(self._revealed_means, self._reward_scale)
        features["budget"] = np.array([1 - self.labels_spent / self.budget], np.float32)
        return features


def _environment_options(budget: Any, options: dict[str, Any]) -> EnvironmentOptions:
    """Return the options of an environment.

    Raises:
        UnknownNameError: there is no such option; the message names the nearest one.
    """
    own_options(options, (), names(EnvironmentOptions))
    return EnvironmentOptions(budget, **options)
